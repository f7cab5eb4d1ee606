"""What a rule may answer: allow, deny, ask. There is no arm for a result.

The arms that exist at a moment are members of a closed union, so a rule that fabricates a tool's
answer is refused by a type checker, and by `chain.judge` where nobody runs one.
"""

from __future__ import annotations

import enum
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    Never,
    NoReturn,
    TypeAlias,
    TypeVar,
    final,
    overload,
)

import msgspec

from footprint_core.clock import is_seconds
from footprint_core.errors import OutcomeError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

ToolArgs: TypeAlias = dict[str, Any]
"""The arguments of a call: plain JSON data."""


class Unchanged(enum.Enum):
    """The type of `UNCHANGED`. An enum member keeps its identity under copy, deepcopy and pickle."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
"""No value was given: the value passes as it is."""


def _refuse_truth(arm: str) -> NoReturn:
    # `if rule(call):` is always true for an object, and would read as a decision.
    raise OutcomeError(f"An outcome has no truth value; match on {arm}, Deny and Ask instead.")


@final
class Allow(msgspec.Struct, Generic[T_co], frozen=True, kw_only=True):
    """The value goes on, as it is or replaced by `value`."""

    value: T_co | Literal[Unchanged.UNCHANGED] = UNCHANGED
    why: str | None = None
    kind: ClassVar[Literal["allow"]] = "allow"

    def __bool__(self) -> NoReturn:
        _refuse_truth("Allow")


@final
class Deny(msgspec.Struct, frozen=True, kw_only=True):
    """The value does not go on; the model or the caller reads `reason`."""

    reason: str
    kind: ClassVar[Literal["deny"]] = "deny"

    def __bool__(self) -> NoReturn:
        _refuse_truth("Allow")


@final
class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A person decides first. Legal before a tool only."""

    question: str
    detail: Any = None
    expires_in: float | None = None
    kind: ClassVar[Literal["ask"]] = "ask"

    def __bool__(self) -> NoReturn:
        _refuse_truth("Allow")


ToolOutcome: TypeAlias = Allow[ToolArgs] | Deny | Ask
"""What a rule may answer before a tool runs."""

ToolResultOutcome: TypeAlias = Allow[object] | Deny
"""What a rule may answer after a tool ran. No Ask: the side effect stands."""

MessageOutcome: TypeAlias = Allow[str] | Deny
"""What a rule may answer about a message, at input and at output."""


def _spoken(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip())


@overload
def allow(*, why: str | None = None) -> Allow[Never]: ...
@overload
def allow(value: Literal[Unchanged.UNCHANGED], /, *, why: str | None = None) -> Allow[Never]: ...
@overload
def allow(value: T, /, *, why: str) -> Allow[T]: ...
def allow(value: object = UNCHANGED, /, *, why: str | None = None) -> Allow[Any]:
    """Let the value go on; with a `value`, replace it, which needs a `why`.

    Raises:
        OutcomeError: A value was given without a reason.
    """
    if value is UNCHANGED:
        return Allow(why=why if _spoken(why) else None)
    if not _spoken(why):
        raise OutcomeError("allow(value) changes what goes on, so it needs why='...': say the reason.")
    return Allow(value=value, why=why)


def deny(reason: str, /) -> Deny:
    """Refuse; the model reads `reason` in place of a result, the caller finds it on the error.

    Raises:
        OutcomeError: The reason is blank or no string.
    """
    if not _spoken(reason):
        raise OutcomeError("deny() needs a reason that can be read: give a non-blank string.")
    return Deny(reason=reason)


def ask(question: str, /, *, detail: object = None, expires_in: float | None = None) -> Ask:
    """Ask a person before the tool runs.

    Args:
        question: What they are asked.
        detail: JSON data that comes back on the pause.
        expires_in: Seconds within which the answer counts; None when it may come at any time.

    Raises:
        OutcomeError: The question is blank or no string, or the seconds are no number above 0.
    """
    if not _spoken(question):
        raise OutcomeError("ask() needs a question that can be read: give a non-blank string.")
    if expires_in is not None and not is_seconds(expires_in):
        raise OutcomeError("ask(expires_in=...) takes seconds: give a number above 0, or None.")
    return Ask(question=question, detail=detail, expires_in=expires_in)

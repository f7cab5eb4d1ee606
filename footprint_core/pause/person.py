"""What a person answers: approved or declined, by whom. Plain JSON, so that it can travel."""

from __future__ import annotations

import enum
from typing import ClassVar, Final, Literal, TypedDict, cast

import msgspec

from footprint_core import plain
from footprint_core.errors import DecisionRequiredError, PauseAnswerRequiredError
from footprint_core.plain import Json


class PersonDecision(TypedDict):
    """A person's decision, as plain JSON."""

    decision: Literal["approved", "declined"]
    by: str
    note: str | None


def check_in_approved(*, by: str, note: str | None = None) -> PersonDecision:
    """The person `by` lets the call run."""
    return {"decision": "approved", "by": by, "note": note}


def check_in_declined(*, by: str, note: str | None = None) -> PersonDecision:
    """The person `by` does not; the model reads the note."""
    return {"decision": "declined", "by": by, "note": note}


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """What a person answered a tool that asked: any JSON value."""

    value: Json
    word: ClassVar[Literal["value"]] = "value"


class Nothing(enum.Enum):
    """The type of `NOTHING`."""

    NOTHING = "nothing"


NOTHING: Final = Nothing.NOTHING
"""No answer was given; None is one."""


class Person(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision that was checked."""

    decision: Literal["approved", "declined"]
    by: str
    note: str | None = None

    @property
    def word(self) -> Literal["approved", "declined"]:
        """What was decided, as rows and events spell it."""
        return self.decision

    @property
    def approved(self) -> bool:
        """Whether the call may run."""
        return self.decision == "approved"

    def sentence(self) -> str:
        """Who decided what, for a row."""
        said = f"{self.decision} by {self.by}"
        return f"{said}: {self.note}" if self.note else said


def read_value(answer: object, *, tool_name: str, call_id: str) -> Value:
    """The value in an answer to a tool.

    Raises:
        PauseAnswerRequiredError: There is none, or JSON cannot hold it. The pause stays answerable.
    """
    value, held = plain.examine(answer)
    if answer is NOTHING or not held:
        raise PauseAnswerRequiredError(tool_name=tool_name, tool_call_id=call_id)
    return Value(value=value)


def read_decision(answer: object, *, gate: str, tool_name: str, middleware: str | None) -> Person:
    """The decision in an answer.

    Raises:
        DecisionRequiredError: It is none, or names nobody. The pause stays answerable.
    """
    try:
        person = msgspec.convert(answer, type=Person)
    except msgspec.ValidationError:
        person = None
    if person is not None and person.by.strip():
        return person
    came = "a decision without a name" if person is not None else _shape(answer)
    raise DecisionRequiredError(gate=gate, tool_name=tool_name, middleware=middleware, came=came)


def _shape(answer: object) -> str:
    if answer is None or answer is NOTHING:
        return "nothing"
    if isinstance(answer, dict):
        return f"a dict of {len(cast('dict[object, object]', answer))} keys"
    return f"a value of type {type(answer).__name__}"

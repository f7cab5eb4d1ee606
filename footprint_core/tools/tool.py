"""A tool as the loop runs it: a name, a schema, a check of the arguments, and a body."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from footprint_core import plain
from footprint_core.credentials import Credential
from footprint_core.outcomes import ToolArgs
from footprint_core.plain import Json


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a running tool is told, when it has a parameter of this type.

    Attributes:
        run_id: The run.
        iteration: The model call that asked, from 1.
        call_id: The call.
        idempotency_key: `run_id:position` of the call's intent: the same in every attempt at this call.
        identity: What the caller passed to `run` as identity, or None.
        credential: The secret the tool declared a need for, or None.
    """

    run_id: str
    iteration: int
    call_id: str
    idempotency_key: str
    identity: Json
    credential: Credential | None = None


class Problem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that is wrong with arguments; never a value.

    Attributes:
        path: Where, as dotted keys.
        expected: What should stand there.
        came: The type that came.
    """

    path: str
    expected: str
    came: str


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments that will run.

    Attributes:
        kwargs: What the body is called with.
        args: The same as plain JSON, defaults and coercions included.
    """

    kwargs: dict[str, Any]
    args: ToolArgs


Check: TypeAlias = Callable[[ToolArgs], Checked | tuple[Problem, ...]]
"""Checks arguments it may keep: either what will run, or everything that is wrong."""

Body: TypeAlias = Callable[..., object | Awaitable[object]]

CheckIn: TypeAlias = Literal["always"] | Callable[[ToolArgs], bool]
"""When a person has to consent: always, or for the args for which it is exactly True."""

Evidence: TypeAlias = Callable[[ToolArgs], object]
"""What the person is shown beside the args, as JSON data."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool.

    Attributes:
        name: What the model calls it, 1 to 64 of letters, digits, `_`, `.` and `-`.
        description: What the model reads about it.
        schema: JSON Schema of its arguments, an object.
        keys: The names its arguments may have.
        check: Checks arguments before the body runs.
        body: What runs, plain or async.
        is_async: Whether the body is a coroutine function.
        inline: Whether a plain body may run on the event loop's own thread.
        context_parameter: The parameter that is given the `ToolContext`, or None.
        idempotent: Whether running it twice with one idempotency key is harmless.
        needs: The service it needs a credential for, or None.
        check_in: When a person has to consent before it runs, or None.
        evidence: What that person is shown beside the args, or None.
        source: The server it comes from; None for a tool of this program.
        type: The word telemetry uses for its kind.
    """

    name: str
    description: str
    schema: Mapping[str, Json]
    keys: frozenset[str]
    check: Check
    body: Body
    is_async: bool
    inline: bool = False
    context_parameter: str | None = None
    idempotent: bool = False
    needs: str | None = None
    check_in: CheckIn | None = None
    evidence: Evidence | None = None
    source: str | None = None
    type: str = "function"


def checked(tool: Tool, args: ToolArgs) -> Checked | tuple[Problem, ...]:
    """Check arguments with a copy of their own; a check that raises finds them wrong, and is not quoted."""
    try:
        return tool.check(plain.copy(args))
    except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
        raise
    except BaseException:  # noqa: BLE001 - a check may raise anything, also what a tool pauses with
        return (Problem(path="(arguments)", expected="what the tool accepts", came="object"),)


def accept_any(args: ToolArgs) -> Checked:
    """A check for tools that take whatever object comes."""
    return Checked(kwargs={"args": plain.copy(args)}, args=args)


def invalid_text(tool: str, problems: tuple[Problem, ...]) -> str:
    """What the model reads when its arguments were rejected: paths and types, never a value."""
    shown = "; ".join(f"{p.path}: expected {p.expected}, got {p.came}" for p in problems[:10])
    more = f"; and {len(problems) - 10} more" if len(problems) > 10 else ""
    return (
        f"The arguments for {tool} are not valid, so it was not run. {shown}{more}. "
        "Correct them and call it again."
    )

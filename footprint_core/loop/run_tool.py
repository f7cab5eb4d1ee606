"""A call that passed every gate runs: its intent is durable, then the body is entered."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from types import CoroutineType
from typing import TypeGuard

import msgspec

from footprint_core import plain
from footprint_core.credentials import hidden
from footprint_core.facts import ToolFinished, ToolIntended, ToolPaused
from footprint_core.loop.gates import Ready
from footprint_core.loop.read_result import answer_refused
from footprint_core.loop.turn import Question, Ran, Refusing, Turn
from footprint_core.pause.signal import PauseSignal
from footprint_core.plain import Json
from footprint_core.threads import THREADS, Settled, drop
from footprint_core.tools.tool import ToolContext


def note_intent(turn: Turn, ready: Ready) -> int:
    """Note that a body is about to run, with the args that will; its position in the run."""
    return turn.writer.note(
        ToolIntended(
            iteration=ready.taken.subject.iteration,
            call_id=ready.taken.call.id,
            tool_name=ready.tool.name,
            tool_source=ready.tool.source,
            args=ready.found.args,
        )
    )


async def commit_intents(turn: Turn, ready: tuple[Ready, ...]) -> None:
    """Make intents durable before any of their bodies is entered."""
    try:
        await turn.writer.commit()
        if turn.writer.cancellation.asked:
            await turn.writer.cancellation.heed()
    except asyncio.CancelledError:
        # The intents are on record and no body is entered: without this, they would be in doubt.
        for one in ready:
            text = f"The turn was cancelled before {one.tool.name} ran."
            refusing = Refusing(status="cancelled", text=text, args=one.taken.args, changed=one.taken.changed)
            answer_refused(turn, one.taken.call, refusing)
        raise


async def run_intended(turn: Turn, ready: Ready, position: int, *, inline: bool) -> Ran | Question:
    """Run a body whose intent is durable, and note how it ended; one that asked a person did not end."""
    turn.stage = "tool"
    taken, tool = ready.taken, ready.tool
    kwargs = ready.found.kwargs
    if tool.context_parameter is not None:
        kwargs[tool.context_parameter] = ToolContext(
            run_id=turn.writer.run_id,
            iteration=taken.subject.iteration,
            call_id=taken.call.id,
            idempotency_key=f"{turn.writer.run_id}:{position}",
            identity=plain.copy(turn.identity),
            credential=ready.credential,
        )
    began = turn.writer.now()
    ended = await _body(turn, ready, kwargs, inline=inline)
    now = turn.writer.now()
    error = ended.error
    if isinstance(error, _LeftRunning):
        raise error
    if isinstance(error, KeyboardInterrupt) or (
        isinstance(error, asyncio.CancelledError) and turn.writer.cancellation.here
    ):
        left = _finished(ready, now - began, error_class=type(error).__name__, cancelled=True)
        turn.writer.note(left, at=now)
        raise error
    if isinstance(error, PauseSignal) and not ready.approved and not turn.served:
        return _paused(turn, ready, error, now - began, ended.cancelled)
    error_class = None if error is None else type(error).__name__
    result = _result(turn, ready, ended)
    finished = _finished(ready, now - began, error_class=error_class, result=result)
    turn.writer.note(finished, at=now)
    if ended.cancelled is not None:
        raise ended.cancelled
    return Ran(
        args=ready.found.args,
        result=result,
        failed=error_class is not None,
        error_class=error_class,
        duration_us=finished.duration_us,
        changed=taken.changed,
    )


def _paused(
    turn: Turn, ready: Ready, signal: PauseSignal, took: int, cancelled: asyncio.CancelledError | None
) -> Question:
    """A tool asked a person while it ran; the question is opened when its turn comes."""
    taken, tool = ready.taken, ready.tool
    turn.writer.note(
        ToolPaused(
            iteration=taken.subject.iteration,
            call_id=taken.call.id,
            tool_name=tool.name,
            tool_source=tool.source,
            duration_us=took,
        )
    )
    if cancelled is not None:
        raise cancelled
    return Question(
        kind="human",
        index=taken.index,
        call_id=taken.call.id,
        tool_name=tool.name,
        tool_source=tool.source,
        args=ready.found.args,
        changed=taken.changed,
        shown=_without_secret(signal.payload, ready),
        ran_us=took,
    )


def _result(turn: Turn, ready: Ready, ended: _Ended) -> Json:
    """What a body gave, or the message of what it raised, as plain JSON and without its credential."""
    error = ended.error
    if error is None:
        value = plain.detach(ended.value)
        return value if ready.credential is None else _without_secret(value, ready)
    if isinstance(error, PauseSignal):
        whom = "a served call can ask nobody" if turn.served else "a person was asked about this call already"
        return f"The tool {ready.tool.name} asked a person while it ran, and {whom}; what it did stands."
    return _without_secret(plain.message_of(error), ready)


def _without_secret(value: Json, ready: Ready) -> Json:
    return value if ready.credential is None else hidden(value, ready.credential)


def _finished(
    ready: Ready,
    took: int,
    *,
    error_class: str | None,
    result: Json = msgspec.UNSET,
    cancelled: bool = False,
) -> ToolFinished:
    return ToolFinished(
        iteration=ready.taken.subject.iteration,
        call_id=ready.taken.call.id,
        tool_name=ready.tool.name,
        tool_source=ready.tool.source,
        failed=error_class is not None,
        cancelled=cancelled,
        error_class=error_class,
        duration_us=took,
        result=result,
    )


class _Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a body ended: what it returned or raised, and the cancellation that waited for it."""

    value: object = None
    error: BaseException | None = None
    cancelled: asyncio.CancelledError | None = None


class _LeftRunning(asyncio.CancelledError):
    """A second cancellation came while a thread was waited for; nobody knows how its body ends."""


async def _body(turn: Turn, ready: Ready, kwargs: dict[str, object], *, inline: bool) -> _Ended:
    """Run the body. What it raises is handed back: a StopIteration could not leave a coroutine as itself."""
    tool, subject = ready.tool, ready.taken.subject
    run_id, segment = turn.writer.run_id, turn.writer.segment
    enclose = turn.audience.enclose
    try:
        if tool.is_async or tool.inline or inline:
            with enclose("tool", run_id, segment, subject.iteration, subject.call_id):
                value = tool.body(**kwargs)
                return _Ended(value=await value if _is_awaitable(value) else value)

        def enclosed() -> object:
            with enclose("tool", run_id, segment, subject.iteration, subject.call_id):
                return tool.body(**kwargs)

        ended = await _outcome(THREADS.call(enclosed))
        if _is_awaitable(ended.value):
            if ended.cancelled is not None:
                drop(ended.value)
                return _Ended(error=ended.cancelled)
            with enclose("tool", run_id, segment, subject.iteration, subject.call_id):
                return _Ended(value=await ended.value)
    except BaseException as error:  # noqa: BLE001 - a tool may raise anything, a GeneratorExit too
        return _Ended(error=error)
    else:
        return ended


def _is_awaitable(value: object) -> TypeGuard[Awaitable[object]]:
    if type(value) is CoroutineType:
        return True
    try:
        return inspect.isawaitable(value)
    except Exception:  # noqa: BLE001 - a result can refuse even to be looked at; the tool has not raised
        return False


async def _outcome(running: Awaitable[Settled]) -> _Ended:
    """Wait for a body in a thread, also when cancelled: it goes on running, and has an outcome then.

    Raises:
        _LeftRunning: Cancelled a second time while it still ran.
    """
    task = asyncio.ensure_future(running)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if cancelled is not None:
                raise _LeftRunning from None
            cancelled = error
    value, raised = task.result()
    return _Ended(value=value, error=raised, cancelled=cancelled)

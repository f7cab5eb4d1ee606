"""A permitted call runs: its arguments are checked, its intent is durable, then the body is entered."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable

import msgspec

from footprint_core import plain
from footprint_core.chain.subject import Subject
from footprint_core.facts import ToolFinished, ToolIntended
from footprint_core.loop.read_result import Ran, Refusing, answer_refused, read_result
from footprint_core.loop.turn import Turn, being_cancelled
from footprint_core.messages import ToolCall
from footprint_core.outcomes import ToolArgs
from footprint_core.plain import Json
from footprint_core.threads import THREADS, Settled
from footprint_core.tools.tool import Checked, Tool, ToolContext, checked, invalid_text


async def run_tool(turn: Turn, call: ToolCall, subject: Subject, args: ToolArgs, *, changed: bool) -> None:
    """Check the arguments, make the intent durable, run the body, and let the result be read."""
    tool = turn.spec.tools.get(call.name)
    if tool is None:
        text = f"There is no tool called {call.name}, so nothing was run; use one of the tools offered."
        answer_refused(turn, call, args, Refusing(status="unknown", text=text))
        return
    found = checked(tool, args)
    if not isinstance(found, Checked):
        text = invalid_text(tool.name, found)
        refusing = Refusing(status="invalid", text=text, issues=len(found), args_changed=changed)
        answer_refused(turn, call, args, refusing)
        return
    intended = ToolIntended(
        iteration=subject.iteration,
        call_id=call.id,
        tool_name=tool.name,
        tool_source=tool.source,
        args=found.args,
    )
    position = turn.writer.note(intended)
    try:
        await turn.writer.commit()
    except asyncio.CancelledError:
        # The intent is on record and the body is not entered: without this, it would be in doubt.
        text = f"The turn was cancelled before {tool.name} ran."
        answer_refused(turn, call, args, Refusing(status="cancelled", text=text, args_changed=changed))
        raise
    turn.stage = "tool"
    ran = await _run(turn, tool, subject, found, position)
    if turn.spec.chains.results:
        # A result rule may take its time; what the tool did is on record before one is asked.
        await turn.writer.commit()
    await read_result(turn, call, subject, ran, changed=changed)


async def _run(turn: Turn, tool: Tool, subject: Subject, found: Checked, position: int) -> Ran:
    kwargs = found.kwargs
    if tool.context_parameter is not None:
        kwargs[tool.context_parameter] = ToolContext(
            run_id=turn.writer.run_id,
            iteration=subject.iteration,
            call_id=subject.call_id,
            idempotency_key=f"{turn.writer.run_id}:{position}",
            identity=plain.copy(turn.identity),
        )
    began = turn.writer.now()
    ended = await _body(turn, tool, subject, kwargs)
    now = turn.writer.now()
    error = ended.error
    if isinstance(error, KeyboardInterrupt | SystemExit | _LeftRunning):
        raise error
    if isinstance(error, asyncio.CancelledError) and being_cancelled():
        left = _finished(tool, subject, now - began, error_class="CancelledError", cancelled=True)
        turn.writer.note(left, at=now)
        raise error
    error_class = None if error is None else type(error).__name__
    result = plain.detach(ended.value if error is None else _message(error))
    finished = _finished(tool, subject, now - began, error_class=error_class, result=result)
    turn.writer.note(finished, at=now)
    if ended.cancelled is not None:
        raise ended.cancelled
    return Ran(
        tool=tool,
        args=found.args,
        result=result,
        failed=error_class is not None,
        error_class=error_class,
        duration_us=finished.duration_us,
    )


def _message(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - an error whose text raises has no text
        return type(error).__name__


def _finished(
    tool: Tool,
    subject: Subject,
    took: int,
    *,
    error_class: str | None,
    result: Json = msgspec.UNSET,
    cancelled: bool = False,
) -> ToolFinished:
    return ToolFinished(
        iteration=subject.iteration,
        call_id=subject.call_id,
        tool_name=tool.name,
        tool_source=tool.source,
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


async def _body(turn: Turn, tool: Tool, subject: Subject, kwargs: dict[str, object]) -> _Ended:
    """Run the body. What it raises is handed back: a StopIteration could not leave a coroutine as itself."""
    run_id, segment = turn.writer.run_id, turn.writer.segment
    enclose = turn.audience.enclose
    try:
        if tool.is_async or tool.inline or turn.inline:
            with enclose("tool", run_id, segment, subject.iteration, subject.call_id):
                value = tool.body(**kwargs)
                return _Ended(value=await value if inspect.isawaitable(value) else value)

        def enclosed() -> object:
            with enclose("tool", run_id, segment, subject.iteration, subject.call_id):
                return tool.body(**kwargs)

        ended = await _outcome(THREADS.call(enclosed))
        if ended.cancelled is None and inspect.isawaitable(ended.value):
            with enclose("tool", run_id, segment, subject.iteration, subject.call_id):
                return _Ended(value=await ended.value)
    except BaseException as error:  # noqa: BLE001 - a tool may raise anything, a GeneratorExit too
        return _Ended(error=error)
    else:
        return ended


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

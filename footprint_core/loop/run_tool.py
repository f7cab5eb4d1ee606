"""A permitted call runs: its arguments are checked, its intent is durable, then the body is entered."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable
from typing import cast

import msgspec

from footprint_core import plain
from footprint_core.chain.subject import Subject
from footprint_core.facts import ToolFinished, ToolIntended
from footprint_core.loop.read_result import Ran, Refusing, answer_refused, read_result
from footprint_core.loop.turn import Turn
from footprint_core.messages import ToolCall
from footprint_core.outcomes import ToolArgs
from footprint_core.plain import Json
from footprint_core.threads import THREADS, Settled
from footprint_core.tools.tool import Checked, Tool, ToolContext, invalid_text


async def run_tool(turn: Turn, call: ToolCall, subject: Subject, args: ToolArgs, *, changed: bool) -> None:
    """Check the arguments, make the intent durable, run the body, and let the result be read."""
    tool = turn.spec.tools.get(call.name)
    if tool is None:
        text = f"There is no tool called {call.name}, so nothing was run; use one of the tools offered."
        answer_refused(turn, call, args, Refusing(status="unknown", text=text))
        return
    # The check may keep what it is given, and a tool may change what it gets: both get their own.
    checked = tool.check(plain.copy(args))
    if not isinstance(checked, Checked):
        text = invalid_text(tool.name, checked)
        answer_refused(turn, call, args, Refusing(status="invalid", text=text, issues=len(checked)))
        return
    intended = ToolIntended(
        iteration=subject.iteration,
        call_id=call.id,
        tool_name=tool.name,
        tool_source=tool.source,
        args=checked.args,
    )
    position = turn.writer.note(intended)
    await turn.writer.commit()
    turn.stage = "tool"
    ran = await _run(turn, tool, subject, checked, position)
    if turn.spec.chains.results:
        # A result rule may take its time; what the tool did is on record before one is asked.
        await turn.writer.commit()
    await read_result(turn, call, subject, ran, changed=changed)


async def _run(turn: Turn, tool: Tool, subject: Subject, checked: Checked, position: int) -> Ran:
    kwargs = checked.kwargs
    if tool.context_parameter is not None:
        kwargs[tool.context_parameter] = ToolContext(
            run_id=turn.writer.run_id,
            iteration=subject.iteration,
            call_id=subject.call_id,
            idempotency_key=f"{turn.writer.run_id}:{position}",
            identity=plain.copy(turn.identity),
        )
    began = time.perf_counter_ns()
    value, error = await _body(turn, tool, subject, kwargs)
    if isinstance(error, asyncio.CancelledError):
        turn.writer.note(_finished(tool, subject, began, error_class="CancelledError", cancelled=True))
        raise error
    if isinstance(error, KeyboardInterrupt | SystemExit):
        raise error
    error_class = None if error is None else type(error).__name__
    result = plain.detach(value if error is None else _message(error))
    finished = _finished(tool, subject, began, error_class=error_class, result=result)
    turn.writer.note(finished)
    return Ran(
        tool=tool,
        args=checked.args,
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
    began: int,
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
        duration_us=(time.perf_counter_ns() - began) // 1000,
        result=result,
    )


async def _body(turn: Turn, tool: Tool, subject: Subject, kwargs: dict[str, object]) -> Settled:
    """Run the body. What it raises is handed back: a StopIteration could not leave a coroutine as itself."""
    run_id, segment = turn.writer.run_id, turn.writer.segment
    enclose = turn.audience.enclose
    try:
        if tool.is_async:
            with enclose("tool", run_id, segment, subject.iteration, subject.call_id):
                return await cast("Awaitable[object]", tool.body(**kwargs)), None

        def enclosed() -> object:
            with enclose("tool", run_id, segment, subject.iteration, subject.call_id):
                return tool.body(**kwargs)

        value, error = (enclosed(), None) if tool.inline or turn.inline else await THREADS.call(enclosed)
        return (await value if inspect.isawaitable(value) else value), error
    except BaseException as error:  # noqa: BLE001 - a tool may raise anything, a GeneratorExit too
        return None, error

"""What the caller is handed of a pause: one kind for each who can ask."""

from __future__ import annotations

from typing import assert_never

from footprint_core import plain
from footprint_core.decisions import Decision
from footprint_core.loop.turn import PausedRun
from footprint_core.pause.results import AskPause, CheckInPause, HumanPause, Pause


def show_pause(paused: PausedRun, run_id: str, rows: tuple[Decision, ...]) -> Pause:
    """The pause as its caller sees it; everything in it is a copy of the caller's own."""
    question = paused.question
    match question.kind:
        case "ask":
            return AskPause(
                middleware=question.middleware or "",
                question=question.question or "",
                detail=plain.copy(question.shown),
                tool_name=question.tool_name,
                tool_source=question.tool_source,
                tool_call_id=question.call_id,
                args=plain.copy(question.args),
                args_problem=paused.args_problem,
                decisions=rows,
                run_id=run_id,
                pause_id=paused.pause_id,
                checkpoint=paused.checkpoint,
            )
        case "check-in":
            return CheckInPause(
                tool_name=question.tool_name,
                tool_source=question.tool_source,
                tool_call_id=question.call_id,
                args=plain.copy(question.checked),
                evidence=plain.copy(question.shown),
                decisions=rows,
                run_id=run_id,
                pause_id=paused.pause_id,
                checkpoint=paused.checkpoint,
            )
        case "human":
            return HumanPause(
                tool_name=question.tool_name,
                tool_source=question.tool_source,
                tool_call_id=question.call_id,
                data=plain.copy(question.shown),
                decisions=rows,
                run_id=run_id,
                pause_id=paused.pause_id,
                checkpoint=paused.checkpoint,
            )
        case _:
            assert_never(question.kind)

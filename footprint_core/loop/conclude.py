"""What a turn that is over gives its caller: an answer, or a refusal that is raised last."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from footprint_core.decisions import Decision
from footprint_core.errors import MessageDeniedError, PolicyHaltError
from footprint_core.loop.turn import Answered, DeniedMessage, Halted, Turn
from footprint_core.pause.results import Answer, Outcome, Pause

Concluded: TypeAlias = Answer | Pause | MessageDeniedError | PolicyHaltError
"""What a turn came to. A refusal is handed on as a value: what holds the message must not be in a frame of
the traceback it is raised with."""


def conclude(
    turn: Turn, ending: Answered | DeniedMessage | Halted, rows: tuple[Decision, ...]
) -> Answer | MessageDeniedError | PolicyHaltError:
    """The end of a turn as its caller gets it.

    Args:
        turn: The segment.
        ending: How the turn is over.
        rows: The decision rows of its run.
    """
    writer = turn.writer
    match ending:
        case Answered():
            return _answer(turn, ending.text, rows)
        case DeniedMessage():
            denied = MessageDeniedError(reason=ending.reason, phase=ending.phase, middleware=ending.rule)
            denied.run_id, denied.segment = writer.run_id, writer.segment
            return denied
        case Halted():
            halted = PolicyHaltError(
                reason=ending.reason,
                iteration=ending.iteration,
                proposed={"name": ending.tool_name, "args": ending.proposed},
                tool_call_id=ending.call_id,
                checker_id=ending.checker,
            )
            halted.run_id, halted.segment = writer.run_id, writer.segment
            return halted
        case _:
            assert_never(ending)


def released(concluded: Concluded) -> Outcome:
    """What a caller is given.

    Raises:
        MessageDeniedError: A rule refused the message or the answer.
        PolicyHaltError: A permission checker ended the run.
    """
    if isinstance(concluded, MessageDeniedError | PolicyHaltError):
        raise concluded
    return concluded


def _answer(turn: Turn, text: str, rows: tuple[Decision, ...]) -> Answer:
    judged = turn.judged
    return Answer(
        text=text,
        run_id=turn.writer.run_id,
        decisions=rows,
        stopped_early=turn.stopped_early,
        schema_met=None if judged is None else judged.stage is None,
        schema_stage=None if judged is None else judged.stage,
        value=None if judged is None else judged.value,
    )

"""The output moment: rules decide about the answer before anybody is given it."""

from __future__ import annotations

from footprint_core.chain.calls import Refused
from footprint_core.chain.contents import walk_content
from footprint_core.facts import IterationEnded
from footprint_core.loop.turn import Answered, DeniedMessage, Turn


async def give_answer(turn: Turn) -> Answered | DeniedMessage:
    """Let the rules decide about the answer; the iteration ends with their decision."""
    turn.stage = "output"
    state = turn.state
    walked = await walk_content(
        turn.spec.chains.contents,
        state.candidate,
        turn.writer,
        phase="output",
        iteration=state.iteration,
        history=state.messages,
        identity=turn.identity,
    )
    turn.writer.note(IterationEnded(iteration=state.iteration, call_count=0))
    if isinstance(walked, Refused):
        return DeniedMessage(reason=walked.reason, phase="output", rule=walked.rule)
    return Answered(text=walked.text)

"""The output moment: rules decide about the answer before anybody is given it, then its schema judges it."""

from __future__ import annotations

import msgspec

from footprint_core.chain.calls import Refused
from footprint_core.chain.contents import Said, walk_content
from footprint_core.facts import IterationEnded, OutputJudged, RouteTaken, SchemaOutcome
from footprint_core.loop.turn import Answered, DeniedMessage, Turn
from footprint_core.output_schema import Shape, judge_answer


async def give_answer(turn: Turn) -> Answered | DeniedMessage | None:
    """Let the rules decide about the answer; None when the model is asked again for one that matches."""
    turn.stage = "output"
    state, shape = turn.state, turn.spec.shape
    walked = await walk_content(
        turn.spec.chains.contents,
        state.candidate,
        turn.writer,
        phase="output",
        iteration=state.iteration,
        history=state.messages,
        identity=turn.identity,
    )
    again = False
    if shape is not None and isinstance(walked, Said):
        await turn.writer.cancellation.heed()
        again = _judge(turn, shape, walked)
    elif shape is not None:
        # A refused answer is not judged, and not asked for again.
        turn.writer.note(RouteTaken(iteration=state.iteration, chosen="final"))
    turn.writer.note(IterationEnded(iteration=state.iteration, call_count=0))
    if isinstance(walked, Refused):
        return DeniedMessage(reason=walked.reason, phase="output", rule=walked.rule)
    return None if again else Answered(text=walked.text)


def _judge(turn: Turn, shape: Shape, said: Said) -> bool:
    """Judge an answer by its schema and file the attempt; whether the model is asked again."""
    state = turn.state
    judged = judge_answer(shape.schema, said.text)
    turn.judged = judged
    attempt = state.attempts + 1
    broken_by: str | None = None
    if judged.stage is not None and said.changed_by is not None:
        # The model's own answer matched: asking it again would not help.
        matched = judge_answer(shape.schema, state.candidate).stage is None
        broken_by = said.changed_by if matched else None
    budget_left = state.iteration < turn.spec.max_iterations and not state.wrapped_up
    again = judged.stage is not None and broken_by is None and attempt <= shape.retries and budget_left
    turn.writer.note(RouteTaken(iteration=state.iteration, chosen="output-retry" if again else "final"))
    outcome: SchemaOutcome = "passed" if judged.stage is None else "retried" if again else "exhausted"
    turn.writer.note(
        OutputJudged(
            attempt=attempt,
            iteration=state.iteration,
            outcome=outcome,
            retries_remaining=max(0, shape.retries - attempt),
            stage=judged.stage,
            broken_by=broken_by,
            error=msgspec.UNSET if judged.error is None else judged.error,
            text=said.text if again else msgspec.UNSET,
            correction=_correction(judged.error) if again else msgspec.UNSET,
        )
    )
    return again


def _correction(error: str | None) -> str:
    return (
        f"[That answer does not match the schema it must have: {error} Answer again with one JSON document "
        "that does, and nothing else.]"
    )

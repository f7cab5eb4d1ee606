"""What becomes of a run whose process was killed: it is gone on with, and ends as if nothing had happened."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from crash.desk import IDEMPOTENT, Notes, agent_of, answer_about, read_by_the_model, to_the_end
from crash.killable import open_noted
from crash.verdict import keeps_a_body, ran
from footprint_core.facts import (
    MessageTaken,
    PauseAnswered,
    PauseOpened,
    SegmentEnded,
    ToolFinished,
    ToolIntended,
)
from footprint_core.ledger import Entry

NEVER_BEGAN = "never began"
"""Nothing that was to be done is on record, so the caller starts anew."""
NOBODY_WAS_ASKED = "paused, and nobody was handed it"
"""The pause is on record, and its checkpoint died with the process."""
ANSWERED = "answered"
"""It had ended before the kill."""
RECOVERED = "recovered"
FAILED = "failed"
RESUMED = "resumed"
RESUMED_BY_ID = "resumed by the id of its pause"


def go_on(path: Path, notes: Notes, run: str) -> tuple[str, list[str]]:
    """Go on with a run as whoever finds it can, and say how, and what was not as it had to be."""
    try:
        return asyncio.run(asyncio.wait_for(_go_on(path, notes, run), 60))
    except Exception as error:  # noqa: BLE001 - whatever keeps a run from going on is told beside the kill
        return FAILED, [f"it could not be gone on with: {type(error).__name__}: {error}"]


async def _go_on(path: Path, notes: Notes, run: str) -> tuple[str, list[str]]:
    ledger = open_noted(path, notes, lambda _: None)
    try:
        kept, before = ledger.entries(run), ran(notes)
        agent = agent_of(ledger, notes, lambda _: None)
        how, out = await _taken_up(agent, path, kept, notes, run)
        if out is None:
            return how, []
        text = (await to_the_end(agent, out, notes)).text
    finally:
        await ledger.close()
    return how, _unlike(run, kept, before, ran(notes), json.loads(text))


async def _taken_up(
    agent: Any, path: Path, kept: tuple[Entry, ...], notes: Notes, run: str
) -> tuple[str, Any]:
    facts = [entry.fact for entry in kept]
    if not any(isinstance(fact, MessageTaken) for fact in facts):
        return NEVER_BEGAN, None
    last = facts[-1]
    if isinstance(last, SegmentEnded) and last.outcome == "answered":
        return ANSWERED, None
    opened = [fact for fact in facts if isinstance(fact, PauseOpened)]
    taken = {fact.pause_id for fact in facts if isinstance(fact, PauseAnswered)}
    if opened and opened[-1].pause_id not in taken:
        handed = [note["checkpoint"] for note in notes.of("handed")]
        held = [one for one in handed if one["pause_id"] == opened[-1].pause_id]
        answer = answer_about(opened[-1].tool_name)
        if held:
            return RESUMED, await agent.resume(held[0], answer)
        if not keeps_a_body(path, opened[-1].pause_id):
            return NOBODY_WAS_ASKED, None
        return RESUMED_BY_ID, await agent.resume(pause_id=opened[-1].pause_id, answer=answer)
    return RECOVERED, await agent.recover(run)


def _unlike(
    run: str,
    kept: tuple[Entry, ...],
    before: dict[tuple[str, str], int],
    after: dict[tuple[str, str], int],
    read: dict[str, str],
) -> list[str]:
    """How a run that was gone on with differs from one that nothing disturbed."""
    finished = {entry.fact.call_id for entry in kept if isinstance(entry.fact, ToolFinished)}
    intended = {entry.fact.call_id for entry in kept if isinstance(entry.fact, ToolIntended)}
    found: list[str] = []
    for call, text in read_by_the_model().items():
        was, now = before.get((run, call), 0), after.get((run, call), 0)
        tool = text.split()[0]
        in_doubt = call in intended - finished
        if now > was and (call in finished or (in_doubt and tool not in IDEMPOTENT)):
            found.append(f"the body of {call} ran again")
        if read.get(call) != text and not (in_doubt and tool not in IDEMPOTENT):
            found.append(f"the model read something else of {call}")
    return found

"""A person gives a run up: its end is on record, and nothing continues it."""

from __future__ import annotations

from typing import cast

from footprint_core import plain
from footprint_core.clock import AnchoredClock, Clock
from footprint_core.commit import Writer
from footprint_core.errors import InvalidRunInputError, RecoverError
from footprint_core.facts import RunAbandoned, RunConfigured, RunOutcome, SegmentEnded
from footprint_core.ledger import Entry, Ledger
from footprint_core.loop.kept_conversation import about_run
from footprint_core.readback import whole
from footprint_core.state import RunState
from footprint_core.watch import Audience, Bus


async def abandon_run(ledger: Ledger, run_id: str, *, by: str, reason: str) -> None:
    """Give a run up that has no end, or waits for a person: nothing continues it, and its end is on record.

    A process that still runs it stops at its next step. Nobody is told; `Agent.abandon` tells its watchers.

    Args:
        ledger: Where the run is kept.
        run_id: The run.
        by: Who gives it up.
        reason: Why.

    Raises:
        InvalidRunInputError: `by` or `reason` is blank or no text.
        RecoverError: The run is not in this ledger, over, or given up before.
        RunTakenOverError: A process goes on with it at this moment.
        LedgerError: The ledger cannot be read, or did not take it.
    """
    await give_up(ledger, _nobody(), AnchoredClock(), run_id, by=by, reason=reason)


async def give_up(
    ledger: Ledger, audience: Audience, clock: Clock, run_id: str, *, by: str, reason: str
) -> None:
    """As `abandon_run`, before an audience."""
    _check("by", by, "the name of who gives the run up")
    _check("reason", reason, "why it is given up")
    if not isinstance(cast("object", run_id), str):
        raise RecoverError("abandon() takes the id of a run as a text; pass its run_id.")
    entries, at = ledger.entries(run_id), await ledger.run_standing(run_id)
    if not entries or at is None:
        raise about_run(
            RecoverError, run_id, "is not in this ledger; give it up with the ledger that has it."
        )
    ended = _ended(run_id, entries)
    state = RunState()
    for entry in entries:
        state.apply(whole(entry.fact, entry.marks))
    writer = Writer(
        ledger=ledger,
        # Watchers were told when the segment paused that it ended, and hear of one end only.
        audience=_nobody() if ended == "paused" else audience,
        state=state,
        clock=clock,
        run_id=run_id,
        segment=at.segment,
        position=entries[-1].position,
    )
    writer.trace = at.trace
    writer.note(RunAbandoned(by=plain.detach(by), reason=plain.detach(reason)))
    if ended != "abandoned":
        end = SegmentEnded(
            outcome="abandoned",
            iterations=state.iteration,
            input_tokens=state.input_tokens,
            output_tokens=state.output_tokens,
            duration_us=_heard_of(entries),
        )
        writer.note(end)
    await writer.commit()


def _nobody() -> Audience:
    return Bus(()).audience()


def _check(name: str, text: object, what: str) -> None:
    if not isinstance(text, str) or not text.strip():
        raise InvalidRunInputError(f"abandon({name}=...) takes {what} as text, and got none; give it.")


def _ended(run_id: str, entries: tuple[Entry, ...]) -> RunOutcome | None:
    """How the last segment ended, of a run that could go on; None when it has no end.

    Raises:
        RecoverError: It could not.
    """
    ended: RunOutcome | None = None
    for entry in entries:
        match entry.fact:
            case RunAbandoned():
                raise about_run(RecoverError, run_id, "was given up before; it stays so.")
            case SegmentEnded(outcome=outcome):
                ended = outcome
            case RunConfigured():
                ended = None
            case _:
                pass
    if ended not in {None, "paused", "abandoned"}:
        raise about_run(RecoverError, run_id, f"is over, it is {ended}; there is nothing to give up.")
    return ended


def _heard_of(entries: tuple[Entry, ...]) -> int:
    """How long the last segment was heard of, microseconds; nobody knows when its process died."""
    began = [entry.time for entry in entries if isinstance(entry.fact, RunConfigured)]
    return max(0, entries[-1].time - began[-1]) if began else 0

"""A paused run goes on in a ledger that does not have it: the rows its checkpoint carries come along."""

from __future__ import annotations

from itertools import groupby

import msgspec

from footprint_core.commit import Writer
from footprint_core.decisions import Decision
from footprint_core.facts import Decided, PauseOpened
from footprint_core.spec import AgentSpec
from footprint_core.state import RunState


async def import_run(
    spec: AgentSpec, run_id: str, segment: int, rows: tuple[Decision, ...], pause: PauseOpened
) -> int:
    """Append the rows as they were filed, marked as imported, then the pause; the last position.

    The pause is known here from then on, so that it is answered once. Nobody is told again what was told
    when it was filed. What is here of an import that did not come to its end is not appended again.

    Args:
        spec: The agent.
        run_id: The run.
        segment: The segment that paused.
        rows: Its rows.
        pause: The pause.

    Raises:
        LedgerError: The ledger did not take them.
    """
    position = len(spec.ledger.decisions(run_id))
    for number, group in groupby(rows[position:], key=lambda row: row.segment):
        writer = _writer(spec, run_id, number, position)
        for row in group:
            writer.note(_fact(row), at=row.recorded_us)
        await writer.commit()
        position = writer.position
    writer = _writer(spec, run_id, segment, position)
    writer.note(msgspec.structs.replace(pause, imported=True))
    await writer.commit()
    return writer.position


def _writer(spec: AgentSpec, run_id: str, segment: int, position: int) -> Writer:
    return Writer(
        ledger=spec.ledger,
        audience=spec.bus.audience(),
        state=RunState(),
        clock=spec.clock(),
        run_id=run_id,
        segment=segment,
        position=position,
    )


def _fact(row: Decision) -> Decided:
    return Decided(
        middleware=row.middleware,
        moment=row.moment,
        iteration=row.iteration,
        outcome=row.outcome,
        changed=row.changed,
        answer=row.answer,
        version=row.version,
        tool_name=row.tool_name,
        tool_source=row.tool_source,
        call_id=row.tool_call_id,
        duration_us=row.duration_us,
        error_class=row.error_class,
        shadow=row.shadow,
        after_approval=row.after_approval,
        imported=row.redacted,
        why=msgspec.UNSET if row.why is None else row.why,
        before=row.before,
        after=row.after,
        detail=row.detail,
        decided_by=msgspec.UNSET if row.decided_by is None else row.decided_by,
    )

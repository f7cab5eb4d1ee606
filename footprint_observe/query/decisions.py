"""The decision rows of a ledger, filtered as a person asks for them."""

from __future__ import annotations

import os

from footprint_observe.query.database import Record, ask


def decisions(
    path: str | os.PathLike[str],
    *,
    run_id: str | None = None,
    rule: str | None = None,
    outcome: str | None = None,
    moment: str | None = None,
    tool: str | None = None,
    limit: int = 50,
) -> list[Record]:
    """The newest decisions that match every filter, oldest of them first.

    Args:
        path: The ledger file.
        run_id: Only this run; then from its beginning, and all of them.
        rule: Only this rule.
        outcome: Only allow, deny or ask.
        moment: Only this moment.
        tool: Only calls of this tool.
        limit: At most so many, when no run is given.

    Raises:
        LedgerOpenError: There is no ledger at that path, or it cannot be read.
    """
    given = {"run_id": run_id, "middleware": rule, "outcome": outcome, "moment": moment, "tool_name": tool}
    wanted = {column: value for column, value in given.items() if value is not None}
    where = " and ".join(f"{column} = :{column}" for column in wanted) or "1"
    if run_id is not None:
        # Positions follow the index over a run; ids of one run ascend with them.
        return ask(path, f"select * from decisions where {where} order by position", wanted)  # noqa: S608 - columns are ours
    newest = f"select * from decisions where {where} order by id desc limit :limit"  # noqa: S608 - columns are ours
    return ask(path, newest, {**wanted, "limit": limit})[::-1]

"""The calls of a run under one id, and what was decided about each."""

from __future__ import annotations

import os

from footprint_core.errors import LedgerError
from footprint_observe.query.database import Record, ask

_CALLS = """
select * from tool_calls where run_id = :run_id and tool_call_id = :call_id order by position
"""

_DECIDED = """
select * from decisions
where run_id = :run_id and tool_call_id = :call_id and iteration = :iteration order by position
"""


class NoSuchCallError(LedgerError):
    """A run has no call of that id."""


def calls(path: str | os.PathLike[str], run_id: str, call_id: str) -> list[Record]:
    """The calls of a run under an id, in order; more than one where the model used it again.

    Raises:
        NoSuchCallError: There is none.
        LedgerOpenError: There is no ledger at that path, or it cannot be read.
    """
    found = ask(path, _CALLS, {"run_id": run_id, "call_id": call_id})
    if not found:
        raise NoSuchCallError("The run has no call of that id; `footprint show` lists its calls.")
    return found


def decided(path: str | os.PathLike[str], call: Record) -> list[Record]:
    """The decisions about one of `calls`, in order.

    Raises:
        LedgerOpenError: There is no ledger at that path, or it cannot be read.
    """
    about = {"run_id": call["run_id"], "call_id": call["tool_call_id"], "iteration": call["iteration"]}
    return ask(path, _DECIDED, about)


def approved_args(decisions: list[Record]) -> str | None:
    """The args a person approved, as JSON text, when a rule changed them behind the approval; else None.

    Args:
        decisions: The decisions about one call, in order.
    """
    return next((row["before"] for row in decisions if row["after_approval"]), None)

"""The runs of a ledger, and the one a person means."""

from __future__ import annotations

import os

from footprint_core.errors import LedgerError
from footprint_observe.query.database import Record, ask

_NEWEST = "select * from runs order by id desc limit :limit"
_ONE = "select * from runs where run_id = :run_id"

# A range over run ids, which are hexadecimal, so that their index is used.
_MEANT = "select distinct run_id from facts where run_id >= :name and run_id < :name || 'g' limit 2"


class NoSuchRunError(LedgerError):
    """No run, or more than one, is meant by what was given."""


def runs(path: str | os.PathLike[str], *, limit: int = 20) -> list[Record]:
    """The newest runs, newest first.

    Raises:
        LedgerOpenError: There is no ledger at that path, or it cannot be read.
    """
    return ask(path, _NEWEST, {"limit": limit})


def run(path: str | os.PathLike[str], name: str) -> Record:
    """One run, by its id, by the beginning of its id, or `last` for the newest.

    Raises:
        NoSuchRunError: No run is meant, or more than one.
        LedgerOpenError: There is no ledger at that path, or it cannot be read.
    """
    if name == "last":
        found = ask(path, _NEWEST, {"limit": 1})
    elif name:
        found = [row for one in ask(path, _MEANT, {"name": name}) for row in ask(path, _ONE, one)]
    else:
        found = []
    if len(found) == 1:
        return found[0]
    if found:
        raise NoSuchRunError("More than one run begins like that; give more of its id.")
    raise NoSuchRunError("There is no such run in this ledger; `footprint runs` lists them.")

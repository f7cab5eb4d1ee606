"""Everything one run did, in order: messages, model calls, decisions, tools, questions, its end."""

from __future__ import annotations

import os
from typing import Unpack

from footprint_observe.query.database import Record, reading
from footprint_observe.query.filters import Filters, wanted
from footprint_observe.query.rows import entry_record, rows
from footprint_observe.query.runs import meant


def timeline(path: str | os.PathLike[str], run: str = "last", **filters: Unpack[Filters]) -> list[Record]:
    """The entries of a run, in order.

    A record has the entry's place (`id`, `run_id`, `segment`, `position`, `recorded_at`), its `kind`, and
    the fields of that kind (see `footprint_core.facts`); a field that does not apply is absent.

    Args:
        path: The ledger file.
        run: The run: its id, the beginning of one, or `last`.
        filters: Which entries; see `Filters`.

    Raises:
        QuestionError: A filter is none there is.
        NoSuchRunError: No run is meant, or more than one.
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    asked = wanted(filters)
    with reading(path) as db:
        condition = asked.sql("f.run_id = :run")
        values = {**asked.values, "run": meant(db, run)}
        return [entry_record(row) for row in rows(db, f"{condition} ORDER BY f.position", values)]

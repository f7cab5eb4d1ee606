"""The sealed values of a run or of one row, opened with their keys."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from sqlite_utils import Database

from footprint_observe.keyring import KeyRing
from footprint_observe.query.database import Record, reading
from footprint_observe.query.refusals import NotInLedgerError
from footprint_observe.query.rows import rows
from footprint_observe.query.runs import meant
from footprint_observe.redaction.opened import opened_fields

# The mark of a row could say it too, but a row that another ledger filed has its marks elsewhere.
_SEALED = "EXISTS (SELECT 1 FROM vals AS v WHERE v.fact_id = f.id AND instr(v.json, 'sealed:') > 0)"


def sealed(
    path: str | os.PathLike[str],
    *,
    keys: KeyRing,
    run: str = "last",
    row: int | None = None,
    field: str | None = None,
) -> list[Record]:
    """What was sealed, opened, in the order of the file.

    A record has the place of its row (`id`, `run_id`, `position`), its `kind`, the path it stands at
    (`field`) and what it is (`value`), or why it did not open (`refusal`). A text that only looks sealed,
    which anybody can have written, is among those that do not.

    Args:
        path: The ledger file.
        keys: The keys it was sealed under.
        run: The run: its id, the beginning of one, or `last`.
        row: One row, by its id, whatever its run is.
        field: Only this value of a row, and what stands below it: `before`, or `before.customer`.

    Raises:
        NotInLedgerError: No run is meant, or there is no such row.
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    with reading(path) as db:
        if row is None:
            return list(_opened(db, f"f.run_id = :run AND {_SEALED}", {"run": meant(db, run)}, keys, field))
        if not list(rows(db, "f.id = :row", {"row": row})):
            raise NotInLedgerError(
                "There is no row of that id in this ledger; `footprint timeline` lists them."
            )
        return list(_opened(db, f"f.id = :row AND {_SEALED}", {"row": row}, keys, field))


def _opened(
    db: Database, condition: str, values: Mapping[str, object], keys: KeyRing, field: str | None
) -> Iterator[Record]:
    for row in rows(db, f"{condition} ORDER BY f.id", values):
        for one in opened_fields(row.entry.fact, keys, field):
            said: Record = {"value": one.value} if one.refusal is None else {"refusal": one.refusal}
            yield {
                "id": row.id,
                "run_id": row.run_id,
                "position": row.entry.position,
                "kind": str(row.entry.fact.__struct_config__.tag),
                "field": one.path,
                **said,
            }

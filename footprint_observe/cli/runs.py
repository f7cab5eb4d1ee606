"""`footprint runs`: the newest runs."""

from __future__ import annotations

from typing import Any

import click
from rich.text import Text

from footprint_core import plain
from footprint_observe.cli.options import db_option, filter_options, json_option, limit_option
from footprint_observe.cli.output import Column, aligned, line, note, on_day, paged, print_json
from footprint_observe.query.runs import ENDED, Ended, RunRow
from footprint_observe.query.runs import runs as newest

_ID = 16
"""Characters of a run id that are shown: the time and a random part. Commands take the beginning of an id."""

_COLUMNS = (
    Column("run"),
    Column("started"),
    Column("agent"),
    Column("outcome"),
    Column("rows", is_number=True),
    Column("deny", is_number=True),
    Column("ask", is_number=True),
    Column("message"),
)
# The widest the columns before the message get.
_OTHERS = 76
_COLORS = {"answered": "green", "denied": "red", "failed": "red", "paused": "yellow", "open": "yellow"}


@click.command()
@db_option
@json_option
@click.option("--ended", type=click.Choice(ENDED), help="Only runs that ended like this, or are open.")
@filter_options
@limit_option(20)
def runs(*, path: str, as_json: bool, ended: Ended | None, limit: int, **filters: Any) -> None:
    """List the newest runs, newest first.

    --since and --until are about the start of a run; with any other filter, only runs are listed that hold a
    decision which matches.
    """
    found = newest(path, limit=limit, ended=ended, **filters)
    if as_json:
        print_json(found)
        return
    if not found:
        asked = ended is not None or any(value is not None for value in filters.values())
        note(
            "No run of this ledger matches; `footprint runs` without filters lists the newest."
            if asked
            else "This ledger has no runs yet."
        )
        return
    with paged() as out:
        width = max(10, out.width - _OTHERS) if out.is_terminal else 200
        out.print(aligned(_COLUMNS, [_cells(run, width) for run in found]), soft_wrap=True)
    if len(found) == limit:
        note(f"These are the newest {limit}; --limit shows more.")


def _cells(run: RunRow, width: int) -> tuple[Text | str, ...]:
    return (
        line(run["run_id"][:_ID]),
        _started(run["started_at"]),
        line(run["agent"], 12),
        Text(run["outcome"], style=_COLORS.get(run["outcome"], "")),
        str(run["decisions"]),
        str(run["denials"]),
        str(run["asks"]),
        "" if run["question"] is None else line(plain.rendered(run["question"]), width),
    )


def _started(iso: str) -> str:
    when = on_day(iso)
    return when if when == iso else when[5:]

"""`footprint timeline RUN`: everything one run did, in order."""

from __future__ import annotations

from typing import Any

import click
from rich.text import Text

from footprint_observe.cli.difference import difference
from footprint_observe.cli.options import db_option, filter_options, json_option, run_argument
from footprint_observe.cli.output import (
    COLORS,
    Column,
    aligned,
    at_time,
    line,
    note,
    paged,
    print_json,
    short,
    shown,
)
from footprint_observe.query.database import Record
from footprint_observe.query.timeline import timeline as entries_of

# What has a place of its own in a line, or says only where the entry is.
_PLACED = frozenset(
    {"id", "run_id", "segment", "position", "recorded_at", "kind", "iteration"}
    | {"tool_name", "tool_call_id", "tool_source"}
)
_WIDTH = 200
_COLUMNS = (Column("#", is_number=True), Column("at"), Column("what"), Column(""))


@click.command()
@run_argument
@db_option
@json_option
@filter_options
def timeline(*, run: str, path: str, as_json: bool, **filters: Any) -> None:
    """List everything RUN did, in order: an id, the beginning of one, or `last`."""
    entries = entries_of(path, run, **filters)
    if as_json:
        print_json(entries)
        return
    if not entries:
        note("No entry of that run matches.")
        return
    with paged() as out:
        out.print(aligned(_COLUMNS, [_cells(entry) for entry in entries]), soft_wrap=True)


def _cells(entry: Record) -> tuple[Text | str, ...]:
    when = Text(at_time(entry["recorded_at"]), style="dim")
    return str(entry["position"]), when, line(entry["kind"]), Text.from_markup(_told(entry))


def _told(entry: Record) -> str:
    if entry["kind"] == "decision":
        return _decision(entry)
    parts = [_call(entry)] if entry.get("tool_name") else []
    for name, value in entry.items():
        # What is False, empty or absent is how most entries are.
        if name not in _PLACED and value not in (None, False, "", [], {}):
            parts.append(f"[dim]{name}[/] {shown(value, _WIDTH)}")
    return "  ".join(parts)


def _call(entry: Record) -> str:
    source = f" of {short(entry['tool_source'])}" if entry.get("tool_source") else ""
    return f"{short(entry['tool_name'])} ({short(entry.get('tool_call_id', ''), 140)}){source}"


def _decision(entry: Record) -> str:
    color = COLORS[entry["outcome"]]
    parts = [_call(entry)] if entry.get("tool_name") else []
    parts.append(f"{entry['moment']} {short(entry['middleware'], 40)} [{color}]{entry['outcome']}[/]")
    if entry.get("decided_by") is not None:
        parts.append(f"by {shown(entry['decided_by'])}")
    if entry.get("why") is not None:
        parts.append(f"[italic]{shown(entry['why'], _WIDTH)}[/]")
    if entry["changed"]:
        parts += difference(entry.get("before"), entry.get("after")).splitlines()
    return "  ".join(parts)

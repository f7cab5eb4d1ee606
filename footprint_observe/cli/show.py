"""`footprint show RUN`: everything one run did, in order."""

from __future__ import annotations

import click
from rich.table import Table

from footprint_observe.cli.difference import difference
from footprint_observe.cli.output import COLORS, console, db_option, short, shown
from footprint_observe.query.database import Record
from footprint_observe.query.runs import run as one_run
from footprint_observe.query.timeline import timeline


@click.command()
@click.argument("run")
@db_option
def show(run: str, path: str) -> None:
    """Show everything RUN did: an id, the beginning of one, or `last`."""
    found = one_run(path, run)
    out = console()
    out.print(f"run [bold]{short(found['run_id'])}[/], {short(found['agent'])}, {found['outcome']}")
    out.print(f"from {found['started_at']} to {found['ended_at'] or 'now'}")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    entries = timeline(path, found["run_id"])
    certain = ("tool.finished", "call.answered")
    ended = [entry for entry in entries if entry["kind"] in certain and not entry["cancelled"]]
    finished = {(entry["iteration"], entry["tool_call_id"]) for entry in ended}
    for entry in entries:
        table.add_row(str(entry["position"]), entry["kind"], _told(entry, finished))
    out.print(table)


def _told(entry: Record, finished: set[tuple[int, str]]) -> str:
    kind = entry["kind"]
    if kind == "decision":
        return _decision(entry)
    tool = short(f"{entry['tool_name']} ({entry['tool_call_id']})", 140) if entry["tool_name"] else ""
    if kind == "tool.intended":
        doubt = "" if (entry["iteration"], entry["tool_call_id"]) in finished else "  [red]may have run[/]"
        return f"{tool} {shown(entry['args'], 200)}{doubt}"
    if kind == "tool.finished" and entry["cancelled"]:
        return f"{tool} cancelled  [red]may have run[/]"
    if kind == "tool.finished":
        return f"{tool} {shown(entry['result'], 200)}"
    if kind == "call.answered":
        return f"{tool} {entry['status']}" + (f": {shown(entry['text'], 200)}" if entry["text"] else "")
    parts = [tool, entry["outcome"] or "", shown(entry["text"], 200), short(entry["error_class"] or "")]
    return " ".join(part for part in parts if part)


def _decision(entry: Record) -> str:
    color = COLORS[entry["outcome"]]
    line = f"{entry['moment']} {short(entry['middleware'], 40)} [{color}]{entry['outcome']}[/]"
    if entry["changed"]:
        return f"{line} [italic]{shown(entry['why'], 200)}[/]\n{difference(entry['before'], entry['after'])}"
    return f"{line} [italic]{shown(entry['why'], 200)}[/]" if entry["why"] else line

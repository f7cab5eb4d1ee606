"""`footprint show RUN`: one run at a glance, and its calls."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.text import Text

from footprint_core import plain
from footprint_observe.cli.options import db_option, json_option, run_argument
from footprint_observe.cli.output import Column, aligned, counted, line, paged, print_json, short, shown
from footprint_observe.query.calls import CallRow, calls
from footprint_observe.query.runs import RunRow
from footprint_observe.query.runs import run as one_run

_COLUMNS = (
    Column("#", is_number=True),
    Column("call"),
    Column("tool"),
    Column("status"),
    Column("ms", is_number=True),
    Column("args, and result"),
)
_COLORS = {"ran": "green", "denied": "red", "failed": "red", "invalid": "red", "blocked": "red"}
_WIDTH = 300


@click.command()
@run_argument
@db_option
@json_option
def show(*, run: str, path: str, as_json: bool) -> None:
    """Show RUN at a glance, with its calls: an id, the beginning of one, or `last`.

    With --json the calls are the key `calls` of the run.
    """
    found = one_run(path, run)
    asked = calls(path, found["run_id"])
    if as_json:
        print_json([{**found, "calls": asked}])
        return
    with paged() as out:
        for told in _about(found):
            out.print(told, soft_wrap=True)
        if asked:
            out.print()
            out.print(aligned(_COLUMNS, [_cells(call) for call in asked]), soft_wrap=True)
        out.print(f"\n`footprint timeline {found['run_id'][:16]}` lists everything it did.", style="dim")


def _about(run: RunRow) -> Iterator[str]:
    yield f"run [bold]{short(run['run_id'])}[/], {short(run['agent'])}, [bold]{run['outcome']}[/]"
    yield f"from {run['started_at']} to {run['ended_at'] or 'now'}, {counted(run['segments'], 'segment')}"
    yield (
        f"{counted(run['decisions'], 'decision')}: {counted(run['denials'], 'denial')}, "
        f"{counted(run['asks'], 'question')} to a person"
    )
    if run["input_tokens"] is not None:
        yield (
            f"{counted(run['iterations'] or 0, 'model call')} of {short(run['model'])}, "
            f"{run['input_tokens']} tokens read, {run['output_tokens']} written"
        )
    if run["question"] is not None:
        yield f"message: {shown(run['question'], _WIDTH)}"
    if run["text"] is not None:
        yield f"answer: {shown(run['text'], _WIDTH)}"


def _cells(call: CallRow) -> tuple[Text | str, ...]:
    status = Text(call["status"] or "open", style=_COLORS.get(call["status"] or "", "yellow"))
    if call["in_doubt"]:
        status.append(", may have run", style="red")
    values = [
        line(plain.rendered(value), 120) for value in (call["args"], call["result"]) if value is not None
    ]
    return (
        str(call["position"]),
        line(call["tool_call_id"], 64),
        line(call["tool_name"]),
        status,
        "" if call["duration_us"] is None else f"{call['duration_us'] / 1000:.1f}",
        "  ".join(values),
    )

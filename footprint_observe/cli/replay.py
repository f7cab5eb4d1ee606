"""`footprint replay RUN`: a run folded again from the file, and whether its facts agree with each other."""

from __future__ import annotations

import json
from typing import Any

import click
import msgspec
from rich.table import Table

from footprint_core import plain
from footprint_observe.cli.exits import Exit
from footprint_observe.cli.options import db_option, json_option, run_argument
from footprint_observe.cli.output import console, counted, paged, print_json, short
from footprint_observe.query.replay import Replay, Step
from footprint_observe.query.replay import replay as folded

_IDS = ("call_id", "pause_id")


@click.command()
@run_argument
@click.option("--steps", is_flag=True, help="Print the run behind every fact.")
@click.option("--values", is_flag=True, help="With --steps, also what the facts hold.")
@json_option
@db_option
@click.pass_context
def replay(ctx: click.Context, run: str, *, steps: bool, values: bool, as_json: bool, path: str) -> None:
    """Fold RUN again from the file, and say whether its facts agree: an id, the beginning of one, or `last`.

    Every fact that counts something (messages of a request, calls, tokens, segments) is compared with the
    facts before it. The exit code is 0 when all agree and 1 when one does not.
    """
    taken: list[Step] = []
    found = folded(path, run, told=taken.append if steps else None)
    if as_json:
        print_json([*(_plain(step, values=values) for step in taken), msgspec.to_builtins(found)])
    elif steps:
        with paged() as out:
            out.print(_table(taken, values=values))
    if not as_json:
        console().print(_told(found))
    ctx.exit(Exit.DONE if found.matches else Exit.NO)


def _told(found: Replay) -> str:
    if (difference := found.difference) is None:
        lines = [f"[green]matches[/]: {counted(found.facts, 'fact')} of run {short(found.run_id)}"]
    else:
        where = f"position {difference.position} ({difference.kind}) of run {short(found.run_id)}"
        says, folded = _word(difference.says), _word(difference.folded)
        lines = [
            f"[red]does not match[/] at {where}",
            f"{difference.what}: the fact says {says}, the facts before it say {folded}",
        ]
    lines.append(
        f"{counted(found.segments, 'segment')}, {found.outcome or 'open'}; "
        f"{counted(found.redacted, 'value')} redacted, {found.erased} erased"
    )
    if found.elsewhere:
        lines.append(
            "What came before is in another ledger; it is taken to be as long as the first request says."
        )
    return "\n".join(lines)


def _word(value: object) -> str:
    return short(json.dumps(value))


def _plain(step: Step, *, values: bool) -> dict[str, Any]:
    out: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(step, fact=None))
    del out["fact"]
    return out | _ids(step) | ({"values": _values(step)} if values else {})


def _ids(step: Step) -> dict[str, str]:
    return {name: found for name in _IDS if (found := getattr(step.fact, name, None)) is not None}


def _values(step: Step) -> dict[str, Any]:
    held = {name: getattr(step.fact, name) for name in step.fact.values}
    return {
        name: plain.copy(msgspec.to_builtins(value))
        for name, value in held.items()
        if value is not msgspec.UNSET
    }


def _table(steps: list[Step], *, values: bool) -> Table:
    table = Table(box=None, pad_edge=False)
    for name, right in (("#", True), ("seg", True), ("fact", False), ("iter", True), ("messages", True)):
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    table.add_column("came", no_wrap=True)
    table.add_column("in", justify="right", no_wrap=True)
    table.add_column("out", justify="right", no_wrap=True)
    table.add_column("id", overflow="fold", ratio=1)
    for step in steps:
        about = [short(one, 70) for one in _ids(step).values()]
        if values:
            about += (f"{name} {short(plain.rendered(value), 200)}" for name, value in _values(step).items())
        table.add_row(
            str(step.position),
            str(step.segment),
            step.kind,
            str(step.iteration),
            str(step.messages),
            " ".join(step.came),
            str(step.input_tokens),
            str(step.output_tokens),
            "\n".join(about),
        )
    return table

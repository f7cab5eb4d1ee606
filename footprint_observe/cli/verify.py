"""`footprint verify`: whether the file is still what was appended to it."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from itertools import chain
from typing import assert_never

import click
import msgspec
from rich.console import Console
from rich.progress import Progress as Bar

from footprint_observe.cli.exits import Exit
from footprint_observe.cli.options import db_option, json_option
from footprint_observe.cli.output import console, counted, paged, print_json, short
from footprint_observe.query.runs import run as one_run
from footprint_observe.store.verify import Fault, Head, Level, Progress, Verified, heads
from footprint_observe.store.verify import verify as verified

_LEVELS: dict[str, Level] = {"1": 1, "2": 2}


@click.command()
@click.option("--run", metavar="RUN", help="Only this run: an id, the beginning of one, or `last`.")
@click.option(
    "--level",
    type=click.Choice(list(_LEVELS)),
    default="2",
    show_default=True,
    help="1: ids, positions, hashes and the schema; 2: values and sums, too.",
)
@click.option(
    "--heads", "with_heads", is_flag=True, help="Print the last hash of every run, to be kept elsewhere."
)
@json_option
@db_option
@click.pass_context
def verify(
    ctx: click.Context, *, run: str | None, level: str, with_heads: bool, as_json: bool, path: str
) -> None:
    """Compute every hash and commitment anew, and name the first row that does not follow.

    The exit code is 0 when all rows follow, and 1 when one does not, when a table, an index, a trigger or a
    view is not the one this release makes, or when values are missing: their rows commit to them and follow,
    but no entry says who erased them. Rows cut off from the end of a run leave no trace in the file; a hash
    that was kept elsewhere tells (--heads).
    """
    run_id = None if run is None else _meant(path, run)
    with _bar() as progress:
        found = verified(path, run_id, level=_LEVELS[level], progress=progress)
    match found:
        case Verified():
            _say(found, heads(path, run_id) if with_heads else (), level=level, as_json=as_json)
            if found.erased:
                ctx.exit(Exit.NO)
        case Fault():
            _blame(found, as_json=as_json)
            ctx.exit(Exit.NO)
        case _:
            assert_never(found)


def _meant(path: str, run: str) -> str:
    # An id is looked up among the rows: a run whose first row was changed is not among the runs any more.
    return run if any(True for _ in heads(path, run)) else one_run(path, run)["run_id"]


def _say(found: Verified, kept: Iterable[Head], *, level: str, as_json: bool) -> None:
    if as_json:
        print_json(
            chain(
                ({"follows": not found.erased} | msgspec.to_builtins(found),), map(msgspec.to_builtins, kept)
            )
        )
        return
    said = "[red]values are missing[/]" if found.erased else "[green]follows[/]"
    said += f": {counted(found.rows, 'row')} of {counted(found.runs, 'run')}"
    if _LEVELS[level] > 1:
        said += f"; {counted(found.values, 'value')} checked, {found.erased} erased"
    with paged() as out:
        out.print(said)
        if found.erased:
            missing = counted(found.erased, "value")
            are, them = ("is", "it") if found.erased == 1 else ("are", "them")
            out.print(
                f"{missing}, the first of row {found.first_erased}, {are} not in the file, and no entry says "
                f"who erased {them}.",
                soft_wrap=True,
            )
        for head in kept:
            out.print(f"{short(head.run_id)} {head.position} {head.hash}", soft_wrap=True)


def _blame(found: Fault, *, as_json: bool) -> None:
    if as_json:
        print_json(({"follows": False} | msgspec.to_builtins(found),))
        return
    what = "the schema" if found.row is None else f"row {found.row}"
    of_run = "" if found.run_id is None else f" (position {found.position} of run {short(found.run_id)})"
    console().print(f"[red]does not follow[/]: {what}{of_run}")
    console().print(short(found.why, 200))


@contextmanager
def _bar() -> Generator[Progress | None]:
    """What shows the progress, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("rows")
        yield lambda done, of: bar.update(task, completed=done, total=of)

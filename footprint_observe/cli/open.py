"""`footprint open`: what a policy sealed, opened with its keys."""

from __future__ import annotations

import click
from rich.markup import escape

from footprint_core import plain
from footprint_observe.cli.complete import run_ids
from footprint_observe.cli.exits import Exit
from footprint_observe.cli.keys import key_ring, keys_option
from footprint_observe.cli.options import db_option, json_option
from footprint_observe.cli.output import note, one_line, paged, print_json, short
from footprint_observe.query.sealed import sealed


@click.command()
@click.argument("run", required=False, shell_complete=run_ids)
@click.option(
    "--id", "row", type=click.IntRange(min=1, max=2**63 - 1), metavar="ROW", help="One row, by its id."
)
@click.option("--field", metavar="PATH", help="Only this value, and what stands below it: before.customer.")
@keys_option
@db_option
@json_option
@click.pass_context
def open(
    ctx: click.Context,
    *,
    run: str | None,
    row: int | None,
    field: str | None,
    keys: str | None,
    path: str,
    as_json: bool,
) -> None:
    """Show what was sealed in RUN, or in one row, opened with the keys.

    RUN is an id, the beginning of one, or `last`. Nothing is written; the ledger stays sealed. What does not
    open is said with its place, and the rest is shown; the exit code is 1 when nothing opened.

    A seal is bound to the kind of its row and its path there. A sealed text that was copied to the same
    path of another row opens there, too.
    """
    if (run is None) == (row is None):
        raise click.UsageError("Name a run, or one row with --id.")
    found = sealed(path, keys=key_ring(keys), run=run or "", row=row, field=field)
    done = [one for one in found if "value" in one]
    if as_json:
        print_json(found)
    elif done:
        with paged() as out:
            for one in done:
                place = f"[bold]{one['id']}[/]  {one['kind']}  [cyan]{short(one['field'], 200)}[/]"
                out.print(f"{place}: {escape(one_line(plain.rendered(one['value'])))}", soft_wrap=True)
    for one in found:
        if "refusal" in one:
            note(f"Row {one['id']}, {one_line(str(one['field']))}: {one['refusal']}")
    if not found:
        note("Nothing is sealed there.")
    if not done:
        ctx.exit(Exit.NO)

"""`footprint abandon`: a run that has no end is given up, and its end is on record."""

from __future__ import annotations

import asyncio

import click

from footprint_core import abandon_run
from footprint_observe.cli.options import db_option, run_argument
from footprint_observe.cli.output import note
from footprint_observe.query.database import reading
from footprint_observe.query.runs import meant
from footprint_observe.store.ledger import SqliteLedger


def _told(_ctx: click.Context, _param: click.Parameter, given: str) -> str:
    if not given.strip():
        raise click.BadParameter("it is blank, and goes on record; say it.")
    return given


@click.command()
@db_option
@run_argument
@click.option("--by", metavar="NAME", required=True, callback=_told, help="Who gives it up.")
@click.option("--reason", metavar="TEXT", required=True, callback=_told, help="Why.")
def abandon(*, path: str, run: str, by: str, reason: str) -> None:
    """Give up RUN, which has no end or waits for a person: nothing continues it.

    RUN is its id, the beginning of it, or `last`. A question that is open takes no answer any more, and a
    process that still runs it stops at its next step.
    """
    with reading(path) as db:
        run_id = meant(db, run)
    asyncio.run(_abandon(path, run_id, by, reason))
    note(f"The run {run_id} is given up.")


async def _abandon(path: str, run_id: str, by: str, reason: str) -> None:
    async with SqliteLedger(path) as ledger:
        await abandon_run(ledger, run_id, by=by, reason=reason)

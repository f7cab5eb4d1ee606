"""`footprint pending`: the questions that wait for a person."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import click

from footprint_core import plain
from footprint_observe.cli.exits import Exit
from footprint_observe.cli.keys import key_ring, keys_option
from footprint_observe.cli.options import db_option, json_option, limit_option, time_options
from footprint_observe.cli.output import age, note, on_day, paged, print_json, short
from footprint_observe.query.database import Record
from footprint_observe.query.pending import pending as open_questions

_RUN = 16


@click.command()
@db_option
@json_option
@time_options
@click.option("--rule", metavar="NAME", help="Only questions of this rule.")
@click.option("--tool", metavar="NAME", help="Only about calls of this tool.")
@click.option("--source", metavar="SERVER", help="Only about tools of this server.")
@limit_option(50)
@click.option(
    "--show", is_flag=True, help="Open what is sealed: question, arguments, what a person is shown."
)
@keys_option
@click.pass_context
def pending(
    ctx: click.Context,
    *,
    path: str,
    as_json: bool,
    since: datetime | None,
    until: datetime | None,
    rule: str | None,
    tool: str | None,
    source: str | None,
    limit: int,
    show: bool,
    keys: str | None,
) -> None:
    """List the questions that wait for a person, the newest last.

    Ends with 1 when --show can open none of them.
    """
    ring = key_ring(keys) if show else None
    found = open_questions(
        path, keys=ring, since=since, until=until, rule=rule, tool=tool, source=source, limit=limit
    )
    if as_json:
        print_json(found)
    elif not found:
        note("No question is open.")
    else:
        with paged() as out:
            for one in found:
                for line in _lines(one, show=show):
                    out.print(line, soft_wrap=True)
        if len(found) == limit:
            note(f"These are the newest {limit}; --limit shows more.")
    if show and found and all(one["problem"] is not None for one in found):
        ctx.exit(Exit.NO)


def _lines(one: Record, *, show: bool) -> Iterator[str]:
    by = f" of {short(one['middleware'], 40)}" if one["middleware"] else ""
    source = f" ({short(one['tool_source'], 40)})" if one["tool_source"] else ""
    yield (
        f"[bold]{short(one['pause_id'])}[/]  [yellow]{short(one['kind'])}[/]{by} about "
        f"{short(one['tool_name'], 60)}{source}"
    )
    expires = "" if one["expires_at"] is None else f", expires {on_day(one['expires_at'])}"
    expired = "  [red]expired[/]" if one["expired"] else ""
    yield (
        f"  run {short(one['run_id'][:_RUN])}, opened {on_day(one['opened_at'])}, "
        f"{age(one['age_seconds'])} ago{expires}{expired}"
    )
    if show and one["problem"] is not None:
        yield f"  [dim]not shown: {short(one['problem'], 400)}[/]"
    elif show:
        for name in ("question", "args", "shown"):
            if one[name] is not None:
                yield f"  {name}: {short(plain.rendered(one[name]), 400)}"

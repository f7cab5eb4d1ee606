"""The options that commands share, so that they look alike."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from footprint_core.decisions import Verdict
from footprint_core.moments import LOOP_MOMENTS
from footprint_observe.cli.complete import rule_names, run_ids
from footprint_observe.query.refusals import QuestionError
from footprint_observe.query.times import instant

F = TypeVar("F", bound=Callable[..., Any])

LIMIT = click.IntRange(min=1, max=2**63 - 1)
"""How many rows may be asked for: what SQLite can count."""

_VERDICTS: tuple[Verdict, ...] = ("allow", "deny", "ask")


def _time(ctx: click.Context, param: click.Parameter, given: str | None) -> datetime | None:
    del ctx
    try:
        return None if given is None else instant(given, end=param.name == "until")
    except QuestionError as error:
        raise click.BadParameter(str(error)) from None


def db_option(function: F) -> F:
    """The option that says which ledger file is meant: the parameter `path`."""
    return click.option(
        "--db",
        "path",
        default="footprint.db",
        show_default=True,
        envvar="FOOTPRINT_DB",
        metavar="PATH",
        help="The ledger file; FOOTPRINT_DB names it too.",
    )(function)


def json_option(function: F) -> F:
    """The option that prints JSON Lines instead of a table: the parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")(function)


def limit_option(default: int | None, what: str = "At most so many.") -> Callable[[F], F]:
    """The option that bounds how many rows are printed: the parameter `limit`."""
    return click.option(
        "--limit", default=default, show_default=default is not None, metavar="N", type=LIMIT, help=what
    )


def time_options(function: F) -> F:
    """The options that bound a span of time: the parameters `since` and `until`, aware datetimes or None."""
    until = click.option(
        "--until", callback=_time, metavar="TIME", help="Before this time; a date is the whole day."
    )
    since = click.option(
        "--since",
        callback=_time,
        metavar="TIME",
        help="From this time on: 2026-03-31, 2026-03-31T09:30 (UTC), today, 30m, 2h or 3d.",
    )
    return since(until(function))


def run_argument(function: F) -> F:
    """The run that is meant: the parameter `run`."""
    return click.argument("run", shell_complete=run_ids)(function)


def run_option(text: str = "Only this run: its id, the beginning of it, or `last`.") -> Callable[[F], F]:
    """The option that names a run: the parameter `run`."""
    return click.option("--run", "run", metavar="RUN", shell_complete=run_ids, help=text)


def filter_options(function: F) -> F:
    """The options that say which rows are meant, times included: the keys of `query.filters.Filters`."""
    options = (
        time_options,
        click.option("--rule", metavar="NAME", shell_complete=rule_names, help="Only this rule."),
        click.option("--version", metavar="VERSION", help="Only this version of a rule."),
        click.option("--outcome", type=click.Choice(_VERDICTS), help="Only this outcome."),
        click.option("--moment", type=click.Choice(LOOP_MOMENTS), help="Only this moment."),
        click.option("--tool", metavar="NAME", help="Only calls of this tool."),
        click.option("--source", metavar="SERVER", help="Only tools of this server."),
        click.option("--person", metavar="NAME", help="Only what this person decided."),
        click.option(
            "--shadow/--no-shadow", default=None, help="Only what was just recorded, or only what counted."
        ),
        click.option(
            "--changed/--unchanged", default=None, help="Only what changed something, or only what did not."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function

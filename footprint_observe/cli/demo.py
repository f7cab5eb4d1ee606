"""`footprint demo`: a refund agent runs, a person is asked, and the ledger tells what was decided."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import click
from rich.console import Console
from rich.panel import Panel

from footprint_core import (
    Agent,
    Answer,
    AskPause,
    Outcome,
    PersonDecision,
    Watcher,
    check_in_approved,
    check_in_declined,
)
from footprint_observe import semconv
from footprint_observe.cli.decisions import decision_table
from footprint_observe.cli.options import db_option
from footprint_observe.cli.output import console, notices_of, short
from footprint_observe.demo.refunds import refund_agent
from footprint_observe.demo.story import MESSAGE, StoryModel
from footprint_observe.plugins import recorder
from footprint_observe.query.decisions import decisions
from footprint_observe.store.ledger import SqliteLedger

_TRY = (
    "select moment, middleware, outcome, why from decisions order by id",
    "select tool_name, status, args, result from tool_calls order by id",
    "select middleware, outcome, count(*) as times from decisions group by 1, 2 order by times desc",
)

_JAEGER = "http://localhost:16686"


@click.command()
@db_option
@click.option("--approve", is_flag=True, help="Let the refund happen without asking.")
@click.option("--decline", is_flag=True, help="Refuse the refund without asking.")
@click.option(
    "--otlp", metavar="URL", help="Ship the spans to this OTLP endpoint, e.g. http://localhost:4318."
)
def demo(*, path: str, approve: bool, decline: bool, otlp: str | None) -> None:
    """Run a refund agent with a scripted model and show what its rules decided."""
    if approve and decline:
        raise click.UsageError("--approve and --decline are two answers to one question; give one of them.")
    answer = "approve" if approve else "decline" if decline else None
    out = console()
    service = os.environ.get("OTEL_SERVICE_NAME") or "footprint"
    watchers = [] if otlp is None else [_spans_to(otlp, service)]
    ledger = SqliteLedger(path)
    out.print(Panel(MESSAGE, title="the customer writes", title_align="left"))
    outcome = _play(out, refund_agent(StoryModel(), ledger, watchers), answer)
    rows = decisions(path, run=outcome.run_id)
    out.print(decision_table(rows))
    out.print(Panel(short(outcome.text, 1000), title="the customer reads", title_align="left"))
    _say_what_next(out, path, outcome.run_id)
    if otlp is not None:
        notices = notices_of(watchers)
        if not notices and not all(row["trace_id"] for row in rows):
            # A row names the trace of its segment, unless a sampler leaves that out.
            notices = ["Not all of this run was sent; OTEL_TRACES_SAMPLER says how much is."]
        if notices:
            out.print(*(short(notice, 200) for notice in notices), sep="\n")
        else:
            _say_where_to_look(out, otlp, service, outcome.run_id)


def _spans_to(otlp: str, service: str) -> Watcher:
    return cast("Watcher", cast("Any", recorder("otel_spans")).to_otlp(otlp, service_name=service))


def _play(out: Console, agent: Agent, answer: str | None) -> Answer:
    # The person is asked between two event loops: inside one, the first Ctrl-C would only be noted.
    try:
        outcome: Outcome = asyncio.run(_awaited(agent.run(MESSAGE)))
        while not isinstance(outcome, Answer):
            if not isinstance(outcome, AskPause):
                raise TypeError("Only a rule asks a person in the demonstration.")
            decision = _decide(out, outcome, answer)
            outcome = asyncio.run(_awaited(agent.resume(outcome.checkpoint, decision)))
        return outcome
    finally:
        asyncio.run(agent.close())


async def _awaited(outcome: Awaitable[Outcome]) -> Outcome:
    return await outcome


def _decide(out: Console, pause: AskPause, answer: str | None) -> PersonDecision:
    """Ask the person at the terminal, unless the answer was given with the command."""
    out.print(
        Panel(
            f"{short(pause.question, 200)}\n[dim]{short(pause.tool_name)} {short(str(pause.args), 200)}[/]",
            title=f"{short(pause.middleware)} asks a person",
            title_align="left",
            border_style="yellow",
        )
    )
    if answer is None and sys.stdin.isatty():
        answer = "approve" if click.confirm("Approve?", default=False) else "decline"
    elif answer is None:
        out.print("Nobody is at a terminal, so it is declined; `footprint demo --approve` approves it.")
    if answer == "approve":
        return check_in_approved(by="you@terminal")
    return check_in_declined(by="you@terminal")


def _say_what_next(out: Console, path: str, run_id: str) -> None:
    out.print(f"The table was read from [bold]{short(path, 200)}[/], run {run_id}. Ask it anything:")
    for query in _TRY:
        out.print(f'  sqlite3 -box {short(path, 200)} "{query}"', soft_wrap=True)


def _say_where_to_look(out: Console, otlp: str, service: str, run_id: str) -> None:
    parts = urlsplit(otlp)
    # Without the password that may stand before the host.
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    tags = json.dumps({semconv.RUN_ID: run_id}, separators=(",", ":"))
    out.print(
        f"The spans were sent to {short(address, 200)}, for the service [bold]{short(service)}[/]. The run "
        "paused, so they are two traces, the second linked to the first; each has a span with the tag"
    )
    out.print(f"  {semconv.RUN_ID}={run_id}", soft_wrap=True)
    out.print("Jaeger, at its usual address, finds both with")
    out.print(f"  {_JAEGER}/search?{urlencode({'service': service, 'tags': tags})}", soft_wrap=True)

"""`footprint backtest`: what rules would have decided about recorded conversations."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any, cast, get_args

import click
from rich.console import Console
from rich.table import Table

from footprint_core import Watcher
from footprint_core.watch import Recorder
from footprint_observe.backtest import (
    Answering,
    BacktestReport,
    Rules,
    Transcript,
    load_rules,
    read_transcripts,
    run_backtest,
)
from footprint_observe.cli.output import COLORS, console, counted, notices_of, short
from footprint_observe.plugins import recorder
from footprint_observe.store.ledger import SqliteLedger

_SHOWN = 5
_CLOSE_SECONDS = 5.0
_TRY = "select moment, middleware, outcome, changed, count(*) as times from decisions group by 1, 2, 3, 4"


# A back-test in the file of a live agent would be taken for what that agent did, so no file is assumed.
@click.command()
@click.argument("file")
@click.option(
    "--rules", "named", metavar="MODULE:NAME", required=True, help="A mapping for .act(), or its maker."
)
@click.option("--db", "path", metavar="PATH", required=True, help="The ledger file the rows are appended to.")
@click.option(
    "--answer",
    type=click.Choice(get_args(Answering)),
    default="approve",
    show_default=True,
    help="How the questions of rules are answered.",
)
@click.option(
    "--otlp", metavar="URL", help="Ship the spans to this OTLP endpoint, e.g. http://localhost:4318."
)
def backtest(file: str, named: str, path: str, answer: Answering, otlp: str | None) -> None:
    """Play the recorded conversations of FILE under the rules and show what they decided.

    FILE has one conversation a line, {"id": ..., "messages": [...]}, in the OpenAI chat format. For airline
    conversations a set of rules is included: footprint_observe.backtest.airline:rules
    """
    transcripts = read_transcripts(file)
    # At the end, so that a file here cannot take the place of an installed module.
    sys.path.append(str(Path.cwd()))
    rules = load_rules(named)
    watchers = [] if otlp is None else [cast("Watcher", cast("Any", recorder("otel_spans")).to_otlp(otlp))]
    report = asyncio.run(_play(transcripts, rules, path, answer, watchers))
    out = console()
    _say_what_ran(out, report)
    out.print(_row_table(report))
    _say_divergences(out, report)
    for notice in notices_of(watchers):
        out.print(short(notice, 200))
    out.print(f"The rows are in [bold]{short(path, 200)}[/]. Ask it anything:")
    out.print(f'  sqlite3 -box {short(path, 200)} "{_TRY}"', soft_wrap=True)


async def _play(
    transcripts: tuple[Transcript, ...], rules: Rules, path: str, answer: Answering, watchers: list[Watcher]
) -> BacktestReport:
    try:
        # What a loss of power takes can be played again, so no row waits for the disk.
        ledger = SqliteLedger(path, durability="process")
        try:
            return await run_backtest(transcripts, rules, ledger=ledger, answer=answer, watch=watchers)
        finally:
            await ledger.close()
    finally:
        for watcher in watchers:
            if isinstance(watcher, Recorder):
                await asyncio.to_thread(watcher.close, _CLOSE_SECONDS)


def _say_what_ran(out: Console, report: BacktestReport) -> None:
    played, asked = counted(report.conversations, "conversation"), counted(report.asked, "question")
    out.print(
        f"{played}, {counted(report.runs, 'message')} of users. {counted(report.calls, 'call')}: "
        f"{report.executed} given their recorded result, {report.refused} refused. {asked}: "
        f"{report.approved} approved, {report.declined} declined, {report.stopped} left open."
    )
    out.print(
        f"{report.unanswered} unanswered, where a recording ends: {report.unanswered_messages} behind a "
        f"message, {report.unanswered_results} behind a result."
    )
    if report.denied_messages or report.denied_answers:
        messages, answers = (
            counted(report.denied_messages, "message"),
            counted(report.denied_answers, "answer"),
        )
        out.print(f"{messages} and {answers} denied.")
    if report.unplayed:
        were = "was" if report.unplayed == 1 else "were"
        out.print(
            f"{counted(report.unplayed, 'message')} of users behind an open question {were} not played."
        )


def _row_table(report: BacktestReport) -> Table:
    """Rows by moment and rule, a column for each outcome."""
    table = Table(title="Rows", title_justify="left", pad_edge=False, header_style="bold")
    table.add_column("moment", no_wrap=True)
    table.add_column("rule", no_wrap=True)
    for outcome, color in COLORS.items():
        table.add_column(outcome, justify="right", style=color)
    pairs = dict.fromkeys((moment, rule) for rule, moment, _ in report.rows)
    for moment, rule in pairs:
        counts = [
            sum(n for key, n in report.rows.items() if key == (rule, moment, outcome)) for outcome in COLORS
        ]
        table.add_row(moment, short(rule, 40), *(str(n) if n else "" for n in counts))
    return table


def _say_divergences(out: Console, report: BacktestReport) -> None:
    found = report.divergences
    kinds = Counter(divergence.what for divergence in found)
    listed = ", ".join(f"{times} {what}" for what, times in kinds.items())
    out.print(f"{counted(len(found), 'divergence')} from the recordings{f': {listed}' if listed else ''}.")
    for one in found[:_SHOWN]:
        about = f", call {short(one.call_id, 64)}" if one.call_id else ""
        rule = f", by {short(one.rule, 40)}" if one.rule else ""
        out.print(
            f"  line {one.line}, {short(one.conversation_id, 40)}: {one.what}{about}{rule}", soft_wrap=True
        )
    if len(found) > _SHOWN:
        out.print(f"  and {len(found) - _SHOWN} more")

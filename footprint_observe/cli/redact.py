"""`footprint redact --dry-run`: what a policy would take out of recorded conversations."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import click
from rich.text import Text

from footprint_core import plain
from footprint_observe.backtest import Looked, Transcript, look_through, read_transcripts
from footprint_observe.cli.output import Column, aligned, counted, line, note, one_line, paged, print_json
from footprint_observe.keyring import KeyRing
from footprint_observe.redaction.policy import Redaction

_COLUMNS = (
    Column("conversation"),
    Column("row"),
    Column("how"),
    Column("times", is_number=True),
    Column("path"),
)


@click.command()
@click.argument("file")
@click.option("--dry-run", is_flag=True, help="Only look: what is kept in a ledger is never redacted later.")
@click.option(
    "--policy",
    "named",
    metavar="POLICY",
    default="standard",
    show_default=True,
    help="standard, personal, or a TOML file.",
)
@click.option("--show", is_flag=True, help="Show what would be kept of every value that changes, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def redact(*, file: str, dry_run: bool, named: str, show: bool, as_json: bool) -> None:
    """Say what a policy would take out of the conversations of FILE, and never what it is.

    FILE has one conversation a line, {"id": ..., "messages": [...]}, in the OpenAI chat format. Pseudonyms
    and seals are made under a key of this one look.
    """
    if not dry_run:
        raise click.UsageError(
            "A policy redacts when a ledger writes; say --dry-run to see what it would do."
        )
    policy = _policy(named)
    looked = [(transcript, look_through(transcript, policy)) for transcript in read_transcripts(file)]
    if as_json:
        print_json(_records(looked, show=show))
        return
    findings = [finding for _, one in looked for finding in one.findings]
    if findings:
        cells = [
            (
                line(f.conversation_id, 40),
                f.kind,
                f.strategy,
                str(f.times),
                Text(line(f.path, 200), style="cyan"),
            )
            for f in findings
        ]
        with paged() as out:
            out.print(aligned(_COLUMNS, cells), soft_wrap=True)
            for told in _kept(looked) if show else ():
                out.print(told, soft_wrap=True, markup=False)
    _say_how_much(looked)


def _policy(named: str) -> Redaction:
    match named:
        case "standard":
            return Redaction.standard()
        case "personal":
            return Redaction.personal()
        case _:
            return Redaction.from_toml(named, keys=KeyRing.of({"dry-run": os.urandom(32)}))


def _kept(looked: list[tuple[Transcript, Looked]]) -> Iterator[str]:
    for transcript, one in looked:
        for kind, name, value in one.kept:
            yield f"\n{line(transcript.id, 40)}  {kind}  {name}\n  {one_line(plain.rendered(value))}"


def _records(looked: list[tuple[Transcript, Looked]], *, show: bool) -> Iterator[dict[str, Any]]:
    for transcript, one in looked:
        place = {"conversation": transcript.id, "line": transcript.line}
        for f in one.findings:
            yield {**place, "kind": f.kind, "path": f.path, "strategy": f.strategy, "times": f.times}
        for kind, name, value in one.kept if show else ():
            yield {**place, "kind": kind, "field": name, "kept": value}


def _say_how_much(looked: list[tuple[Transcript, Looked]]) -> None:
    by_strategy: Counter[str] = Counter()
    for _, one in looked:
        for finding in one.findings:
            by_strategy[finding.strategy] += finding.times
    values = sum(one.values for _, one in looked)
    touched = sum(bool(one.findings) for _, one in looked)
    told = ", ".join(f"{times} x {strategy}" for strategy, times in by_strategy.most_common()) or "nothing"
    note(
        f"{counted(len(looked), 'conversation')}, {counted(values, 'value')} looked at: {told}, in "
        f"{counted(touched, 'conversation')}."
    )

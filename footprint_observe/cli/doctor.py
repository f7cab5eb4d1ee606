"""`footprint doctor`: what in a ledger file may need somebody."""

from __future__ import annotations

from collections.abc import Iterator

import click

from footprint_observe.cli.options import db_option, json_option
from footprint_observe.cli.output import age, counted, paged, print_json, short
from footprint_observe.query.doctor import Diagnosis, EndlessRun
from footprint_observe.query.doctor import doctor as diagnosis


@click.command()
@db_option
@json_option
def doctor(*, path: str, as_json: bool) -> None:
    """List the runs without an end, with their calls that may have run; count open questions.

    A run without an end is being run at this moment, or its process died. Go on with one that died with
    agent.recover(run_id), or give it up with `footprint abandon`.
    """
    found = diagnosis(path)
    if as_json:
        print_json([found])
        return
    with paged() as out:
        for line in _lines(found):
            out.print(line, soft_wrap=True)


def _lines(found: Diagnosis) -> Iterator[str]:
    endless = found["endless"]
    yield f"{counted(len(endless), 'run')} without an end{':' if endless else '.'}"
    for run in endless:
        yield from _about(run)
    waiting = counted(found["open_pauses"], "question")
    hint = "; `footprint pending` lists them" if found["open_pauses"] else ""
    yield f"{waiting} open{hint}."
    yield f"The log beside the file has {found['log_bytes']:,} bytes."


def _about(run: EndlessRun) -> Iterator[str]:
    segments = f", segment {run['segments']}" if run["segments"] > 1 else ""
    yield (
        f"  [bold]{short(run['run_id'], 64)}[/] of {short(run['agent'], 40)}{segments}, begun "
        f"{_time(run['started_at'])}, last heard of {age(run['quiet_seconds'])} ago"
    )
    for call in run["in_doubt"]:
        source = f" ({short(call['tool_source'], 40)})" if call["tool_source"] else ""
        yield (
            f"    [yellow]may have run[/]: {short(call['tool_name'], 60)}{source}, call "
            f"{short(call['tool_call_id'], 64)} of model call {call['iteration']}"
        )


def _time(iso: str) -> str:
    return iso[:19].replace("T", " ")

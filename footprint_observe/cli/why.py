"""`footprint why CALL`: who asked, who decided what about one call, what ran, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.box import SIMPLE
from rich.table import Table

from footprint_observe.cli.decisions import decision_table
from footprint_observe.cli.options import db_option, json_option, run_option
from footprint_observe.cli.output import Bar, note, paged, print_json, short, shown
from footprint_observe.query.database import Record
from footprint_observe.query.why import WhyRow
from footprint_observe.query.why import why as told_about

_WIDTH = 400
_ENDED = {
    "ran": "It ran",
    "failed": "It ran and failed",
    "denied": "It was refused{by} and did not run",
    "invalid": "Its arguments did not fit the tool, and it did not run",
    "unknown": "The agent has no such tool",
    "blocked": "What it needs before it may run was not there, and it did not run",
    "cancelled": "It was cancelled",
}


@click.command()
@click.argument("call")
@db_option
@json_option
@run_option("Its run: an id, the beginning of one, or `last`; the newest with such a call when left out.")
def why(*, call: str, path: str, as_json: bool, run: str | None) -> None:
    """Show everything about CALL, the id a model gave it: who asked, who decided what, what ran."""
    with Bar("looking for the call") as bar:
        found = told_about(path, call, run=run, looked_through=bar.move)
    if as_json:
        print_json(found)
    else:
        with paged() as out:
            for one in found:
                for part in _about(one):
                    out.print(part, soft_wrap=isinstance(part, str))
    if run is None:
        note(f"This is the newest run with a call of that id, {found[0]['run_id']}; --run names another.")


def _about(one: WhyRow) -> Iterator[str | Table]:
    source = f" of {short(one['tool_source'])}" if one["tool_source"] else ""
    yield (
        f"call [bold]{short(one['tool_call_id'], 140)}[/] of {short(one['tool_name'])}{source}, iteration "
        f"{one['iteration']}: {one['status'] or 'open'}"
    )
    yield f"run {one['run_id']} of {short(one['agent'])}, {one['recorded_at']}"
    for name, value in (
        ("on behalf of", one["identity"]),
        ("message", one["message"]),
        ("asked with", one["asked_args"]),
    ):
        if value is not None:
            yield f"{name}: {shown(value, _WIDTH)}"
    yield from map(_permission, one["permission"])
    yield decision_table(one["decisions"]) if one["decisions"] else "No rule decided about it."
    yield from map(_check_in, one["check_ins"])
    yield from map(_pause, one["pauses"])
    yield from map(_credential, one["credentials"])
    if one["approved_args"] is not None:
        yield _side_by_side(one)
    elif one["ran_args"] is not None:
        yield f"{'was to run' if one['in_doubt'] else 'ran'} with: {shown(one['ran_args'], _WIDTH)}"
    if one["result"] is not None:
        yield f"result: {shown(one['result'], _WIDTH)}"
    if one["read"] is not None:
        yield f"the model read: {shown(one['read'], _WIDTH)}"
    yield _ended(one)


def _permission(checked: Record) -> str:
    said = "  ".join(shown(checked[name], _WIDTH) for name in ("rationale", "reason") if name in checked)
    return f"permission, by {short(checked['checker'])}: {short(checked['result'])}  [italic]{said}[/]"


def _check_in(one: Record) -> str:
    if one["kind"] == "check-in.asked":
        return f"the tool asks for consent: {shown(one.get('evidence'), _WIDTH)}"
    answer = "[green]consent given[/]" if one["approved"] else "[red]consent refused[/]"
    return f"{answer} by {shown(one.get('decided_by'))}  [italic]{shown(one.get('note'), _WIDTH)}[/]"


def _pause(one: Record) -> str:
    when = f"[dim]{one['recorded_at']}[/]"
    if one["kind"] == "pause.opened":
        return f"{when} a person is asked ({one['pause_kind']}), pause {short(one['pause_id'])}"
    if one["kind"] == "pause.answered":
        return f"{when} answered: {one['answer']}, after {one['paused_us'] / 1_000_000:.0f} seconds"
    return f"{when} the question is closed: {one['reason']}"


def _credential(one: Record) -> str:
    error = f" ({short(one['error_class'])})" if one.get("error_class") else ""
    return f"credential {short(one['service'])}: {one['kind'].removeprefix('credential.')}{error}"


def _side_by_side(one: WhyRow) -> Table:
    """What a person approved, and what ran although a rule changed it behind them."""
    table = Table(box=SIMPLE, pad_edge=False, header_style="bold")
    table.add_column("approved", overflow="fold", ratio=1)
    table.add_column("ran" if one["ran_args"] is not None else "did not run", overflow="fold", ratio=1)
    table.add_row(shown(one["approved_args"], _WIDTH), shown(one["ran_args"], _WIDTH))
    return table


def _ended(one: WhyRow) -> str:
    if one["in_doubt"] and one["status"] == "cancelled":
        return "[red]It was cancelled while it ran: it may have run.[/]"
    if one["in_doubt"]:
        return "[red]It may have run: it was about to, and how it ended is not on record.[/]"
    if one["status"] is None:
        asked = one["pauses"] and one["pauses"][-1]["kind"] == "pause.opened"
        return "A person has not answered yet." if asked else "It is open: how it ended is not on record."
    by = f" by {short(one['decided_by_rule'])}" if one["decided_by_rule"] else ""
    error = f" ({short(one['error_class'])})" if one["error_class"] else ""
    took = "" if one["duration_us"] is None else f", in {one['duration_us'] / 1000:.1f} ms"
    return f"{_ENDED[one['status']].format(by=by)}{error}{took}."

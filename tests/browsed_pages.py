"""What every named query and every panel of `footprint serve` has to show of a ledger file, all its columns.

A function makes the rows of a page from the rows of the file. `prepared` says what is done to a row of a page
before it is compared, where it holds the time of the look or JSON as text.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from statistics import mean
from typing import Any, TypeAlias

import pytest

from browsed_rows import FAILURES, Counted, Row, counts, iso, summary

Page: TypeAlias = Callable[[Counted], list[Row]]

LOOK_SECONDS = 60
"""How long after a page somebody may count what is on it."""

_DAY_US = 86_400_000_000


def prepared(row: Row) -> Row:
    """A row of a page, its JSON read and its numbers numbers."""
    read: dict[str, Callable[[Any], Any]] = {"before": _loaded, "after": _loaded, "args": _loaded}
    read |= {"hours": float, "time": _seconds_of_day}
    return {name: read[name](value) if name in read else value for name, value in row.items()}


def _seconds_of_day(clock: str) -> float:
    hours, minutes, seconds = clock.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _loaded(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _since(us: int, unit: float = 1) -> Any:
    return pytest.approx((time.time() - us / 1e6) / unit, abs=LOOK_SECONDS / unit + 0.05)


def _seconds(us: int) -> str:
    return datetime.fromtimestamp(us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _called(names: str, rows: Iterable[tuple[Any, ...]]) -> list[Row]:
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


def _taken(facts: Iterable[Row], *names: str, **made: Callable[[Row], Any]) -> list[Row]:
    return [
        {**{name: f[name] for name in names}, **{to: make(f) for to, make in made.items()}} for f in facts
    ]


def _sorted(rows: list[Row], *keys: tuple[str, bool]) -> list[Row]:
    """Rows by columns, the last named first; True sorts the largest first."""
    for name, falls in reversed(keys):
        rows = sorted(rows, key=lambda row: (row[name] is not None, row[name]), reverse=falls)
    return rows


_RECORDED: dict[str, Callable[[Row], Any]] = {"recorded_at": lambda f: iso(f["recorded_us"])}


def _value(name: str) -> Callable[[Row], Any]:
    return lambda fact: fact["values"].get(name)


def _latest_denials(all_: Counted) -> list[Row]:
    names = ("middleware", "moment", "tool_name", "answer", "run_id", "tool_call_id")
    return _taken(all_.decisions("deny")[:100], *names, **_RECORDED, why=_value("why"))


def _decisions_by_day_and_rule(all_: Counted) -> list[Row]:
    n = counts((f["day"], f["middleware"], f["outcome"]) for f in all_.decisions())
    return _sorted(
        _called("day middleware outcome decisions", n),
        ("day", True),
        ("middleware", False),
        ("outcome", False),
    )


def _decided_by_people(all_: Counted) -> list[Row]:
    outcomes = {id(fact): outcome for fact, outcome in all_.by_people()[:100]}
    return _taken(
        [fact for fact, _ in all_.by_people()[:100]],
        *("middleware", "tool_name", "run_id", "tool_call_id"),
        decided_at=lambda f: _seconds(f["recorded_us"]),
        decided_by=_value("decided_by"),
        outcome=lambda f: outcomes[id(f)],
        said=lambda f: f["values"].get("why", f["values"].get("note")),
    )


def _changed_values(all_: Counted) -> list[Row]:
    changed = [f for f in all_.of("decision") if f["changed"]][:100]
    values = {name: _value(name) for name in ("why", "before", "after")}
    return _taken(
        changed, "middleware", "moment", "tool_name", "run_id", "tool_call_id", **_RECORDED, **values
    )


def _expires(fact: Row) -> str | None:
    us = fact["extra"].get("expires_us")
    return None if us is None else iso(us)


def _open(all_: Counted) -> list[Row]:
    return [fact for fact, became in all_.questions() if became == "open"]


def _open_questions(all_: Counted) -> list[Row]:
    return _taken(
        _open(all_),
        *("middleware", "tool_name", "pause_id", "run_id", "tool_call_id"),
        kind=lambda f: f["extra"]["pause_kind"],
        opened_at=lambda f: iso(f["recorded_us"]),
        expires_at=_expires,
        age_seconds=lambda f: _since(f["recorded_us"]),
    )


def _waits(all_: Counted, unit_us: float) -> dict[tuple[str, str], list[float]]:
    """How long each question that was answered waited, by its kind and its answer."""
    waits: dict[tuple[str, str], list[float]] = defaultdict(list)
    for asked, answered in all_.answered():
        key = asked["extra"]["pause_kind"], answered["answer"]
        waits[key].append(answered["extra"]["paused_us"] / unit_us)
    return waits


def _pauses_by_answer(all_: Counted) -> list[Row]:
    waits = _waits(all_, 1e6)
    return [
        {
            "kind": kind,
            "answer": answer,
            "questions": n,
            "mean_seconds": round(mean(waits[kind, answer]), 1) if (kind, answer) in waits else None,
            "longest_seconds": round(max(waits[kind, answer]), 1) if (kind, answer) in waits else None,
        }
        for kind, answer, n in all_.answers()
    ]


def _calls_in_doubt(all_: Counted) -> list[Row]:
    return [
        {
            **{name: call["taken"][name] for name in ("tool_name", "tool_source", "run_id", "tool_call_id")},
            "recorded_at": iso(call["taken"]["recorded_us"]),
            **{name: call[name] for name in ("args", "status")},
        }
        for call in all_.calls()
        if call["in_doubt"]
    ][:100]


def _runs_without_an_end(all_: Counted) -> list[Row]:
    return [
        {
            "started_at": _seconds(all_.runs[run_id][0]["recorded_us"]),
            "agent": all_.runs[run_id][0]["agent"],
            "last_entry": last,
            "quiet_seconds": _since(all_.runs[run_id][-1]["recorded_us"]),
            "run_id": run_id,
        }
        for run_id, last in all_.endless()[:100]
    ]


def _latest_runs(all_: Counted) -> list[Row]:
    newest = list(all_.runs.values())[::-1][:100]
    return [{"started_at": iso(run[0]["recorded_us"]), **summary(run)} for run in newest]


def _tokens_by_agent_and_day(all_: Counted) -> list[Row]:
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for day, agent, _, put, got in all_.ends():
        for place, n in enumerate((1, put or 0, got or 0)):
            sums[day, agent][place] += n
    rows = _called("day agent runs input_tokens output_tokens", ((*key, *n) for key, n in sums.items()))
    return _sorted(rows, ("day", True), ("agent", False))


def _slowest_rules(all_: Counted) -> list[Row]:
    rules: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for f in all_.of("decision"):
        if f["duration_us"] is not None and f["answer"] != "person":
            rules[f["middleware"], f["moment"]].append(f)
    found = []
    for (rule, moment), facts in rules.items():
        took = sorted(f["duration_us"] / 1000 for f in facts)
        row = {"middleware": rule, "moment": moment, "decisions": len(took)}
        row |= {"mean_ms": pytest.approx(mean(took), abs=0.00051), "longest_ms": took[-1]}
        row["p95_ms"] = took[math.ceil(0.95 * len(took)) - 1]
        found.append({**row, "failures": sum(f["answer"] in FAILURES for f in facts)})
    return _sorted(found, ("p95_ms", True), ("middleware", False), ("moment", False))


def _tool_statuses(all_: Counted) -> list[Row]:
    n = counts((f["tool_name"], f["tool_source"], f["status"]) for f in all_.of("call.answered"))
    rows = _called("tool_name tool_source status calls", n)
    return _sorted(rows, ("tool_name", False), ("tool_source", False), ("calls", True), ("status", False))


def _redactions(all_: Counted) -> list[Row]:
    n = counts(
        (how, f["kind"], place) for f in all_.facts for place, how in json.loads(f["redacted"] or "[]")
    )
    rows = _called("strategy kind place times", n)
    return _sorted(rows, ("times", True), ("strategy", False), ("kind", False), ("place", False))


def _said(fact: Row) -> str | None:
    lines = [
        f"{field}: {text}" for field, text in sorted(fact["texts"].items()) if field not in {"digest", "salt"}
    ]
    return "\n".join(lines) or None


def _came_to(fact: Row) -> Any:
    return next((fact[name] for name in ("outcome", "status", "answer") if fact[name] is not None), None)


def _timeline(all_: Counted) -> list[Row]:
    def clock(fact: Row) -> Any:
        # SQLite rounds to whole milliseconds.
        return pytest.approx(fact["recorded_us"] % _DAY_US / 1e6, abs=0.00051)

    return _taken(
        list(all_.runs.values())[-1],
        *("position", "kind", "middleware", "tool_name", "run_id", "tool_call_id"),
        time=clock,
        moment=lambda f: f["moment"] or "",
        came_to=_came_to,
        ms=lambda f: None if f["duration_us"] is None else f["duration_us"] / 1000,
        said=_said,
    )


def _why(all_: Counted) -> list[Row]:
    refused = next(fact for fact in all_.decisions("deny") if fact["tool_call_id"] is not None)
    run = all_.runs[refused["run_id"]]

    def said(fact: Row) -> str | None:
        if fact["kind"] != "call.taken":
            return _said(fact)
        replies = [f for f in run if f["kind"] == "model.replied" and f["position"] < fact["position"]]
        asked = [call for f in replies for call in f["values"]["calls"] if call["id"] == fact["tool_call_id"]]
        return f"asked for: {asked[-1]['args_json']}"

    return _taken(
        [fact for fact in run if fact["tool_call_id"] == refused["tool_call_id"]],
        *("position", "kind", "tool_name", "middleware", "moment", "run_id", "tool_call_id"),
        came_to=_came_to,
        how=lambda f: f["answer"] if f["kind"] == "decision" else None,
        said=said,
    )


SAID: dict[str, Page] = {
    "latest_denials": _latest_denials,
    "decisions_by_day_and_rule": _decisions_by_day_and_rule,
    "decided_by_people": _decided_by_people,
    "changed_values": _changed_values,
    "open_questions": _open_questions,
    "pauses_by_answer": _pauses_by_answer,
    "calls_in_doubt": _calls_in_doubt,
    "runs_without_an_end": _runs_without_an_end,
    "latest_runs": _latest_runs,
    "tokens_by_agent_and_day": _tokens_by_agent_and_day,
    "slowest_rules": _slowest_rules,
    "tool_statuses": _tool_statuses,
    "redactions": _redactions,
    "timeline": _timeline,
    "why": _why,
}
"""Every named query, as it is without parameters."""


def _by_day(all_: Counted) -> list[Row]:
    return _called("day outcome decisions", counts((f["day"], f["outcome"]) for f in all_.decisions()))


def _denials_by_rule(all_: Counted) -> list[Row]:
    n = counts((f["middleware"], f["moment"]) for f in all_.decisions("deny"))
    return _sorted(_called("rule moment denials", n), ("denials", True), ("rule", False))[:12]


def _answers(all_: Counted) -> list[Row]:
    waits = _waits(all_, 6e7)
    return [
        {
            "kind": kind,
            "answer": answer,
            "questions": n,
            "minutes": round(mean(waits[kind, answer]), 1) if (kind, answer) in waits else None,
        }
        for kind, answer, n in all_.answers()
    ]


def _eight_denials(all_: Counted) -> list[Row]:
    return _taken(
        all_.decisions("deny")[:8],
        at=lambda f: _seconds(f["recorded_us"])[:16],
        rule=lambda f: f["middleware"],
        tool=lambda f: f["tool_name"],
        why=lambda f: f["values"]["why"][:120],
        run=lambda f: f["run_id"],
    )


def _questions(all_: Counted) -> list[Row]:
    return _taken(
        _open(all_)[:8],
        hours=lambda f: _since(f["recorded_us"], 3600),
        kind=lambda f: f["extra"]["pause_kind"],
        tool=lambda f: f["tool_name"],
        rule=lambda f: f["middleware"] or "",
        run=lambda f: f["run_id"],
    )


def _denied(all_: Counted) -> list[Row]:
    n, allowed = len(all_.decisions()), len(all_.decisions("allow"))
    return [{"percent": f"{100 * (n - allowed) / n:.1f}"}]


def _ended(all_: Counted) -> list[Row]:
    rows = _called("outcome runs", counts((outcome,) for _, _, outcome, *_ in all_.ends()))
    return _sorted(rows, ("runs", True), ("outcome", False))


def _tools(all_: Counted) -> list[Row]:
    n = counts((f["tool_name"], f["status"]) for f in all_.of("call.answered"))
    return _called("tool status calls", n)


def _strategies(all_: Counted) -> list[Row]:
    rows = _called("strategy entry times", all_.redactions())
    return _sorted(rows, ("times", True), ("strategy", False), ("entry", False))


DRAWN: dict[str, Page] = {
    "decisions": lambda all_: [{"decisions": len(all_.decisions())}],
    "denied": _denied,
    "open_questions": lambda all_: [{"questions": len(all_.open_questions())}],
    "endless": lambda all_: [{"runs": len(all_.endless())}],
    "by_day": _by_day,
    "runs": _ended,
    "denials_by_rule": _denials_by_rule,
    "answers": _answers,
    "tools": _tools,
    "redactions": _strategies,
    "latest_denials": _eight_denials,
    "questions": _questions,
}
"""Every panel."""

"""What named queries and panels have to say of a ledger file, counted from its rows without its views."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[tuple[Any, ...]]


class Counted:
    """The rows of the table `facts`, each with its other fields and its values."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            self.facts: list[Row] = [
                dict(row) for row in connection.execute("SELECT * FROM facts ORDER BY id")
            ]
            values: dict[int, Row] = defaultdict(dict)
            for row in connection.execute("SELECT fact_id, field, json FROM vals"):
                values[row["fact_id"]][row["field"]] = json.loads(row["json"])
        self.runs: dict[str, list[Row]] = {}
        for fact in self.facts:
            fact["extra"] = json.loads(fact["extra"] or "{}")
            fact["values"] = values[fact["id"]]
            fact["day"] = datetime.fromtimestamp(fact["recorded_us"] / 1e6, UTC).date().isoformat()
            self.runs.setdefault(fact["run_id"], []).append(fact)
        self.newest_first = self.facts[::-1]

    def of(self, *kinds: str) -> list[Row]:
        """The facts of some kinds, the newest first."""
        return [fact for fact in self.newest_first if fact["kind"] in kinds]

    def decisions(self, outcome: str | None = None) -> list[Row]:
        """Decisions that counted, the newest first."""
        found = (fact for fact in self.of("decision") if not fact["shadow"])
        return [fact for fact in found if outcome in {None, fact["outcome"]}]

    def denials(self) -> Rows:
        return [
            (f["middleware"], f["tool_name"], f["values"]["why"], f["run_id"]) for f in self.decisions("deny")
        ]

    def by_day_and_rule(self) -> Rows:
        return _counts((f["day"], f["middleware"], f["outcome"]) for f in self.decisions())

    def by_people(self) -> Rows:
        decided = [f for f in self.newest_first if "decided_by" in f["values"]]
        words = {True: "allow", False: "deny"}
        return [
            (
                f["values"]["decided_by"],
                f["outcome"] or words[f["extra"]["approved"]],
                f["tool_name"],
                f["run_id"],
            )
            for f in decided
        ]

    def changes(self) -> Rows:
        changed = [f for f in self.of("decision") if f["changed"]]
        return [(f["middleware"], f["values"]["before"], f["values"]["after"]) for f in changed]

    def questions(self) -> list[tuple[Row, str]]:
        """Every question, the oldest first, and what became of it."""
        ends = {f["pause_id"]: f["answer"] or "closed" for f in self.of("pause.answered", "pause.closed")}
        given_up = {f["run_id"]: f["position"] for f in self.of("run.abandoned")}
        return [
            (f, ends.get(f["pause_id"], "closed" if given_up.get(f["run_id"], 0) > f["position"] else "open"))
            for f in self.of("pause.opened")[::-1]
        ]

    def open_questions(self) -> Rows:
        return [
            (f["extra"]["pause_kind"], f["tool_name"], f["run_id"])
            for f, became in self.questions()
            if became == "open"
        ]

    def answers(self) -> Rows:
        return _counts((f["extra"]["pause_kind"], became) for f, became in self.questions())

    def in_doubt(self) -> Rows:
        calls: dict[tuple[Any, ...], dict[str, Row]] = defaultdict(dict)
        for fact in self.facts:
            if fact["tool_call_id"] is not None:
                key = fact["run_id"], fact["iteration"], fact["tool_call_id"]
                calls[key][fact["kind"]] = fact
        return [key[::2] for key, about in list(calls.items())[::-1] if _may_have_run(about)]

    def endless(self) -> Rows:
        return [
            (run_id, run[-1]["kind"])
            for run_id, run in list(self.runs.items())[::-1]
            if run[-1]["kind"] not in {"segment.ended", "run.abandoned"}
        ]

    def ends(self) -> Rows:
        """Of every run, the newest first: day, agent, outcome, input and output tokens."""
        return [_end(run) for run in list(self.runs.values())[::-1]]

    def tokens(self) -> Rows:
        sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
        for day, agent, _, put, got in self.ends():
            for place, n in enumerate((1, put or 0, got or 0)):
                sums[day, agent][place] += n
        return sorted((*key, *n) for key, n in sums.items())

    def rule_times(self) -> Rows:
        times: dict[tuple[str, str], list[int]] = defaultdict(list)
        for f in self.of("decision"):
            if f["duration_us"] is not None and f["answer"] != "person":
                times[f["middleware"], f["moment"]].append(f["duration_us"])
        return sorted((*rule, len(took), max(took) / 1000) for rule, took in times.items())

    def statuses(self) -> Rows:
        return _counts((f["tool_name"], f["status"]) for f in self.of("call.answered"))

    def redactions(self) -> Rows:
        return _counts((how, f["kind"]) for f in self.facts for _, how in json.loads(f["redacted"] or "[]"))


def _counts(things: Iterable[tuple[Any, ...]]) -> Rows:
    return sorted(((*thing, n) for thing, n in Counter(things).items()), key=repr)


def _may_have_run(about: dict[str, Row]) -> bool:
    if "tool.intended" not in about:
        return False
    finished, answered = about.get("tool.finished"), about.get("call.answered")
    if answered is not None:
        return finished is None and answered["status"] == "blocked"
    was_cancelled = finished is not None and bool(finished["extra"].get("cancelled"))
    return "tool.paused" not in about and (finished is None or was_cancelled)


def _end(run: list[Row]) -> tuple[Any, ...]:
    ended = [fact for fact in run if fact["kind"] == "segment.ended"]
    is_over = bool(ended) and ended[-1]["segment"] == run[-1]["segment"]
    tokens = ended[-1]["extra"] if ended else {}
    outcome = ended[-1]["outcome"] if is_over else "open"
    return (
        run[0]["day"],
        run[0]["extra"]["agent_name"],
        outcome,
        tokens.get("input_tokens"),
        tokens.get("output_tokens"),
    )


def shown(rows: Iterable[Row], *columns: str | Callable[[Row], Any]) -> Rows:
    """Some columns of the rows of a page; a function makes one of the row."""
    return [tuple(row[one] if isinstance(one, str) else one(row) for one in columns) for row in rows]


def added(rows: Iterable[Row], *columns: str) -> Rows:
    """The sum of the last column by the others, sorted."""
    sums: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        sums[tuple(row[name] for name in columns[:-1])] += row[columns[-1]]
    return sorted(((*key, n) for key, n in sums.items()), key=repr)

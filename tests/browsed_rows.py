"""What a ledger file says, counted from its rows without its views; viewers must say the same of it."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[tuple[Any, ...]]

FAILURES = frozenset({"raised", "timed-out", "malformed"})
"""How a decision came about of a rule that broke."""


class Counted:
    """The rows of the table `facts`, each with its other fields, its values, its agent and its model."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            self.facts: list[Row] = [
                dict(row) for row in connection.execute("SELECT * FROM facts ORDER BY id")
            ]
            values: dict[int, dict[str, str]] = defaultdict(dict)
            for row in connection.execute("SELECT fact_id, field, json FROM vals"):
                values[row["fact_id"]][row["field"]] = row["json"]
        self.runs: dict[str, list[Row]] = {}
        for fact in self.facts:
            fact["extra"] = json.loads(fact["extra"] or "{}")
            fact["texts"] = values[fact["id"]]
            fact["values"] = {field: json.loads(text) for field, text in values[fact["id"]].items()}
            fact["day"] = datetime.fromtimestamp(fact["recorded_us"] / 1e6, UTC).date().isoformat()
            run = self.runs.setdefault(fact["run_id"], [])
            run.append(fact)
            fact["agent"], fact["model"] = (run[0]["extra"][name] for name in ("agent_name", "model"))
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

    def by_people(self) -> list[tuple[Row, str]]:
        """What people decided, the newest first, and what that comes to."""
        words = {True: "allow", False: "deny"}
        return [
            (f, f["outcome"] or words[f["extra"]["approved"]])
            for f in self.newest_first
            if "decided_by" in f["values"]
        ]

    def questions(self) -> list[tuple[Row, str]]:
        """Every question, the oldest first, and what became of it."""
        ends = {f["pause_id"]: f["answer"] or "closed" for f in self.of("pause.answered", "pause.closed")}
        given_up = {f["run_id"]: f["position"] for f in self.of("run.abandoned")}
        now = time.time() * 1e6

        def became(asked: Row) -> str:
            if asked["pause_id"] in ends:
                return str(ends[asked["pause_id"]])
            if given_up.get(asked["run_id"], 0) > asked["position"]:
                return "closed"
            return "expired" if asked["extra"].get("expires_us", now) < now else "open"

        return [(f, became(f)) for f in self.of("pause.opened")[::-1]]

    def open_questions(self) -> Rows:
        return [
            (f["extra"]["pause_kind"], f["tool_name"], f["run_id"])
            for f, became in self.questions()
            if became == "open"
        ]

    def answered(self) -> list[tuple[Row, Row]]:
        """Every question that was answered, by its number, the newest first, with its answer."""
        answers = {f["pause_id"]: f for f in self.of("pause.answered")}
        return [(f, answers[f["pause_id"]]) for f in self.of("pause.opened") if f["pause_id"] in answers]

    def answers(self) -> Rows:
        return counts((f["extra"]["pause_kind"], became) for f, became in self.questions())

    def calls(self) -> list[Row]:
        """Every call that was asked for, the newest first: its facts by kind, and what they come to."""
        about: dict[tuple[Any, ...], dict[str, Row]] = {}
        for fact in self.facts:
            if fact["tool_call_id"] is not None:
                key = fact["run_id"], fact["iteration"], fact["tool_call_id"]
                about.setdefault(key, {})[fact["kind"]] = fact
        return [_call(facts) for facts in list(about.values())[::-1] if "call.taken" in facts]

    def endless(self) -> Rows:
        """Runs without an end, the newest first, with their last rows."""
        return [
            (run_id, run[-1]["kind"]) for run_id, run in list(self.runs.items())[::-1] if not _has_ended(run)
        ]

    def ends(self) -> Rows:
        """Of every run, the newest first: day, agent, outcome, input and output tokens."""
        return [
            (run[0]["day"], *(told[name] for name in ("agent", "outcome", "input_tokens", "output_tokens")))
            for run, told in ((run, summary(run)) for run in list(self.runs.values())[::-1])
        ]

    def redactions(self) -> Rows:
        return counts((how, f["kind"]) for f in self.facts for _, how in json.loads(f["redacted"] or "[]"))


def counts(things: Iterable[tuple[Any, ...]]) -> Rows:
    """How often there is each thing, sorted."""
    return sorted(((*thing, n) for thing, n in Counter(things).items()), key=repr)


def _has_ended(run: list[Row]) -> bool:
    last = run[-1]
    if last["kind"] == "segment.ended" and last["outcome"] == "abandoned":
        # Only a person gives a run up; a process that goes on with it closes a segment so, too.
        return any(fact["kind"] == "run.abandoned" for fact in run)
    return last["kind"] in {"segment.ended", "run.abandoned"}


def _call(about: dict[str, Row]) -> Row:
    taken, finished, answered = (about.get(k) for k in ("call.taken", "tool.finished", "call.answered"))
    assert taken is not None
    cancelled = finished is not None and bool(finished["extra"].get("cancelled"))
    if "tool.intended" not in about:
        may_have_run = False
    elif answered is not None:
        may_have_run = finished is None and answered["status"] == "blocked"
    else:
        may_have_run = "tool.paused" not in about and (finished is None or cancelled)
    if answered is not None:
        status = answered["status"]
    elif finished is None:
        status = None
    else:
        failed = "failed" if finished["extra"].get("failed") else "ran"
        status = "cancelled" if cancelled else failed
    error = (finished or {}).get("error_class") or (answered or {}).get("error_class")
    return {
        "taken": taken,
        "args": about["tool.intended"]["values"].get("args") if "tool.intended" in about else None,
        "status": status,
        "in_doubt": int(may_have_run),
        "duration_us": None if finished is None else finished["duration_us"],
        "error": error,
        "rule": None if answered is None else answered["extra"].get("decided_by_rule"),
    }


def summary(run: list[Row]) -> Row:
    """What a run comes to."""
    ended = [fact for fact in run if fact["kind"] == "segment.ended"]
    is_over = bool(ended) and ended[-1]["segment"] == run[-1]["segment"]
    told = ended[-1]["extra"] if ended else {}
    decided = [fact for fact in run if fact["kind"] == "decision"]
    counted = [fact["outcome"] for fact in decided if not fact["shadow"]]
    return {
        "agent": run[0]["agent"],
        "model": run[0]["model"],
        "outcome": ended[-1]["outcome"] if is_over else "open",
        "segments": run[-1]["segment"],
        "iterations": told.get("iterations"),
        "decisions": len(decided),
        "denials": counted.count("deny"),
        "asks": counted.count("ask"),
        "input_tokens": told.get("input_tokens"),
        "output_tokens": told.get("output_tokens"),
        "run_id": run[0]["run_id"],
    }


def iso(us: int) -> str:
    """A time as the views have it."""
    return datetime.fromtimestamp(us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + (
        f".{us % 1_000_000:06d}+00:00"
    )

"""What every panel of Grafana that asks the ledger has to show of a file, all its columns."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from statistics import mean
from typing import Any, TypeAlias

from browsed_rows import Counted, Row, counts, summary

Panel: TypeAlias = "Callable[[Asked], list[Row]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A file, and what is asked about it.

    Attributes:
        counted: The file.
        now: The time of the look, whole seconds since 1970.
        agents: The agents that were chosen; None for all.
        rules: The rules, the same.
        tools: The tools, the same.
        run: The run that is looked at by itself.
    """

    counted: Counted
    now: int
    agents: Collection[str] | None = None
    rules: Collection[str] | None = None
    tools: Collection[str] | None = None
    run: str = ""

    def of_agents(self, facts: Iterable[Row]) -> list[Row]:
        """Those of the agents."""
        return [fact for fact in facts if self.agents is None or fact["agent"] in self.agents]

    def questions(self) -> list[tuple[Row, str]]:
        """The questions of the agents nobody answered, the oldest first, and whether somebody still can."""
        told = [(f, became) for f, became in self.counted.questions() if became in {"open", "expired"}]
        return [(f, became) for f, became in told if self.of_agents([f])]

    def calls(self) -> list[Row]:
        """The calls of the agents, the newest first."""
        return [call for call in self.counted.calls() if self.of_agents([call["taken"]])]

    def endless(self) -> list[list[Row]]:
        """The runs of the agents without an end, the newest first."""
        runs = [self.counted.runs[run_id] for run_id, _ in self.counted.endless()]
        return [run for run in runs if self.of_agents(run[:1])]


def _seconds(fact: Row) -> int:
    return int(fact["recorded_us"] // 1_000_000)


def _took(us: int | None) -> float | None:
    return None if us is None else us / 1e6


def _trace(run: list[Row]) -> str | None:
    return next((f["trace_id"] for f in run[::-1] if f["trace_id"] is not None), None)


def _asked_by(question: Row) -> str:
    return str(question["middleware"] or question["extra"]["pause_kind"])


def _denials(a: Asked) -> list[Row]:
    rules = [
        f for f in a.of_agents(a.counted.decisions("deny")) if a.rules is None or f["middleware"] in a.rules
    ]
    return [
        {
            **{name: f[name] for name in ("agent", "moment", "version", "run_id", "trace_id")},
            "time": _seconds(f),
            "rule": f["middleware"],
            "tool": f["tool_name"],
            "why": f["values"]["why"],
            "came_about": f["answer"],
            "person": f["values"].get("decided_by"),
        }
        for f in rules
    ][:200]


def _questions(a: Asked) -> list[Row]:
    return [
        {
            **{name: f[name] for name in ("agent", "run_id", "trace_id")},
            "waits": a.now - _seconds(f),
            "asked_by": _asked_by(f),
            "tool": f["tool_name"],
            "state": became,
        }
        for f, became in a.questions()
    ][:200]


def _answers(a: Asked) -> list[Row]:
    def person(asked: Row) -> Any:
        later = (f for f in a.counted.runs[asked["run_id"]] if f["position"] > asked["position"])
        said = (
            f for f in later if f["tool_call_id"] == asked["tool_call_id"] and "decided_by" in f["values"]
        )
        return next((f["values"]["decided_by"] for f in said), None)

    return [
        {
            **{name: asked[name] for name in ("agent", "run_id", "trace_id")},
            "time": _seconds(answered),
            "person": person(asked),
            "answer": answered["answer"],
            "asked_by": _asked_by(asked),
            "tool": asked["tool_name"],
            "waited": _took(answered["extra"]["paused_us"]),
        }
        for asked, answered in a.counted.answered()
        if a.of_agents([asked])
    ][:200]


def _redactions(a: Asked) -> list[Row]:
    found = counts(tuple(one) for f in a.counted.of("decision") for one in json.loads(f["redacted"] or "[]"))
    rows = [{"place": place, "strategy": how, "n": n} for place, how, n in found]
    return sorted(rows, key=lambda row: (-row["n"], row["place"], row["strategy"]))[:100]


def _without_an_end(a: Asked) -> list[Row]:
    return [
        {
            **{name: run[-1][name] for name in ("agent", "run_id")},
            "time": _seconds(run[0]),
            "silent": a.now - _seconds(run[-1]),
            "last_row": run[-1]["kind"],
            "trace_id": _trace(run),
        }
        for run in a.endless()
    ][:200]


def _silent(a: Asked) -> list[Row]:
    return [{"runs": sum(run[-1]["recorded_us"] < (a.now - 300) * 1_000_000 for run in a.endless())}]


def _in_doubt(a: Asked) -> list[Row]:
    return [
        {
            **{name: call["taken"][name] for name in ("agent", "run_id", "trace_id")},
            "time": _seconds(call["taken"]),
            "tool": call["taken"]["tool_name"],
            "server": call["taken"]["tool_source"],
            "status": call["status"],
        }
        for call in a.calls()
        if call["in_doubt"]
    ][:200]


def _slowest(a: Asked) -> list[Row]:
    rows = [
        {
            **summary(run),
            "time": _seconds(run[0]),
            "worked": sum(f["duration_us"] for f in run if f["kind"] == "segment.ended") / 1e6,
            "trace_id": _trace(run),
        }
        for run in a.counted.runs.values()
        if a.of_agents(run[:1])
    ]
    return sorted(rows, key=lambda row: -row["worked"])[:50]


_STATUSES = ("ran", "failed", "denied", "invalid", "unknown", "blocked", "cancelled")


def _tools(a: Asked) -> list[Row]:
    tools: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for call in a.calls():
        name = call["taken"]["tool_name"]
        if a.tools is None or name in a.tools:
            tools[name, call["taken"]["tool_source"]].append(call)
    waits = {
        (f["run_id"], f["iteration"], f["tool_call_id"]) for f, became in a.questions() if became == "open"
    }

    def row(tool: str, server: str | None) -> Row:
        calls = tools[tool, server]
        took = [call["duration_us"] for call in calls if call["duration_us"] is not None]
        keys = [tuple(call["taken"][k] for k in ("run_id", "iteration", "tool_call_id")) for call in calls]
        return {
            "tool": tool,
            "server": server,
            "calls": len(calls),
            **{status: sum(call["status"] == status for call in calls) for status in _STATUSES},
            "waiting": sum(key in waits for key in keys),
            "in_doubt": sum(call["in_doubt"] for call in calls),
            "mean": mean(took) / 1e6 if took else None,
            "longest": max(took) / 1e6 if took else None,
        }

    rows = [row(tool, server) for tool, server in tools]
    return sorted(rows, key=lambda row: (-row["calls"], row["tool"]))


def _rows(a: Asked) -> list[Row]:
    counted = a.of_agents(a.counted.decisions())
    return [{"rows": len(counted), "with_a_trace": sum(f["trace_id"] is not None for f in counted)}]


def _decisions(a: Asked) -> list[Row]:
    return [
        {
            **{name: f[name] for name in ("moment", "outcome", "changed", "shadow", "trace_id")},
            "time": _seconds(f),
            "row": f["position"],
            "rule": f["middleware"],
            "tool": f["tool_name"],
            "why": f["values"].get("why"),
            "person": f["values"].get("decided_by"),
            "took": _took(f["duration_us"]),
        }
        for f in a.counted.runs.get(a.run, [])
        if f["kind"] == "decision"
    ]


def _calls(a: Asked) -> list[Row]:
    return [
        {
            **{name: call[name] for name in ("status", "rule", "error", "in_doubt")},
            "time": _seconds(call["taken"]),
            "row": call["taken"]["position"],
            "tool": call["taken"]["tool_name"],
            "server": call["taken"]["tool_source"],
            "took": _took(call["duration_us"]),
            "trace_id": call["taken"]["trace_id"],
        }
        for call in a.counted.calls()[::-1]
        if call["taken"]["run_id"] == a.run
    ]


SHOWN: dict[str, Panel] = {
    "governance/Answers of people/A": _answers,
    "governance/Latest denials/A": _denials,
    "governance/Questions that wait/A": _questions,
    "governance/Redactions by place/A": _redactions,
    "runs/Calls in doubt/A": _in_doubt,
    "runs/Calls of the run/A": _calls,
    "runs/Decisions of the run/A": _decisions,
    "runs/Decisions, by who tells/A": _rows,
    "runs/Runs without an end/A": _without_an_end,
    "runs/Slowest runs/A": _slowest,
    "runs/Tools/A": _tools,
    "runs/Without an end/A": _silent,
}
"""Every question to the ledger."""

"""What the panels that ask Prometheus must come to, counted from the rows of a ledger file."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from browsed_rows import FAILURES, Counted, Row

Labels: TypeAlias = tuple[tuple[str, str], ...]
Vector: TypeAlias = dict[Labels, float]
Bounds: TypeAlias = Callable[[str], Sequence[float]]
"""What tells the upper bounds of the buckets of a histogram."""

AGENT = "gen_ai_agent_name"
ANSWER = "footprint_pause_answer"
MODEL = "gen_ai_request_model"
MOMENT = "footprint_moment"
OUTCOME = "footprint_outcome"
RULE = "footprint_middleware"
RUN_OUTCOME = "footprint_run_outcome"
STATUS = "footprint_tool_status"
STRATEGY = "footprint_redaction_strategy"
TOKEN = "gen_ai_token_type"
TOOL = "gen_ai_tool_name"
WATCHER = "footprint_watcher"


def by(label: str, words: Iterable[str]) -> Vector:
    """How often there is each word, by a label."""
    return {((label, word),): float(n) for word, n in Counter(words).items()}


def alone(value: float) -> Vector:
    """A vector of one series without labels."""
    return {(): float(value)}


def shares(part: Vector, whole: Vector) -> Vector:
    """What a part is of the whole, series by series."""
    return {labels: part.get(labels, 0.0) / value for labels, value in whole.items()}


def _quantile(q: float, values: Sequence[float], bounds: Sequence[float]) -> float:
    """A quantile as a histogram with these bounds has it: straight lines within a bucket."""
    counts = [sum(value <= bound for value in values) for bound in bounds]
    rank = q * len(values)
    place = next((n for n, count in enumerate(counts) if count >= rank), None)
    if place is None:
        return bounds[-1]
    low, below = (bounds[place - 1], counts[place - 1]) if place else (0.0, 0)
    return low + (bounds[place] - low) * (rank - below) / (counts[place] - below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What metrics tell of a file within a time.

    Attributes:
        counted: The file.
        minutes: How long the time is.
        bounds: What tells the buckets of a histogram.
        lost: How many items the recorder `losing` lost, while one more waits.
        agents: The agents that were chosen; None for all. Panels that say "of all agents" do not ask.
        rules: The rules, the same.
        tools: The tools, the same.
    """

    counted: Counted
    minutes: float
    bounds: Bounds
    lost: int
    agents: Collection[str] | None = None
    rules: Collection[str] | None = None
    tools: Collection[str] | None = None

    def of_agents(self, facts: Iterable[Row]) -> list[Row]:
        """Those of the agents."""
        return [fact for fact in facts if self.agents is None or fact["agent"] in self.agents]

    def of_rules(self, facts: Iterable[Row]) -> list[Row]:
        """Those of the agents and the rules."""
        return [f for f in self.of_agents(facts) if self.rules is None or f["middleware"] in self.rules]

    def decisions(self, outcome: str | None = None) -> list[Row]:
        """Decisions that counted."""
        return self.of_rules(self.counted.decisions(outcome))

    def decided(self, label: str, column: str, outcome: str | None = None) -> Vector:
        """How many of them, by a column."""
        return by(label, (fact[column] for fact in self.decisions(outcome)))

    def broken(self) -> list[Row]:
        """Answers of rules that were none."""
        return self.of_rules(fact for fact in self.counted.of("decision") if fact["answer"] in FAILURES)

    def rule_times(self) -> list[tuple[str, float]]:
        """How long rules took."""
        return _timed("middleware", self.of_rules(self.counted.of("decision")))

    def segments(self) -> list[Row]:
        """The ends watchers are told of: one a segment. A paused one that is given up has ended before."""
        first: dict[tuple[str, int], Row] = {}
        for fact in self.counted.of("segment.ended")[::-1]:
            first.setdefault((fact["run_id"], fact["segment"]), fact)
        return self.of_agents(first.values())

    def ended(self) -> list[Row]:
        """Those of them that are ends of runs."""
        return [fact for fact in self.segments() if fact["outcome"] not in {"paused", "abandoned"}]

    def iterations(self) -> list[tuple[str, float]]:
        """How many model calls runs took, by agent."""
        return [(fact["agent"], fact["extra"]["iterations"]) for fact in self.ended()]

    def calls(self) -> Counter[str]:
        """Calls by how they ended, and how often one paused."""
        found = Counter(fact["status"] for fact in self.of_agents(self.counted.of("call.answered")))
        return found + Counter("paused" for _ in self.of_agents(self.counted.of("pause.opened")))

    def tool_times(self) -> list[tuple[str, float]]:
        """How long tools took."""
        ran = (fact for fact in self.counted.of("call.answered") if fact["extra"].get("executed"))
        return [
            (tool, took)
            for tool, took in _timed("tool_name", self.of_agents(ran))
            if self.tools is None or tool in self.tools
        ]

    def model_times(self) -> list[tuple[str, float]]:
        """How long models took, of all agents."""
        return _timed("model", self.counted.of("model.replied", "model.failed"))

    def first_chunks(self) -> list[tuple[str, float]]:
        """How long models that stream took to begin, of all agents."""
        return [
            (fact["model"], fact["extra"]["first_chunk_us"] / 1e6)
            for fact in self.counted.of("model.replied")
            if "first_chunk_us" in fact["extra"]
        ]

    def waits(self) -> list[tuple[str, float]]:
        """How long people took to answer, of all agents."""
        return [(f["answer"], f["extra"]["paused_us"] / 1e6) for f in self.counted.of("pause.answered")]

    def tokens(self) -> Vector:
        """Tokens by model and kind, of all agents."""
        found: Vector = defaultdict(float)
        for fact in self.counted.of("model.replied"):
            for kind in ("input", "output"):
                found[(MODEL, fact["model"]), (TOKEN, kind)] += fact["extra"].get("usage", {}).get(kind, 0)
        return dict(found)

    def redactions(self) -> Vector:
        """Values that were taken out of decisions, of all agents."""
        told = (json.loads(fact["redacted"] or "[]") for fact in self.counted.of("decision"))
        return by(STRATEGY, (how for one in told for _, how in one))

    def quantiles(self, q: float, metric: str, label: str, values: Iterable[tuple[str, float]]) -> Vector:
        """A quantile of a histogram, by a label; of all together without one."""
        sorted_by: dict[str, list[float]] = defaultdict(list)
        for word, value in values:
            sorted_by[word if label else ""].append(value)
        bounds = self.bounds(metric)
        assert math.isfinite(bounds[-1])
        return {
            ((label, word),) if label else (): _quantile(q, found, bounds)
            for word, found in sorted_by.items()
        }


def _timed(column: str, facts: Iterable[Row]) -> list[tuple[str, float]]:
    return [(f[column], f["duration_us"] / 1e6) for f in facts if f["duration_us"] is not None]


Truth: TypeAlias = Callable[[Told], Vector]


def _a_minute(truth: Truth) -> Truth:
    """What is drawn as so many a minute."""
    return lambda told: {labels: value / told.minutes for labels, value in truth(told).items()}


def _quantiles(q: float, metric: str, label: str, values: Callable[[Told], list[tuple[str, float]]]) -> Truth:
    return lambda told: told.quantiles(q, metric, label, values(told))


def _worked(told: Told) -> list[tuple[str, float]]:
    return _timed("agent", told.segments())


def _share_of_ends(outcome: str) -> Truth:
    return lambda told: alone(sum(f["outcome"] == outcome for f in told.ended()) / len(told.ended()))


def _model_calls(told: Told) -> Vector:
    return alone(sum(n for _, n in told.iterations()) / len(told.iterations()))


def _failed_calls(told: Told) -> Vector:
    return alone(told.calls()["failed"] / (told.calls()["failed"] + told.calls()["ran"]))


_RULE_SECONDS = "footprint_middleware_duration_seconds"
_WAIT_SECONDS = "footprint_approval_latency_seconds"
_RUN_SECONDS = "footprint_run_duration_seconds"
_ITERATIONS = "footprint_run_iterations"
_TOOL_SECONDS = "footprint_tool_duration_seconds"
_MODEL_SECONDS = "gen_ai_client_operation_duration_seconds"
_CHUNK_SECONDS = "gen_ai_client_operation_time_to_first_chunk_seconds"

TRUTHS: dict[str, Truth] = {
    "governance/Decisions/A": lambda told: alone(len(told.decisions())),
    "governance/Denials/A": lambda told: alone(len(told.decisions("deny"))),
    "governance/Denial rate/A": lambda told: alone(len(told.decisions("deny")) / len(told.decisions())),
    "governance/Questions/A": lambda told: alone(len(told.decisions("ask"))),
    "governance/Open questions/A": lambda told: alone(len(told.counted.open_questions())),
    "governance/Broken rules/A": lambda told: alone(len(told.broken())),
    "governance/Lost/A": lambda told: alone(told.lost),
    "governance/Lost by recorders/A": _a_minute(lambda told: by(WATCHER, ["losing"] * told.lost)),
    "governance/Lost by recorders/B": _a_minute(lambda _: by(WATCHER, ["losing"])),
    "governance/Waiting in recorders/A": lambda _: by(WATCHER, ["losing"]),
    "governance/Decisions by outcome/A": _a_minute(lambda told: told.decided(OUTCOME, "outcome")),
    "governance/Denial rate by agent/A": lambda told: shares(
        told.decided(AGENT, "agent", "deny"), told.decided(AGENT, "agent")
    ),
    "governance/Top rules by denial/A": lambda told: told.decided(RULE, "middleware", "deny"),
    "governance/Denials by moment/A": _a_minute(lambda told: told.decided(MOMENT, "moment", "deny")),
    "governance/Rules/hits": lambda told: told.decided(RULE, "middleware"),
    "governance/Rules/denied": lambda told: told.decided(RULE, "middleware", "deny"),
    "governance/Rules/asked": lambda told: told.decided(RULE, "middleware", "ask"),
    "governance/Rules/p95": _quantiles(0.95, _RULE_SECONDS, RULE, Told.rule_times),
    "governance/Rules/errors": lambda told: by(RULE, (fact["middleware"] for fact in told.broken())),
    "governance/Time to an answer/A": _quantiles(0.5, _WAIT_SECONDS, ANSWER, Told.waits),
    "governance/Time to an answer/B": _quantiles(0.95, _WAIT_SECONDS, ANSWER, Told.waits),
    "governance/Answers/A": _a_minute(lambda told: by(ANSWER, (answer for answer, _ in told.waits()))),
    "governance/Redactions by strategy/A": _a_minute(Told.redactions),
    "runs/Runs/A": lambda told: alone(len(told.ended())),
    "runs/Answered/A": _share_of_ends("answered"),
    "runs/Failed/A": _share_of_ends("failed"),
    "runs/Duration, p95/A": _quantiles(0.95, _RUN_SECONDS, "", _worked),
    "runs/Model calls a run/A": _model_calls,
    "runs/Failed calls/A": _failed_calls,
    "runs/Tokens/A": lambda told: alone(sum(told.tokens().values())),
    "runs/Ends by outcome/A": _a_minute(
        lambda told: by(RUN_OUTCOME, (fact["outcome"] for fact in told.segments()))
    ),
    "runs/Duration/A": _quantiles(0.5, _RUN_SECONDS, AGENT, _worked),
    "runs/Duration/B": _quantiles(0.95, _RUN_SECONDS, AGENT, _worked),
    "runs/Model calls by agent/A": _quantiles(0.5, _ITERATIONS, AGENT, Told.iterations),
    "runs/Model calls by agent/B": _quantiles(0.95, _ITERATIONS, AGENT, Told.iterations),
    "runs/Calls by status/A": _a_minute(lambda told: by(STATUS, told.calls().elements())),
    "runs/Time of tools, p95/A": _quantiles(0.95, _TOOL_SECONDS, TOOL, Told.tool_times),
    "runs/Runs of tools/A": _a_minute(lambda told: by(TOOL, (tool for tool, _ in told.tool_times()))),
    "runs/Tokens by model/A": _a_minute(Told.tokens),
    "runs/Time of models/A": _quantiles(0.5, _MODEL_SECONDS, MODEL, Told.model_times),
    "runs/Time of models/B": _quantiles(0.95, _MODEL_SECONDS, MODEL, Told.model_times),
    "runs/Time to the first chunk, p95/A": _quantiles(0.95, _CHUNK_SECONDS, MODEL, Told.first_chunks),
    "runs/Decisions, by who tells/B": lambda told: alone(len(told.of_agents(told.counted.decisions()))),
}
"""Every query to Prometheus but for the one whose answer grows with the clock."""

"""What each event adds to which metric. A number is added at once; nothing of an event is kept but names."""

from __future__ import annotations

import threading
from typing import Final

import msgspec

from footprint_core.decisions import Verdict
from footprint_core.events import (
    AgentConfigured,
    DecisionFiled,
    Event,
    ModelCallEnded,
    ObserverError,
    PauseRequested,
    PauseResumed,
    ToolCallEnded,
    TurnEnded,
)
from footprint_core.moments import LoopMoment
from footprint_observe import semconv as n
from footprint_observe.recording.names import CANCELLED, error_class

from . import otel_metrics_table as table
from .otel_metrics_instruments import Instruments
from .otel_metrics_table import LABELS, OTHER

COUNTED: Final[frozenset[type[Event]]] = frozenset(
    {
        AgentConfigured,
        DecisionFiled,
        ModelCallEnded,
        ObserverError,
        PauseRequested,
        PauseResumed,
        ToolCallEnded,
        TurnEnded,
    }
)
"""The events that add something."""

_MAX_OPEN = 4096
_MISJUDGED = frozenset({"raised", "timed-out", "malformed"})
_GOES_ON = frozenset({"paused", "abandoned"})
_LEGAL: Final[dict[LoopMoment, tuple[Verdict, ...]]] = {
    "input": ("allow", "deny"),
    "before-tool": ("allow", "deny", "ask"),
    "after-tool": ("allow", "deny"),
    "output": ("allow", "deny"),
}


class _Segment(msgspec.Struct, frozen=True):
    """What the events of a segment do not say again."""

    agent: str = OTHER
    provider: str = OTHER
    model: str = OTHER
    tools: frozenset[str] = frozenset()


# The end of a process that died is told by another, before that begins its own segment.
_UNKNOWN = _Segment()


class Tally:
    """What one recorder is told, counted.

    Args:
        instruments: Those of its meter provider.
    """

    def __init__(self, instruments: Instruments) -> None:
        self._to = instruments
        self._open: dict[tuple[str, int], _Segment] = {}
        self.renew()

    def renew(self) -> None:
        """Begin with a lock that nobody holds, as a forked process must."""
        self._lock = threading.RLock()

    def take(self, event: Event) -> None:
        """Add what an event says."""
        match event:
            case DecisionFiled():
                self._decided(event)
            case ToolCallEnded():
                self._call_ended(event)
            case ModelCallEnded():
                self._model_ended(event)
            case AgentConfigured():
                self._begin(event)
            case TurnEnded():
                self._end(event)
            case PauseRequested():
                self._to.tools.add(1, "paused", self._segment(event).agent)
            case PauseResumed():
                self._to.people.record(event.paused, event.answer)
            case ObserverError():
                self._to.observed.raised(event.watcher)
            case _:
                pass

    def _segment(self, event: Event) -> _Segment:
        return self._open.get((event.run_id, event.segment), _UNKNOWN)

    def _begin(self, event: AgentConfigured) -> None:
        agent = event.agent_name
        segment = _Segment(agent, event.provider, event.model, frozenset(event.tools))
        with self._lock:
            if len(self._open) >= _MAX_OPEN:
                # A run whose end is never told must not be kept for ever.
                del self._open[next(iter(self._open))]
            self._open[(event.run_id, event.segment)] = segment
        for moment, outcomes in _LEGAL.items():
            for rule in event.rules.get(moment, ()):
                self._to.rule_errors.start(moment, rule.name, agent)
                for outcome in outcomes:
                    self._to.decisions.start(moment, outcome, rule.name, agent)
        for ending in sorted(LABELS[n.RUN_OUTCOME] or ()):
            self._to.runs.start(ending, agent)
        for status in sorted(LABELS[n.TOOL_STATUS] or ()):
            self._to.tools.start(status, agent)

    def _end(self, event: TurnEnded) -> None:
        with self._lock:
            segment = self._open.pop((event.run_id, event.segment), _UNKNOWN)
        self._to.runs.add(1, event.outcome, segment.agent)
        self._to.run_seconds.record(event.duration, event.outcome, segment.agent)
        if event.outcome not in _GOES_ON:
            self._to.iterations.record(event.iteration_count, segment.agent)

    def _decided(self, event: DecisionFiled) -> None:
        agent = self._segment(event).agent
        if not event.shadow:
            self._to.decisions.add(1, event.moment, event.outcome, event.middleware, agent)
        if event.duration is not None:
            self._to.rules.record(event.duration, event.moment, event.middleware, agent)
        if event.answer in _MISJUDGED:
            self._to.rule_errors.add(1, event.moment, event.middleware, agent)
        if event.redactions:
            for strategy, count in event.redactions.items():
                self._to.redactions.add(count, strategy)

    def _call_ended(self, event: ToolCallEnded) -> None:
        segment = self._segment(event)
        self._to.tools.add(1, event.status, segment.agent)
        if event.executed and event.duration is not None:
            tool = event.tool_name if event.tool_name in segment.tools else OTHER
            self._to.tool_seconds.record(event.duration, tool, segment.agent)

    def _model_ended(self, event: ModelCallEnded) -> None:
        segment = self._segment(event)
        model = (segment.provider, segment.model, n.CHAT)
        self._to.model_seconds.record(event.duration, *model, _error(event.error_class))
        if event.first_chunk is not None:
            self._to.first_chunk.record(event.first_chunk, *model)
        if event.usage is not None:
            read, written = table.TOKENS
            self._to.tokens.record(event.usage.input, read, *model)
            self._to.tokens.record(event.usage.output, written, *model)


def _error(kind: str | None) -> str | None:
    return None if kind is None or kind == CANCELLED else error_class(kind)

"""What all agents of a scenario have in common: its rules, tools, observers, models and ledger."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

from conformance.model import QueueModel, QueueSummarizer
from conformance.recording import Recording
from conformance.rules import SuiteRule
from conformance.scenario import Scenario, Summarize, ToolSource
from conformance.tools import suite_tool
from conformance.values import Json
from footprint_core import Entry, Ledger, Tool
from footprint_core.events import DecisionFiled, Event
from footprint_core.mcp import mock_mcp_client


class ReadableLedger(Ledger, Protocol):
    """A ledger whose entries can be read."""

    def entries(self, run_id: str, /) -> tuple[Entry, ...]:
        """The entries of a run, in order."""
        ...


class CountingObserver:
    """A watcher that counts the decisions it is told of. Its id may be a wrong one on purpose."""

    def __init__(self, id: Json) -> None:
        self.id = id
        self.decisions = 0

    def on_event(self, event: Event, /) -> None:
        self.decisions += isinstance(event, DecisionFiled)


class World:
    """One object for each thing a scenario names, however many agents are built of them.

    Attributes:
        scenario: What is played.
        recording: What happens.
        ledger: Where all agents append.
        remembered: The session memory: who approved what, by key.
        model: The queue of replies.
        observers: The watchers the scenario names.
    """

    def __init__(self, scenario: Scenario, ledger: ReadableLedger) -> None:
        self.scenario = scenario
        self.recording = Recording()
        self.ledger = ledger
        self.remembered: dict[str, str] = {}
        self.model = QueueModel(scenario.model, self.recording)
        self.observers = {
            key: CountingObserver(observer.id) for key, observer in scenario.agent.observers.items()
        }
        self._rules: dict[str, SuiteRule] = {}
        self._summarizers: dict[int, QueueSummarizer] = {}

    def rule(self, key: str) -> SuiteRule:
        """The rule of a key, always the same object."""
        if key not in self._rules:
            self._rules[key] = SuiteRule(self.scenario.rules[key], self.recording, self.remembered)
        return self._rules[key]

    def summarizer(self, place: int, window: Summarize) -> QueueSummarizer:
        """The summarizer of the window at a place of the wiring."""
        return self._summarizers.setdefault(place, QueueSummarizer(window.summaries, self.recording))

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """The agent's own tools, then those of its servers."""
        agent = self.scenario.agent
        own = tuple(suite_tool(spec, self.recording) for spec in agent.tools)
        return (*own, *self._sourced(agent.tool_sources))

    @cached_property
    def served_tools(self) -> tuple[Tool, ...]:
        """The tools that are served: own ones, then re-served ones."""
        served = self.scenario.served
        own = tuple(suite_tool(spec, self.recording) for spec in served.tools)
        return (*own, *self._sourced(served.tool_sources))

    def _sourced(self, sources: tuple[ToolSource, ...]) -> tuple[Tool, ...]:
        return tuple(
            tool
            for source in sources
            for tool in mock_mcp_client(
                source.server, tools=[suite_tool(spec, self.recording) for spec in source.tools]
            ).tools_now()
        )

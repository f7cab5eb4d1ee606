"""What happens during an action, in the suite's words, until it is taken away."""

from __future__ import annotations

from conformance.values import Json
from footprint_core.events import Event
from footprint_core.providers import ModelRequest


class Recording:
    """Notes rules, tools, requests and events as they come. It is the watcher of every agent it plays.

    Attributes:
        rule_log: Every call of a rule's hook, with what it was handed.
        executions: Every tool body that was entered.
        requests: Every request to the model.
        events: Every event.
        summarizer_calls: How often a summarizer was asked.
    """

    id = "conformance-recording"

    def __init__(self) -> None:
        self.rule_log: list[Json] = []
        self.executions: list[Json] = []
        self.requests: list[ModelRequest] = []
        self.events: list[Event] = []
        self.summarizer_calls = 0

    def on_event(self, event: Event, /) -> None:
        self.events.append(event)

    def clear(self) -> None:
        """Begin an action."""
        for kept in (self.rule_log, self.executions, self.requests, self.events):
            kept.clear()
        self.summarizer_calls = 0

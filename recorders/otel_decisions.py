"""What the decisions of one segment say; what is the same for all of a rule is made once."""

from __future__ import annotations

from footprint_core.decisions import Verdict
from footprint_core.events import AgentConfigured, DecisionFiled
from footprint_observe import semconv as n
from footprint_observe.recording.names import SegmentNames

from .otel_attributes import about_call, decision, rule
from .otel_calls import OpenCall
from .otel_values import Attributes, named

# An agent may have any number of rules.
_MAX_RULES = 1024
_NOTHING: Attributes = {}


class Decisions:
    """The decisions of a segment.

    Args:
        event: The segment's first event, which names the versions of its rules.
        common: What each of them says.
        names: What of the names a model wrote may be shipped.

    Attributes:
        counts: How many of each took effect.
    """

    __slots__ = ("_common", "_configured", "_names", "_rules", "_versions", "counts")

    def __init__(self, event: AgentConfigured, common: Attributes, names: SegmentNames) -> None:
        self._configured = event.rules
        self._common = common
        self._names = names
        self._versions: dict[tuple[str, str], str | None] | None = None
        self._rules: dict[tuple[str, str], tuple[str, Attributes]] = {}
        self.counts: dict[Verdict, int] = {"allow": 0, "deny": 0, "ask": 0}

    def told(self, event: DecisionFiled, call: OpenCall | None) -> tuple[str, Attributes]:
        """The name of a decision's span, and what it says; `call` is the open one it is about."""
        known = self._rules.get((event.moment, event.middleware))
        name, said = self._rule(event) if known is None else known
        about = call.about if call is not None else None
        if about is None:
            about = self._about(event)
            if call is not None:
                call.about = about
        return name, decision(event, said, about)

    def _rule(self, event: DecisionFiled) -> tuple[str, Attributes]:
        """The same for every decision of a rule at a moment."""
        if self._versions is None:
            self._versions = {
                (moment, ref.name): ref.version for moment, refs in self._configured.items() for ref in refs
            }
        if len(self._rules) >= _MAX_RULES:
            self._rules.clear()
        key = (event.moment, event.middleware)
        said: Attributes = {**self._common, **rule(event, self._versions.get(key))}
        made = self._rules[key] = (named(n.DECISION, event.middleware), said)
        return made

    def _about(self, event: DecisionFiled) -> Attributes:
        """The same for every decision about a call."""
        tool, call = event.tool_name, event.tool_call_id
        if tool is None and call is None:
            return _NOTHING
        return about_call(
            None if tool is None else self._names.tool(tool),
            None if call is None else self._names.call(call),
            event.tool_source,
        )


def plain(event: DecisionFiled) -> bool:
    """Whether it let something through as it is."""
    return event.outcome == "allow" and not event.changed and event.answer == "given"

"""Alters what is expected, one value at a time, to see that every value counts.

Which values count is said here once more, and not asked of the comparison: it is what is being tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from conformance.values import Json, is_list, is_object

_CONTEXT_EVENTS: Final = frozenset({"context.slot_composed", "context.injected"})

_TEXT_OF_EVENTS: Final = frozenset(
    {"userPrompt", "turnIndex", "why", "content", "args", "rationale", "result", "finalContent"}
)

_ONLY_IN: Final = {"reason": "context.evicted", "error": "stream.tool_end"}
"""Fields that are text in every event but one."""

_ONE_MORE: Final = {"type": "agent.turn_start", "tool": "altered"}
"""Something that can stand in any list."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an expected value stands.

    Attributes:
        step: The step, or None for the scenario as a whole.
        kind: What is compared there.
        holder: The object or list it stands in.
        key: Its key or place in there.
    """

    step: int | None
    kind: str
    holder: Any
    key: str | int

    @contextmanager
    def altered(self) -> Iterator[None]:
        """While this lasts, another value is expected there."""
        value = self.holder[self.key]
        self.holder[self.key] = _another(value)
        try:
            yield
        finally:
            self.holder[self.key] = value


def places(expected: Json) -> Iterator[Place]:
    """Every value that counts, in what is expected of a scenario."""
    for kind in expected.keys() - {"steps"}:
        yield from (Place(step=None, kind=kind, holder=at, key=key) for at, key in _leaves(expected, kind))
    for number, step in enumerate(expected["steps"]):
        for kind in step:
            leaves = _of_events(step) if kind == "events" else _leaves(step, kind)
            yield from (Place(step=number, kind=kind, holder=at, key=key) for at, key in leaves)


def _leaves(holder: Any, key: str | int) -> Iterator[tuple[Any, str | int]]:
    value = holder[key]
    if key == "observations":
        return
    if is_object(value) and ("$authored" in value or "$contains" in value):
        # The words are the product's own; that there are words counts, and what they must contain.
        yield holder, key
        parts = value["contains" if "$authored" in value else "$contains"]
        yield from ((parts, number) for number in range(len(parts)))
    elif is_object(value) and value:
        for name in value:
            yield from _leaves(value, name)
    elif is_list(value) and value:
        for number in range(len(value)):
            yield from _leaves(value, number)
    else:
        yield holder, key


def _of_events(step: dict[str, Json]) -> Iterator[tuple[Any, str | int]]:
    if not step["events"]:
        yield step, "events"
    for event in step["events"]:
        if event["type"] not in _CONTEXT_EVENTS:
            for name in event:
                if name not in _TEXT_OF_EVENTS and _ONLY_IN.get(name, event["type"]) == event["type"]:
                    yield from _leaves(event, name)


def _another(value: Json) -> Json:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if is_list(value):
        return [_ONE_MORE]
    return f"{value} (altered)" if isinstance(value, str) else "altered"

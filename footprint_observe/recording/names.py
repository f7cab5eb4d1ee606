"""What of a name may leave the process: what the program declared, and an id that looks like one.

Events show a tool's name and a call's id as the model wrote them wherever nothing but letters, digits and a
few marks is in them, and a key or a password is made of just these. What is shipped is narrower than that.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final, cast, get_args

import msgspec

from footprint_core.events import AgentConfigured, Event, TurnEnded

UNKNOWN: Final = "(unknown)"
"""Stands for the name of a tool that the program did not declare."""

INVALID: Final = "(invalid)"
"""Stands for the name of a class that is no name."""

CANCELLED: Final = "CancelledError"
"""What a model call that was cancelled is said to have ended with. Nothing raised, so nothing is an error."""

_MAX_OPEN = 4096
_CLASS = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# Too short to be worth hiding, or in a form in which ids are given and no key or password is by accident:
# behind a word of their own, or as a UUID. An id of nine letters and digits, as Mistral gives, is in none.
_ID = re.compile(
    r"[\w.:-]{1,7}"
    # OpenAI, Ollama and who speaks like them; Anthropic, also by way of Bedrock and Vertex.
    r"|(?:call|fc|ctc|toolu|toolu_bdrk|toolu_vrtx)[_-][A-Za-z0-9]{1,48}"
    # DeepSeek; Bedrock's own; vLLM.
    r"|call_\d\d_[A-Za-z0-9]{1,48}"
    r"|tooluse_[A-Za-z0-9_-]{22}"
    r"|chatcmpl-tool-(?:[0-9a-f]{16}|[0-9a-f]{32})"
    # This product's own: of a call it serves, although some keys look like it; for an id that was not usable.
    r"|[0-9a-f]{32}"
    r"|call-\d{1,9}-\d{1,9}x{0,9}"
    # A UUID, as libraries give one where a model gives none, and some servers.
    r"|(?:call_|fc_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
# Kimi: the tool, and the number of the call.
_NUMBERED = re.compile(r"(?:functions\.)?(.+):\d{1,4}")

_KINDS: tuple[type[Event], ...] = get_args(Event)


def _having(*names: str) -> dict[type[Event], str]:
    """The events that have one of these fields, with the field."""
    return {
        kind: name
        for kind in _KINDS
        for name in names
        if name in cast("msgspec.Struct", kind).__struct_fields__
    }


_TOOLS = _having("tool_name", "target")
_CALLS = _having("tool_call_id")
_CLASSES = _having("error_class")
_NAMING = _TOOLS.keys() | _CALLS.keys() | _CLASSES.keys()


class SegmentNames:
    """The names of one segment.

    Args:
        tools: The names of the tools the program declared.
    """

    __slots__ = ("_ids", "_tools")

    def __init__(self, tools: tuple[str, ...]) -> None:
        self._tools = frozenset(tools)
        self._ids: dict[str, str] = {}

    def tool(self, name: str, /) -> str:
        """The name of a tool, if the program declared it; else `(unknown)`, or `(invalid)` as events say."""
        return name if name in self._tools or name == INVALID else UNKNOWN

    def call(self, id: str, /) -> str:
        """The id of a call, if it looks like one; else `(id 1)`, `(id 2)` and so on, as they come.

        The same id has the same alias, so that what belongs together stays together.
        """
        if _ID.fullmatch(id):
            return id
        numbered = _NUMBERED.fullmatch(id)
        if numbered is not None and numbered[1] in self._tools:
            return id
        return self._ids.setdefault(id, f"(id {len(self._ids) + 1})")

    def shown(self, event: Event, /) -> Event:
        """The event with the names that may be shipped; the same object when nothing is to be replaced."""
        kind = type(event)
        if kind not in _NAMING:
            return event
        changed: dict[str, str] = {}
        for fields, shown in ((_TOOLS, self.tool), (_CALLS, self.call), (_CLASSES, error_class)):
            if (field := fields.get(kind)) is None:
                continue
            value: str | None = getattr(event, field)
            if value is not None and (other := shown(value)) != value:
                changed[field] = other
        return msgspec.structs.replace(event, **changed) if changed else event


class Names:
    """The names of every open segment that a recorder is told of.

    Of a segment whose beginning it was not told, no tool is declared.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], SegmentNames] = {}

    def shown(self, event: Event, /) -> Event:
        """The event with the names that may be shipped; the same object when nothing is to be replaced."""
        key = (event.run_id, event.segment)
        if isinstance(event, AgentConfigured):
            self._keep(key, SegmentNames(event.tools))
            return event
        if isinstance(event, TurnEnded):
            self._open.pop(key, None)
            return event
        names = self._open.get(key)
        if names is None:
            if type(event) not in _NAMING:
                return event
            # Kept as if it had begun, or every id would be the first of its segment and have the same alias.
            names = SegmentNames(())
            self._keep(key, names)
        return names.shown(event)

    def _keep(self, key: tuple[str, int], names: SegmentNames) -> None:
        # Without a lock, which a process that is forked in between could never release.
        self._open[key] = names
        if len(self._open) > _MAX_OPEN:
            # A run whose end is never told must not be kept for ever. Who comes second here finds it gone.
            with suppress(KeyError, RuntimeError):
                del self._open[next(iter(self._open))]


def error_class(name: str, /) -> str:
    """The name of an error's class, if it is one; a class made at run time can be called anything."""
    return name if _CLASS.fullmatch(name) else INVALID

"""The messages of a conversation, and an immutable view of many that costs nothing to hand over."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Literal, TypeAlias, overload

import msgspec

from footprint_core import plain
from footprint_core.plain import Json

# Letters of any alphabet: what must not stand in an id is a sentence.
_HARMLESS = re.compile(r"[\w.:-]{1,64}")


TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""What a tool can be called. A name a model wrote is shown where nothing else can be hidden in it."""


def harmless_id(text: str) -> bool:
    """Whether a call id may be shown as the model gave it: 1 to 64 letters, digits, `_`, `.`, `:` and `-`."""
    return _HARMLESS.fullmatch(text) is not None


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call the model asked for.

    Attributes:
        id: The call's id, unique within its assistant turn.
        name: The tool's name as the model wrote it.
        args_json: The arguments as JSON text. Text, so that nobody who is shown the call can change it.
        repeats: The id the model gave, when it had given it to another call of the same reply.
    """

    id: str
    name: str
    args_json: str
    repeats: str | None = None

    @property
    def args(self) -> Json:
        """The arguments, decoded anew at each reading. An object, unless the model sent something else."""
        return plain.decode(self.args_json)


class UserMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="role", tag="user"):
    """What a user said, or what the product says to the model in a user's place.

    Attributes:
        text: The text.
        kind: A person's request, a notice about messages that left the window, a summary of them, or an
            instruction.
    """

    role: ClassVar[str] = "user"
    text: str
    kind: Literal["request", "notice", "summary", "instruction"] = "request"


class AssistantMessage(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="role", tag="assistant"
):
    """What the model said, and the calls it asked for."""

    role: ClassVar[str] = "assistant"
    text: str
    calls: tuple[ToolCall, ...] = ()


class ToolMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="role", tag="tool"):
    """What the model reads of a call: the tool's result or a refusal.

    Attributes:
        call_id: The call.
        tool_name: The tool the model asked for.
        text: What the model reads.
        refused: Whether `text` is a refusal and not the tool's own, so that a provider can say so.
    """

    role: ClassVar[str] = "tool"
    call_id: str
    tool_name: str
    text: str
    refused: bool = False


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage
"""One message of a conversation."""


class Messages(Sequence[Message]):
    """An immutable sequence of messages.

    Conversations that grow share one list; a view knows how much of it is its own. `plus` is O(1)
    unless another view already grew the same list, in which case the shared part is copied once.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: Sequence[Message] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    @classmethod
    def _over(cls, items: list[Message], length: int) -> Messages:
        view = cls.__new__(cls)
        view._items = items  # noqa: SLF001 - this is the other constructor
        view._length = length  # noqa: SLF001 - this is the other constructor
        return view

    def plus(self, message: Message) -> Messages:
        """The same messages and one more."""
        items = self._items
        if len(items) != self._length:
            items = items[: self._length]
        items.append(message)
        return Messages._over(items, self._length + 1)

    def first(self, count: int) -> Messages:
        """The first `count` of the same messages; O(1)."""
        return Messages._over(self._items, min(count, self._length))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self._items[i] for i in range(*index.indices(self._length)))
        if not -self._length <= index < self._length:
            raise IndexError("There is no message at that place.")
        return self._items[index if index >= 0 else self._length + index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Messages) and self[:] == other[:]

    def __hash__(self) -> int:
        return hash(self[:])

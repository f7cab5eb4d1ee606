"""A message of a recorded conversation, in the OpenAI chat format, as far as it is read here."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter

from footprint_core import plain


class _Shape(BaseModel):
    # What else stands in a message, a refusal or an audio part, is not played.
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


def _joined(content: object) -> object:
    """The text of a content that is given as parts of text; any other content as it is."""
    if not plain.is_array(content) or not content:
        return content
    texts = [
        part.get("text") if plain.is_object(part) and part.get("type") == "text" else None for part in content
    ]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if len(found) == len(content) else content


_Text: TypeAlias = Annotated[str, BeforeValidator(_joined)]


class ChatFunction(_Shape):
    """The tool a call is for, and its arguments as JSON text."""

    name: Annotated[str, Field(min_length=1)]
    arguments: str


class ChatCall(_Shape):
    """A call the model asked for."""

    id: str
    function: ChatFunction


class SystemChat(_Shape):
    """The system prompt, also under its newer name."""

    role: Literal["system", "developer"]
    content: _Text


class UserChat(_Shape):
    """What the user said."""

    role: Literal["user"]
    content: _Text


class AssistantChat(_Shape):
    """What the model said, and the calls it asked for."""

    role: Literal["assistant"]
    content: _Text | None = None
    tool_calls: list[ChatCall] | None = None


class ToolChat(_Shape):
    """What a tool gave for a call."""

    role: Literal["tool"]
    content: _Text
    tool_call_id: str


ChatMessage: TypeAlias = SystemChat | UserChat | AssistantChat | ToolChat
"""One recorded message."""

CHAT_MESSAGE: TypeAdapter[ChatMessage] = TypeAdapter(Annotated[ChatMessage, Field(discriminator="role")])
"""Checks a recorded message."""

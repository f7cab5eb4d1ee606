"""A message of a recorded conversation, in the OpenAI chat format, as far as it is read here."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class _Shape(BaseModel):
    # What else stands in a message, a refusal or an audio part, is not played.
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class ChatFunction(_Shape):
    """The tool a call is for, and its arguments as JSON text."""

    name: Annotated[str, Field(min_length=1)]
    arguments: str


class ChatCall(_Shape):
    """A call the model asked for."""

    id: str
    function: ChatFunction


class SystemChat(_Shape):
    """The system prompt."""

    role: Literal["system"]
    content: str


class UserChat(_Shape):
    """What the user said."""

    role: Literal["user"]
    content: str


class AssistantChat(_Shape):
    """What the model said, and the calls it asked for."""

    role: Literal["assistant"]
    content: str | None = None
    tool_calls: list[ChatCall] | None = None


class ToolChat(_Shape):
    """What a tool gave for a call."""

    role: Literal["tool"]
    content: str
    tool_call_id: str


ChatMessage: TypeAlias = SystemChat | UserChat | AssistantChat | ToolChat
"""One recorded message."""

CHAT_MESSAGE: TypeAdapter[ChatMessage] = TypeAdapter(Annotated[ChatMessage, Field(discriminator="role")])
"""Checks a recorded message."""

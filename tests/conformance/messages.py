"""Messages of a conversation in the suite's words."""

from __future__ import annotations

from typing import assert_never

from conformance.values import Json
from footprint_core import AssistantMessage, Message, ToolMessage, UserMessage


def told(message: Message) -> Json:
    """A message as rules and models are shown it."""
    match message:
        case UserMessage():
            return {"role": "user", "content": message.text}
        case ToolMessage():
            return {
                "role": "tool",
                "content": message.text,
                "toolCallId": message.call_id,
                "toolName": message.tool_name,
            }
        case AssistantMessage(calls=()):
            return {"role": "assistant", "content": message.text}
        case AssistantMessage():
            calls = [{"id": call.id, "name": call.name, "args": call.args} for call in message.calls]
            return {"role": "assistant", "content": message.text, "toolCalls": calls}
        case _:
            assert_never(message)

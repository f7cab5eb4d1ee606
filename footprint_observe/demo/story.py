"""The story of the demonstration: what the customer says, and what the scripted model does about it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from footprint_core import ToolMessage
from footprint_core.providers import Chunk, Completed, ModelRequest, Whole, call, reply

MESSAGE = (
    "The espresso machine of order 41 arrived broken. I want my $649 back. "
    "In case you need it, my SSN is 123-45-6789."
)
"""What the customer writes."""

_SCRIPT = (
    reply(calls=[call("call-1", "look_up_order", {"order_id": 41})]),
    reply(calls=[call("call-2", "issue_refund", {"order_id": 41, "amount": 649})]),
    reply(calls=[call("call-3", "issue_refund", {"order_id": 41, "amount": 450})]),
)
_REFUNDED = reply(text="I am sorry about the machine. Project Bluebird has refunded you $450.")
_DECLINED = reply(
    text="I am sorry about the machine. Project Bluebird could not approve a refund today; a colleague "
    "will call you."
)


class StoryModel:
    """A scripted model: it follows the story, and its last line depends on what the person decided."""

    name = "scripted"

    def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        """The next line: one for every result the model has been shown."""
        results = [message for message in request.messages if isinstance(message, ToolMessage)]
        if len(results) < len(_SCRIPT):
            return Whole(_SCRIPT[len(results)])
        return Whole(_REFUNDED if '"refunded"' in results[-1].text else _DECLINED)

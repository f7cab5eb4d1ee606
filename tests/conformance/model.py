"""The models of a scenario: one queue of replies for all its agents, and summarizers with their own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from conformance.recording import Recording
from conformance.scenario import Reply, ReportedUsage, Summary
from footprint_core import ToolCall
from footprint_core.facts import Usage
from footprint_core.providers import Chunk, Completed, ModelRequest, Whole


class QueueEmptyError(Exception):
    """A model was asked more often than it has replies."""


class SummarizerDownError(Exception):
    """What a summarizer raises when its scenario says so."""


class QueueModel:
    """Gives the replies in order to whoever asks.

    Attributes:
        streaming: Whether any reply comes in tokens.
        used: Replies that were given.
    """

    name = "scripted"

    def __init__(self, replies: tuple[Reply, ...], recording: Recording) -> None:
        self.streaming = any(reply.tokens is not None for reply in replies)
        self.used = 0
        self._replies = replies
        self._recording = recording

    def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        """The next reply."""
        self._recording.requests.append(request)
        if self.used >= len(self._replies):
            raise QueueEmptyError(f"The model has {len(self._replies)} replies and was asked for another.")
        reply = self._replies[self.used]
        self.used += 1
        return Whole(_completed(reply)) if reply.tokens is None else _in_tokens(reply, reply.tokens)


async def _in_tokens(reply: Reply, tokens: tuple[str, ...]) -> AsyncIterator[Chunk | Completed]:
    for token in tokens:
        yield Chunk(text=token)
    yield _completed(reply)


def _completed(reply: Reply) -> Completed:
    calls = tuple(
        ToolCall(id=wanted.id, name=wanted.name, args_json=json.dumps(wanted.args))
        for wanted in reply.tool_calls
    )
    return Completed(
        text=reply.text if reply.tokens is None else "".join(reply.tokens),
        tool_calls=calls,
        usage=_usage(reply.usage),
        stop_reason="tool_use" if calls else "stop",
    )


def _usage(reported: ReportedUsage | None) -> Usage:
    if reported is None:
        # A provider that counts nothing reports noughts.
        return Usage(input=0, output=0)
    return Usage(input=reported.input, output=reported.output)


class QueueSummarizer:
    """A summarizer that gives its summaries in order, or raises."""

    name = "scripted-summarizer"

    def __init__(self, summaries: tuple[Summary, ...], recording: Recording) -> None:
        self._left = list(summaries)
        self._recording = recording

    def reply(self, _: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        """The next summary."""
        self._recording.summarizer_calls += 1
        if not self._left:
            raise QueueEmptyError("The summarizer has no summary left.")
        summary = self._left.pop(0)
        if summary.text is None:
            raise SummarizerDownError(summary.error)
        return Whole(Completed(text=summary.text, usage=_usage(summary.usage)))

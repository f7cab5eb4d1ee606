"""What a policy would take out of recorded conversations, with nothing written anywhere.

Each message is looked at as the row a ledger would make of it: the message of a turn, a reply with its calls,
the arguments that run, a result, the answer. What rules would say about them is in no recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from footprint_core import plain
from footprint_core.facts import (
    Fact,
    MessageTaken,
    ModelReplied,
    RunConfigured,
    SegmentEnded,
    ToolFinished,
    ToolIntended,
)
from footprint_core.ledger import Redactor, masked_fields, redacted
from footprint_core.messages import ToolCall
from footprint_core.plain import Json
from footprint_observe.backtest.transcript import Transcript
from footprint_observe.backtest.turns import RecordedCall, RecordedReply


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a policy would do at one path of one conversation.

    Attributes:
        conversation_id: The conversation.
        line: The line it stands on, from 1.
        kind: The kind of the rows, for example `tool.finished`.
        path: The path; the places of array items are `*`.
        strategy: What would be done.
        times: How often.
    """

    conversation_id: str
    line: int
    kind: str
    path: str
    strategy: str
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A conversation as it would be kept.

    Attributes:
        findings: What would be done, the first one first.
        kept: Kind, name and value of everything in it that would be changed, as it would be kept.
        values: How many values were looked at.
    """

    findings: tuple[Finding, ...]
    kept: tuple[tuple[str, str, Json], ...]
    values: int


def look_through(transcript: Transcript, redactor: Redactor) -> Looked:
    """What a policy would do to a conversation."""
    counts: Counter[tuple[str, str, str]] = Counter()
    kept: list[tuple[str, str, Json]] = []
    values = 0
    for fact in _facts(transcript):
        kind = str(fact.__struct_config__.tag)
        new, marks = redacted(fact, redactor)
        counts.update((kind, _general(path), strategy) for path, strategy in marks)
        names = masked_fields(fact)
        values += sum(_is_there(getattr(fact, name)) for name in names)
        kept += (
            (kind, name, getattr(new, name))
            for name in names
            if getattr(new, name) is not getattr(fact, name)
        )
    findings = tuple(
        Finding(
            conversation_id=transcript.id,
            line=transcript.line,
            kind=kind,
            path=path,
            strategy=how,
            times=times,
        )
        for (kind, path, how), times in counts.items()
    )
    return Looked(findings=findings, kept=tuple(kept), values=values)


def _general(path: str) -> str:
    """A path that is the same for every item of an array."""
    first, *steps = path.split(".")
    return ".".join([first, *("*" if step.isdigit() else step for step in steps)])


def _is_there(value: Json) -> bool:
    return value is not msgspec.UNSET and value is not None and value != ()


def _facts(transcript: Transcript) -> Iterator[Fact]:
    if transcript.system:
        yield RunConfigured(
            agent_id="", agent_name="", provider="", model="", rules={}, tools=(), turn_index=0,
            system=transcript.system,
        )  # fmt: skip
    for index, turn in enumerate(transcript.turns):
        yield MessageTaken(turn_index=index, message_chars=len(turn.text), text=turn.text)
        for iteration, reply in enumerate(turn.replies, 1):
            yield from _of_reply(reply, iteration)


def _of_reply(reply: RecordedReply, iteration: int) -> Iterator[Fact]:
    calls = tuple(ToolCall(id=call.id, name=call.name, args_json=call.args_json) for call in reply.calls)
    yield ModelReplied(
        iteration=iteration,
        call_count=len(calls),
        stop_reason="tool_use" if calls else "stop",
        duration_us=0,
        text=reply.text,
        calls=calls,
    )
    yield from _of_calls(reply.calls, iteration)
    if not calls:
        yield SegmentEnded(
            outcome="answered",
            iterations=iteration,
            input_tokens=0,
            output_tokens=0,
            duration_us=0,
            text=reply.text,
        )


def _of_calls(calls: Iterable[RecordedCall], iteration: int) -> Iterator[Fact]:
    for call in calls:
        args = plain.decode(call.args_json)
        yield ToolIntended(iteration=iteration, call_id=call.id, tool_name=call.name, args=args)
        yield ToolFinished(
            iteration=iteration, call_id=call.id, tool_name=call.name, failed=False, duration_us=0,
            result=call.value,
        )  # fmt: skip

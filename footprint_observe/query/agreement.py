"""Whether a fact says what follows from the facts before it.

A fact says how many messages it found, which call it answers, how many tokens there were. Only ids, words
and numbers are compared, so that a run whose values are gone is compared like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, assert_never, cast

import msgspec

from footprint_core import facts as fa
from footprint_core.ledger import Entry, Marks
from footprint_core.messages import TOOL_NAME, ToolMessage
from footprint_core.plain import Json
from footprint_core.readback import kind_of
from footprint_observe.query.stored_run import StoredRun

_Check: TypeAlias = tuple[str, object, object]
"""What is compared, what the fact says, and what the facts before it say."""

_OfACall: TypeAlias = (
    fa.Decided
    | fa.PermissionChecked
    | fa.CheckInAsked
    | fa.CheckInAnswered
    | fa.CredentialRequested
    | fa.CredentialAcquired
    | fa.CredentialFailed
    | fa.ToolIntended
    | fa.ToolFinished
    | fa.ToolPaused
    | fa.CallAnswered
)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The first place at which a run is not what its facts say.

    Attributes:
        position: The place.
        kind: The kind of the fact there.
        what: What was compared: a field of the fact, or its place.
        says: What the fact says: an id, a word, a number; never a value.
        folded: What follows from the facts before it.
    """

    position: int
    kind: str
    what: str
    says: object
    folded: object


def difference(run: StoredRun, segment: int, entry: Entry) -> Difference | None:
    """The first thing in which the next fact of a run disagrees with those before it, or None.

    Args:
        run: The run up to the fact.
        segment: The segment the fact is filed under.
        entry: The fact at its place.
    """
    for what, says, folded in (*_place(run, segment, entry), *_checks(run, entry)):
        if says != folded:
            return Difference(
                position=entry.position, kind=kind_of(entry.fact), what=what, says=says, folded=folded
            )
    return None


def _place(run: StoredRun, segment: int, entry: Entry) -> Iterator[_Check]:
    fact = entry.fact
    yield "position", entry.position, run.position + 1
    if isinstance(fact, fa.RunConfigured):
        yield "segment", segment, run.segment + 1
        yield "resumed", fact.resumed, segment > 1
        if run.position > 0 and run.pause is None:
            yield "the end of the segment before", run.outcome, "abandoned"
        yield "behind being given up", run.given_up, False
    elif _is_imported(fact):
        # Only the segments in which something was decided came along.
        yield "segment", segment, max(segment, run.segment)
    else:
        yield "segment", segment, run.segment
        closing = isinstance(fact, fa.PauseClosed | fa.RunAbandoned)
        if (
            run.outcome is not None
            and not closing
            and not (run.given_up and isinstance(fact, fa.SegmentEnded))
        ):
            yield "a fact behind the end of its segment", kind_of(fact), None


def _is_imported(fact: fa.Fact) -> bool:
    return (isinstance(fact, fa.Decided) and fact.imported is not None) or (
        isinstance(fact, fa.PauseOpened) and fact.imported
    )


def _checks(run: StoredRun, entry: Entry) -> Iterator[_Check]:
    fact = entry.fact
    match fact:
        case fa.RunConfigured():
            yield from _configured(run, fact)
        case fa.MessageTaken():
            yield from _message(run, fact, entry.marks)
        case fa.WindowVisited():
            yield from _visited(run, fact)
        case fa.ModelAsked():
            yield from _asked(run, fact)
        case fa.ModelReplied():
            yield from _replied(run, fact, entry.marks)
        case fa.ModelFailed():
            yield from _failed(run, fact)
        case fa.Decided():
            yield from _decided(run, fact)
        case fa.CallTaken():
            yield from _taken(run, fact)
        case (
            fa.PermissionChecked()
            | fa.CheckInAsked()
            | fa.CheckInAnswered()
            | fa.CredentialRequested()
            | fa.CredentialAcquired()
            | fa.CredentialFailed()
            | fa.ToolIntended()
        ):
            yield from _of_a_call(run, fact)
        case fa.ToolFinished() | fa.ToolPaused():
            yield from _of_a_call(run, fact)
            if "calls" not in run.unknown:
                yield "an intent", fact.call_id in run.batch.intended, True
        case fa.CallAnswered():
            yield from _answered(run, fact)
        case fa.PauseOpened():
            yield from _opened(run, fact)
        case fa.PauseAnswered() | fa.PauseClosed():
            yield from _closed(run, fact)
        case fa.IterationEnded():
            yield from _iteration_ended(run, fact)
        case fa.RouteTaken():
            yield "iteration", fact.iteration, run.state.iteration
        case fa.OutputJudged():
            yield from _judged(run, fact)
        case fa.BudgetExhausted():
            yield "iteration", fact.iteration, run.state.iteration
            yield "pending_tool_calls", fact.pending_tool_calls, run.reply_calls
        case fa.SegmentEnded():
            yield from _ended(run, fact)
        case fa.RunRecovered():
            yield from _recovered(run, fact)
        case fa.RunAbandoned():
            pass
        case _:
            assert_never(fact)


def _configured(run: StoredRun, fact: fa.RunConfigured) -> Iterator[_Check]:
    if "turn" not in run.unknown:
        yield "turn_index", fact.turn_index, run.turn_index
    if run.opening is not None:
        yield "agent_id", fact.agent_id, run.opening.agent_id
        yield "follows", fact.follows, run.opening.follows
        yield "conversation_id", fact.conversation_id, run.opening.conversation_id


def _message(run: StoredRun, fact: fa.MessageTaken, marks: Marks) -> Iterator[_Check]:
    yield "turn_index", fact.turn_index, run.turn_index
    yield "a message of this run", run.messaged, False
    if isinstance(fact.text, str) and not marks:
        yield "message_chars", fact.message_chars, len(fact.text)


def _visited(run: StoredRun, fact: fa.WindowVisited) -> Iterator[_Check]:
    yield "iteration", fact.iteration, run.state.iteration + 1
    removed, messages = fact.removed, run.state.messages
    yield "removed_messages", fact.removed_messages, len(removed)
    if "messages" in run.unknown:
        return
    gone = set(removed)
    last = len(messages) - 1
    yield "removed", list(removed), sorted(index for index in gone if 0 <= index <= last)
    if fact.notice_after is not None:
        place = fact.notice_after if fact.notice_after in gone else max(gone, default=None)
        yield "notice_after", fact.notice_after, place
    if "roles" in run.unknown:
        return
    tools = [one.tool_name for index in removed if isinstance(one := messages[index], ToolMessage)]
    yield "dropped_observations", list(fact.dropped_observations), list(dict.fromkeys(tools))
    for index in removed:
        # A call and its results leave together.
        if index < last and isinstance(messages[index + 1], ToolMessage):
            yield "removed", list(removed), sorted(gone | {index + 1})
        if isinstance(messages[index], ToolMessage):
            yield "removed", list(removed), sorted(gone | {index - 1})


def _asked(run: StoredRun, fact: fa.ModelAsked) -> Iterator[_Check]:
    state, count = run.state, len(run.state.messages)
    yield "iteration", fact.iteration, state.iteration + (not run.asking_again)
    yield "first", fact.first, not state.asked
    if "calls" not in run.unknown:
        yield "calls without an answer", run.batch.open, 0
    if "messages" in run.unknown:
        yield "messages", fact.messages, max(fact.messages, count)
    else:
        yield "messages", fact.messages, count
        yield "new_messages", fact.new_messages, state.gained
    if "chars" not in run.unknown:
        yield "message_chars", fact.message_chars, state.message_chars


def _replied(run: StoredRun, fact: fa.ModelReplied, marks: Marks) -> Iterator[_Check]:
    yield "iteration", fact.iteration, run.state.iteration
    yield "a request", run.asking, True
    calls: Json = fact.calls
    if isinstance(calls, tuple) and all(path != "calls" for path, _ in marks):
        yield "call_count", fact.call_count, len(cast("tuple[object, ...]", calls))
    if fact.route == "tool-calls":
        yield "call_count", fact.call_count, max(1, fact.call_count)


def _failed(run: StoredRun, fact: fa.ModelFailed) -> Iterator[_Check]:
    yield "iteration", fact.iteration, run.state.iteration
    yield "a request", run.asking, True


def _decided(run: StoredRun, fact: fa.Decided) -> Iterator[_Check]:
    if fact.imported is not None:
        return
    if fact.call_id is not None:
        yield from _of_a_call(run, fact)
    else:
        yield "iteration", fact.iteration, 0 if fact.moment == "input" else run.state.iteration


def _of_a_call(run: StoredRun, fact: _OfACall) -> Iterator[_Check]:
    yield "iteration", fact.iteration, run.state.iteration
    if "calls" in run.unknown:
        return
    batch = run.batch
    yield "call_id", fact.call_id, fact.call_id if fact.call_id in batch.taken else batch.next
    yield "an answer to the call", fact.call_id in batch.answered, False


def _taken(run: StoredRun, fact: fa.CallTaken) -> Iterator[_Check]:
    yield "iteration", fact.iteration, run.state.iteration
    ids, names = run.batch.ids, run.batch.names
    if "calls" in run.unknown or ids is None or run.state.iteration == 0:
        return
    yield "call_id", fact.call_id, fact.call_id if fact.call_id in ids else run.batch.next
    yield "taken before", fact.call_id in run.batch.taken, False
    yield "parallel_count", fact.parallel_count, len(ids) if len(ids) > 1 else None
    if names is not None and fact.call_id in ids:
        asked = names[ids.index(fact.call_id)]
        # A policy takes a name that no tool can have out of the row, and leaves it in the reply.
        yield "tool_name", fact.tool_name == asked or TOOL_NAME.fullmatch(asked) is None, True


def _answered(run: StoredRun, fact: fa.CallAnswered) -> Iterator[_Check]:
    batch = run.batch
    yield from _of_a_call(run, fact)
    if "calls" in run.unknown:
        return
    if batch.ids is not None and fact.status != "cancelled" and not batch.out_of_turn:
        yield "call_id", fact.call_id, batch.next
    yield "executed", fact.executed, fact.call_id in batch.failed
    yield "status", fact.status, _status(run, fact)


def _status(run: StoredRun, fact: fa.CallAnswered) -> str:
    """What became of a call, as the facts about it say."""
    batch, call_id = run.batch, fact.call_id
    if call_id in batch.failed:
        return "failed" if batch.failed[call_id] else "ran"
    if call_id in batch.denied or call_id in batch.declined:
        return "denied"
    if fact.issues is not None:
        return "invalid"
    if call_id in batch.in_doubt:
        return "blocked"
    if call_id in batch.intended:
        return "cancelled"
    known = run.opening is None or fact.tool_name in run.opening.tools
    return "blocked" if known or call_id in batch.repeats else "unknown"


def _opened(run: StoredRun, fact: fa.PauseOpened) -> Iterator[_Check]:
    yield "pause_id", fact.pause_id in run.pauses, False
    if fact.imported:
        return
    yield "iteration", fact.iteration, run.state.iteration
    if "calls" not in run.unknown and run.batch.ids is not None:
        yield "call_id", fact.call_id, run.batch.next


def _closed(run: StoredRun, fact: fa.PauseAnswered | fa.PauseClosed) -> Iterator[_Check]:
    opened = run.pause
    yield "pause_id", fact.pause_id, None if opened is None else opened.pause_id
    if opened is not None:
        yield "call_id", fact.call_id, opened.call_id
        if isinstance(fact, fa.PauseAnswered):
            yield "pause_kind", fact.pause_kind, opened.pause_kind


def _iteration_ended(run: StoredRun, fact: fa.IterationEnded) -> Iterator[_Check]:
    yield "iteration", fact.iteration, run.state.iteration
    if "calls" not in run.unknown:
        yield "call_count", fact.call_count, run.batch.count
        yield "calls without an answer", run.batch.open, 0


def _judged(run: StoredRun, fact: fa.OutputJudged) -> Iterator[_Check]:
    yield "iteration", fact.iteration, run.state.iteration
    if "attempts" not in run.unknown:
        yield "attempt", fact.attempt, run.state.attempts + 1


def _recovered(run: StoredRun, fact: fa.RunRecovered) -> Iterator[_Check]:
    yield "finished", fact.finished, run.finished
    if "calls" not in run.unknown:
        yield "in_doubt", fact.in_doubt, run.batch.doubtful


def _ended(run: StoredRun, fact: fa.SegmentEnded) -> Iterator[_Check]:
    state = run.state
    paused = fact.outcome == "paused"
    yield "outcome", fact.outcome, "paused" if run.pausing else "another" if paused else fact.outcome
    if fact.outcome == "abandoned" and "calls" in run.unknown:
        # Who gave it up had no more than the file.
        return
    yield "iterations", fact.iterations, state.iteration
    if "tokens" not in run.unknown:
        yield "input_tokens", fact.input_tokens, state.input_tokens
        yield "output_tokens", fact.output_tokens, state.output_tokens
    early, stopped = run.early, fact.stopped_early
    if run.given_up:
        return
    yield "stopped_early", stopped is not None, early is not None
    if early is not None and stopped is not None:
        yield "pending_tool_calls", stopped.pending_tool_calls, early.pending_tool_calls

"""What a ledger remembers of what it took out of open calls: enough for their rows, and no more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from footprint_core import redacting
from footprint_core.facts import CallAnswered, Decided, Fact, ModelReplied, SegmentEnded, ToolFinished
from footprint_core.ledger import REDACTED, Batch, Entry, Marks
from footprint_core.messages import ToolCall
from footprint_core.redacting import Redacting
from footprint_observe import Redaction

CARD = "card-51c0-9e21"
POLICY = Redaction.of(fields=["**.card", "**.held"])
END = SegmentEnded(outcome="answered", iterations=1, input_tokens=0, output_tokens=0, duration_us=0)


def call_of(args: str, id: str = "c1") -> ToolCall:
    return ToolCall(id=id, name="t", args_json=args)


def replied(*calls: ToolCall, iteration: int = 1) -> ModelReplied:
    return ModelReplied(
        iteration=iteration, call_count=len(calls), stop_reason="tool_use", duration_us=1, calls=calls
    )


def row(why: Any, *, iteration: int = 1, call_id: str | None = "c1", **more: Any) -> Decided:
    return Decided(
        middleware="m",
        moment="after-tool",
        iteration=iteration,
        outcome="allow",
        call_id=call_id,
        why=why,
        **more,
    )


def finished(result: Any, iteration: int = 1) -> ToolFinished:
    return ToolFinished(
        iteration=iteration, call_id="c1", tool_name="t", failed=False, duration_us=1, result=result
    )


def batch(*facts: Fact, run: str = "r", calls: tuple[ToolCall, ...] = ()) -> Batch:
    entries = tuple(Entry(position=at, time=at, fact=fact) for at, fact in enumerate(facts, 1))
    return Batch(run_id=run, segment=1, entries=entries, calls=calls)


def kept(of: Redacting, *facts: Fact, run: str = "r", calls: tuple[ToolCall, ...] = ()) -> Any:
    """The last fact of a batch as it is kept."""
    return of.batch(batch(*facts, run=run, calls=calls))[0][-1].fact


def test_what_was_taken_out_of_a_result_is_known_in_later_batches_of_its_call() -> None:
    of = Redacting(POLICY)
    kept(of, replied(call_of("{}")))
    kept(of, finished({"held": [CARD, 12345678, 5]}))
    assert kept(of, row(f"about {CARD}, 12345678 and 5")).why == f"about {REDACTED}, {REDACTED} and 5"
    assert kept(of, row(f"about {CARD}"), run="other").why == f"about {CARD}"
    assert kept(of, row(f"about {CARD}", call_id="c2")).why == f"about {CARD}"
    assert kept(of, row(f"about {CARD}", call_id=None)).why == f"about {CARD}"


def test_a_new_reply_forgets_the_calls_of_the_one_before() -> None:
    of = Redacting(POLICY)
    kept(of, replied(call_of("{}")), finished({"held": CARD}))
    kept(of, replied(call_of("{}"), iteration=2))
    assert kept(of, row(f"about {CARD}", iteration=2)).why == f"about {CARD}"


def test_the_same_batch_can_be_tried_again_and_a_run_that_ended_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redacting, "_MOST_ENDED", 3)
    of = Redacting(POLICY)
    kept(of, replied(call_of("{}")), finished({"held": CARD}))
    last = batch(row(f"about {CARD}"), END)
    for _ in range(3):
        first: Any = of.batch(last)[0][0].fact
        assert first.why == f"about {REDACTED}"
    for at in range(10):
        kept(of, replied(call_of("{}")), END, run=f"r{at}")
    assert "r" not in of._open
    assert len(of._open) <= 3


def test_runs_that_never_end_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redacting, "_MOST_OPEN", 5)
    of = Redacting(POLICY)
    for at in range(20):
        kept(of, replied(call_of("{}")), run=f"r{at}")
    assert list(of._open) == [f"r{at}" for at in range(15, 20)]


def test_more_texts_than_can_be_remembered_cost_all_that_is_said_of_the_call() -> None:
    of = Redacting(POLICY)
    kept(of, replied(call_of("{}")), finished({"held": [f"held-{at:06d}" for at in range(2_000)]}))
    assert kept(of, row("anything", detail={"a": 1})).why == REDACTED
    assert kept(of, row("anything", call_id="c2")).why == "anything"
    answer = CallAnswered(
        iteration=1,
        call_id="c1",
        tool_name="t",
        tool_type="function",
        status="denied",
        executed=False,
        args_changed=False,
        args_known_keys=0,
        args_unknown_keys=0,
        result_type="string",
        result_bytes=8,
        text="anything",
    )
    assert kept(of, answer).text == REDACTED


def test_what_another_process_appended_is_found_in_the_calls_that_come_along() -> None:
    of = Redacting(POLICY)
    calls = (call_of(f'{{"card": "{CARD}"}}'), call_of("{}", id="c2"))
    assert kept(of, row(f"about {CARD}"), calls=calls).why == f"about {REDACTED}"
    assert kept(of, row(f"about {CARD}", call_id="c2"), calls=calls).why == f"about {CARD}"


def test_what_another_process_had_as_a_result_is_found_in_the_results_that_come_along() -> None:
    of = Redacting(POLICY)
    one = batch(row(f"saw {CARD}"), calls=(call_of("{}"),))
    (entry,), _ = of.batch(msgspec.structs.replace(one, results={"c1": {"held": CARD}}))
    assert isinstance(entry.fact, Decided)
    assert entry.fact.why == f"saw {REDACTED}"


def test_a_key_that_went_and_texts_that_overlap_leave_no_rest() -> None:
    of = Redacting(POLICY)
    args = '{"card": {"hunter2hunter2": "abcdefgh", "x": "efghijklmnop"}}'
    said = row("x abcdefghijklmnop y hunter2hunter2", iteration=0)
    assert kept(of, said, calls=(call_of(args),)).why == f"x {REDACTED} y {REDACTED}"


def test_a_row_that_another_ledger_filed_is_left_as_it_is() -> None:
    of = Redacting(POLICY)
    calls = (call_of(f'{{"card": "{CARD}"}}'),)
    assert kept(of, row(f"about {CARD}", imported=()), calls=calls).why == f"about {CARD}"


class Counting:
    """A redactor that counts how often it is asked what it took."""

    def __init__(self) -> None:
        self.asked = 0

    def redact(self, fact: Fact) -> tuple[Fact, Marks]:
        return POLICY.redact(fact)

    def removed(self, fact: Fact) -> Iterable[tuple[str, Any]]:
        self.asked += 1
        return POLICY.removed(fact)


def test_where_nothing_was_taken_nobody_is_asked() -> None:
    counting = Counting()
    of = Redacting(counting)
    for iteration in range(1, 50):
        kept(of, replied(call_of('{"a": 1}'), iteration=iteration))
        before = row("fine", iteration=iteration)
        assert kept(of, before) is before
        after = finished({"n": 1}, iteration)
        assert kept(of, after, row("fine", iteration=iteration)) is not None
    assert counting.asked == 0
    kept(of, finished({"held": CARD}, 49))
    assert counting.asked == 1


def test_entries_that_were_read_back_lose_their_old_marks() -> None:
    old = Entry(position=1, time=1, fact=finished(1), marks=(("result", "mask"),))
    entries, marks = Redacting(POLICY).batch(Batch(run_id="r", segment=1, entries=(old,)))
    assert entries == (msgspec.structs.replace(old, marks=()),)
    assert marks == {}

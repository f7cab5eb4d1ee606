"""The queue behind recorders: nothing waits on it, everything lost is counted, every wait has an end."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from footprint_observe.recording import Handover, Shipped, handovers


def handover(ship: Callable[[list[int]], Shipped], **options: Any) -> Handover[int]:
    fields: dict[str, Any] = {"id": "test", "batch": 4, "bound": 8, "delay": 60.0, **options}
    return Handover(ship, **fields)


class Gate:
    """Ships a batch only when it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()
        self.batches: list[list[int]] = []

    def ship(self, batch: list[int]) -> bool:
        self.entered.set()
        assert self.opened.wait(30)
        self.batches.append(batch)
        return True


def stuck(gate: Gate, **options: Any) -> Handover[int]:
    """A queue whose thread is inside a batch of four that does not come back."""
    queue = handover(gate.ship, **options)
    for number in range(4):
        queue.put(number)
    assert gate.entered.wait(10)
    return queue


def test_everything_is_shipped_in_order_and_in_batches() -> None:
    batches: list[list[int]] = []

    def ship(batch: list[int]) -> bool:
        batches.append(batch)
        return True

    queue = handover(ship, bound=1000)
    for number in range(50):
        queue.put(number)
    assert queue.flush(10.0)
    assert [number for batch in batches for number in batch] == list(range(50))
    assert max(map(len, batches)) <= 4
    assert queue.dropped == 0
    queue.close(10.0)


def test_an_item_waits_for_others_and_a_flush_does_not() -> None:
    looked = threading.Event()

    class Watched(Handover[int]):
        def _due(self) -> bool:
            looked.set()
            return super()._due()

    gate = Gate()
    gate.opened.set()
    queue = Watched(gate.ship, id="test", batch=4, bound=8, delay=60.0)
    queue.put(1)
    # When the thread has looked and lets go of the queue, it waits, or has taken the first one alone.
    assert looked.wait(10)
    queue.put(2)
    assert queue.flush(10.0)
    assert gate.batches == [[1, 2]]
    queue.close(10.0)


def test_a_full_queue_loses_its_oldest_and_counts_them() -> None:
    gate = Gate()
    queue = stuck(gate)
    for number in range(10, 21):
        queue.put(number)
    assert queue.dropped == 3
    gate.opened.set()
    queue.close(10.0)
    assert gate.batches == [[0, 1, 2, 3], [13, 14, 15, 16], [17, 18, 19, 20]]
    assert queue.dropped == 3


def test_a_flush_ends_in_time_and_says_that_something_is_left() -> None:
    gate = Gate()
    queue = stuck(gate)
    assert not queue.flush(0.01)
    assert queue.dropped == 0
    gate.opened.set()
    assert queue.flush(10.0)
    queue.close(10.0)


def test_closing_ends_in_time_and_counts_what_it_gives_up_for_ever() -> None:
    gate, given_back = Gate(), threading.Event()
    queue = stuck(gate, give_back=given_back.set)
    queue.put(5)
    closer = threading.Thread(target=queue.close, args=(0.05,), daemon=True)
    closer.start()
    closer.join(10)
    assert not closer.is_alive()
    assert queue.dropped == 5
    gate.opened.set()
    assert given_back.wait(10)
    # Shipped in the end, and said to be lost: a figure that only grows is not taken back.
    assert gate.batches == [[0, 1, 2, 3]]
    assert queue.dropped == 5


def test_closing_twice_is_harmless_and_what_comes_later_is_counted() -> None:
    calls: list[str] = []
    for begun in (False, True):
        queue = handover(lambda _: True, give_back=lambda: calls.append("given back"))
        if begun:
            queue.put(1)
        queue.close(10.0)
        queue.close(10.0)
        queue.put(2)
        assert queue.dropped == 1
    assert calls == ["given back"] * 2


def test_a_batch_that_is_refused_or_raises_is_lost_and_the_thread_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers: list[bool | OSError] = [False, OSError("secret"), OSError("secret"), True]

    def ship(_batch: list[int]) -> bool:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    queue = handover(ship)
    with caplog.at_level(logging.WARNING, "footprint"):
        flushed: list[bool] = []
        for number in range(4):
            queue.put(number)
            flushed.append(queue.flush(10.0))
    assert flushed == [False, False, False, True]
    assert queue.dropped == 3
    assert [record.getMessage() for record in caplog.records] == ["The recorder test failed: OSError."]
    queue.close(10.0)


def test_handing_over_does_not_wait_for_who_ships() -> None:
    gate = Gate()
    queue = stuck(gate, bound=100_000)
    before = time.thread_time()
    for number in range(10_000):
        queue.put(number)
    assert time.thread_time() - before < 2.0
    gate.opened.set()
    queue.close(10.0)


def test_a_signal_handler_may_close_in_the_middle_of_a_put() -> None:
    gate = Gate()
    gate.opened.set()
    batches = gate.batches
    queue = handover(gate.ship)

    def interrupted() -> None:
        # Where a handler can find its thread.
        with queue._changed:
            queue.put(1)
            queue.close(10.0)

    thread = threading.Thread(target=interrupted, daemon=True)
    thread.start()
    thread.join(20)
    assert (batches, queue.dropped, thread.is_alive()) == ([[1]], 0, False)


def test_what_is_closed_by_what_it_ships_to_ships_the_rest_and_ends() -> None:
    put, ended = threading.Event(), threading.Event()
    batches: list[list[int]] = []

    def ship(batch: list[int]) -> bool:
        assert put.wait(30)
        batches.append(batch)
        assert not queue.flush(60.0)
        queue.close(60.0)
        return True

    queue = handover(ship, batch=1, give_back=ended.set)
    for number in range(3):
        queue.put(number)
    put.set()
    assert ended.wait(10)
    assert batches == [[0], [1], [2]]
    assert queue.dropped == 0


def test_a_flush_waits_for_what_was_put_before_it_and_for_nothing_else() -> None:
    batches: list[list[int]] = []

    def ship(batch: list[int]) -> bool:
        batches.append(batch)
        if len(batches) == 1:
            # Behind the flush, without which the first one would wait for a minute, as this one does.
            queue.put(2)
        return True

    queue = handover(ship)
    queue.put(1)
    before = time.monotonic()
    assert queue.flush(60.0)
    assert time.monotonic() - before < 30
    assert batches == [[1]]
    queue.close(10.0)
    assert batches == [[1], [2]]


def test_what_nobody_takes_now_stays_first_and_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footprint_observe.recording.handover._PAUSE_SECONDS", 0.0)
    away = [True, True, False]
    batches: list[list[int]] = []

    def ship(batch: list[int]) -> Shipped:
        if away and away.pop(0):
            return "later"
        batches.append(batch)
        return True

    queue = handover(ship, batch=2)
    for number in range(4):
        queue.put(number)
    assert queue.flush(10.0)
    assert batches == [[0, 1], [2, 3]]
    assert (queue.dropped, queue.errors, queue.queued) == (0, 2, 0)
    queue.close(10.0)


def test_what_comes_back_to_a_full_queue_loses_its_oldest() -> None:
    refused, opened = threading.Event(), threading.Event()
    batches: list[list[int]] = []

    def ship(batch: list[int]) -> Shipped:
        if not refused.is_set():
            refused.set()
            assert opened.wait(30)
            return "later"
        batches.append(batch)
        return True

    queue = handover(ship, batch=4, bound=6)
    for number in range(4):
        queue.put(number)
    assert refused.wait(10)
    for number in range(4, 9):
        queue.put(number)
    opened.set()
    queue.flush(10.0)
    queue.close(10.0)
    assert batches == [[3, 4, 5, 6], [7, 8]]
    assert queue.dropped == 3


def test_closing_ends_at_once_when_nobody_takes_anything() -> None:
    def ship(_batch: list[int]) -> Shipped:
        return "later"

    queue = handover(ship, batch=1, delay=0.0)
    for number in range(5):
        queue.put(number)
    before = time.monotonic()
    queue.close(60.0)
    assert time.monotonic() - before < 30
    assert (queue.dropped, queue.queued) == (5, 0)


def test_every_live_queue_is_known_and_one_that_is_gone_is_not() -> None:
    queue = handover(lambda _: True, id="known")
    assert [one for one in handovers() if one.id == "known"] == [queue]
    queue.close(1.0)
    del queue
    gc.collect()
    assert not [one for one in handovers() if one.id == "known"]


def test_no_item_is_ever_in_two_places_or_in_none() -> None:
    gate = Gate()
    queue = stuck(gate)
    for number in range(10, 22):
        queue.put(number)
    assert (queue.queued, queue.dropped, queue.errors) == (12, 4, 0)
    gate.opened.set()
    queue.close(10.0)
    assert (queue.queued, queue.dropped) == (0, 4)
    queue.put(1)
    assert (queue.queued, queue.dropped) == (0, 5)


def test_when_no_thread_can_be_had_items_wait_and_nothing_is_raised(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    gate = Gate()
    gate.opened.set()
    batches = gate.batches
    queue = handover(gate.ship)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        queue.put(1)
        assert not queue.flush(60.0)
        assert (queue.queued, queue.errors) == (1, 1)
    queue.put(2)
    assert queue.flush(10.0)
    assert batches == [[1, 2]]
    assert caplog.messages == ["The recorder test failed: RuntimeError."]
    queue.close(10.0)

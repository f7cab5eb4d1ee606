"""The queue behind recorders: nothing waits on it, everything lost is counted, every wait has an end."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from footprint_observe.recording.handover import Handover


def handover(ship: Callable[[list[int]], bool], **options: Any) -> Handover[int]:
    fields: dict[str, Any] = {"name": "test-handover", "batch": 4, "bound": 8, "delay": 60.0, **options}
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
    gate = Gate()
    gate.opened.set()
    queue = handover(gate.ship)
    queue.put(1)
    assert not gate.entered.wait(0.05)
    assert queue.flush(10.0)
    assert gate.batches == [[1]]
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


def test_closing_ends_in_time_and_counts_what_it_gives_up() -> None:
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
    assert gate.batches == [[0, 1, 2, 3]]
    assert queue.dropped == 1


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
    assert [record.getMessage() for record in caplog.records] == [
        "The thread test-handover lost a batch: OSError."
    ]
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


def run(program: str) -> str:
    """What a program prints, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout


_SHIP = """
import os, sys
from footprint_observe.recording.handover import Handover
def ship(batch):
    print(*batch, flush=True)
    return True
queue = Handover(ship, name="q", batch=4, bound=8, delay=60.0)
queue.put(1)
"""


def test_what_nobody_closed_is_shipped_at_exit() -> None:
    assert run(_SHIP) == "1\n"


def test_a_forked_process_begins_anew_and_doubles_nothing() -> None:
    program = f"""{_SHIP}
sys.stdout.flush()
child = os.fork()
if child == 0:
    assert queue.dropped == 0
    queue.put(2)
    queue.close(10.0)
    os._exit(queue.dropped)
assert os.waitpid(child, 0)[1] == 0
queue.close(10.0)
"""
    assert run(program) == "2\n1\n"

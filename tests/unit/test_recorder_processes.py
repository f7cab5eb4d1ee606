"""The queue behind recorders when its process forks or ends."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork here.")


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
queue = Handover(ship, id="q", batch=4, bound=8, delay=60.0)
queue.put(1)
"""


def test_what_nobody_closed_is_shipped_at_exit() -> None:
    assert run(_SHIP) == "1\n"


@forks
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


@forks
def test_a_process_forked_while_the_thread_ships_inherits_no_lock_of_its_shipping() -> None:
    program = """
import os, sys, threading
from footprint_observe.recording import Handover
lock = threading.Lock()
def ship(batch):
    with lock:
        sum(range(10_000))
    return True
queue = Handover(ship, id="q", batch=1, bound=1000, delay=0.0)
for _ in range(10):
    for number in range(20):
        queue.put(number)
    child = os.fork()
    if child == 0:
        queue.put(1)
        queue.close(5.0)
        os._exit(queue.dropped)
    assert os.waitpid(child, 0)[1] == 0
queue.close(10.0)
assert queue.dropped == 0
"""
    assert run(program) == ""


def test_what_cannot_be_shipped_before_the_exit_is_counted_in_one_sentence() -> None:
    program = """
import threading
from footprint_observe.recording import Handover
queue = Handover(lambda batch: threading.Event().wait(60), id="q", batch=2, bound=8, delay=0.0)
for number in range(5):
    queue.put(number)
"""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == ("", "The recorder q lost 5 items when the program ended.\n")


def test_at_exit_a_queue_in_front_of_another_is_shipped_first() -> None:
    program = """
from footprint_observe.recording import Handover
def show(batch):
    print(*batch, flush=True)
    return True
def on(batch):
    for item in batch:
        last.put(item)
    return True
last = Handover(show, id="last", batch=4, bound=8, delay=60.0)
first = Handover(on, id="first", batch=4, bound=8, delay=60.0)
first.put(1)
"""
    assert run(program) == "1\n"

"""Any watcher behind a queue: told in order, from a thread, flushed and closed with the queue before it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from footprint_core import BuilderError, Recorder
from footprint_core.errors import RecorderError
from footprint_core.events import Event, ToolsOffered
from footprint_core.providers import reply
from footprint_core.watch import Counting
from footprint_observe.recording import Opened, queued
from footprint_observe.testing import sample_events
from recorders.memory import Memory
from recorders.otel_spans import OtelSpans
from story import Seen, describe, run

EVENTS = sample_events()


class Ships(Seen):
    """A recorder that says what was asked of it, in order."""

    def __init__(self, id: str = "ships", *, asked: Callable[[str], object] = lambda _: True) -> None:
        super().__init__(id)
        self.asked: list[str] = []
        self.threads: set[str] = set()
        self._answer = asked

    def on_event(self, event: Event, /) -> None:
        super().on_event(event)
        self.asked.append("event")
        self.threads.add(threading.current_thread().name)

    def flush(self, timeout: float, /) -> bool:
        assert 0 <= timeout <= 10
        self.asked.append("flush")
        return cast("bool", self._answer("flush"))

    def close(self, timeout: float, /) -> None:
        assert 0 <= timeout <= 10
        self.asked.append("close")
        self._answer("close")


def tell(recorder: Any) -> None:
    for event in EVENTS:
        recorder.on_event(event)


def test_a_watcher_is_told_everything_in_order_from_a_thread_and_keeps_its_id() -> None:
    ships = Ships()
    recorder: Recorder = queued(ships)
    counting: Counting = queued(Seen())
    assert (recorder.id, counting.dropped, counting.queued, counting.errors) == ("ships", 0, 0, 0)
    tell(recorder)
    assert recorder.flush(10.0)
    assert ships.events == list(EVENTS)
    assert ships.threads == {"footprint-ships"}
    recorder.close(10.0)


def test_a_recorder_is_flushed_and_closed_behind_the_last_event_and_closed_once() -> None:
    ships = Ships()
    recorder = queued(ships)
    tell(recorder)
    assert recorder.flush(10.0)
    recorder.close(10.0)
    recorder.close(10.0)
    assert ships.asked == [*["event"] * len(EVENTS), "flush", "close"]


def test_a_watcher_that_is_no_recorder_has_nothing_to_flush_or_close() -> None:
    seen = Seen()
    recorder = queued(seen)
    tell(recorder)
    assert recorder.flush(10.0)
    recorder.close(10.0)
    assert seen.events == list(EVENTS)


@pytest.mark.parametrize("answer", [False, None])
def test_a_flush_that_left_something_says_so(answer: object) -> None:
    recorder = queued(Ships(asked=lambda _: answer))
    assert not recorder.flush(10.0)
    recorder.close(10.0)


def test_a_recorder_that_never_ends_takes_no_more_time_than_there_is() -> None:
    over = threading.Event()
    recorder = queued(Ships(asked=lambda _: over.wait(60)))
    tell(recorder)
    before = time.monotonic()
    assert not recorder.flush(0.2)
    recorder.close(0.2)
    assert time.monotonic() - before < 10
    over.set()


def test_a_recorder_that_raises_when_it_ends_is_counted_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_: str) -> bool:
        raise OSError("a secret")

    recorder = queued(Ships(asked=broken))
    with caplog.at_level(logging.WARNING, "footprint"):
        assert not recorder.flush(10.0)
        recorder.close(10.0)
    assert recorder.errors == 2
    assert caplog.messages == ["The recorder ships failed: OSError."]


def test_whoever_opened_a_recorder_closes_it_and_the_queue_does_not() -> None:
    class Held(Ships, Opened):
        """A recorder that can be opened."""

    with Held() as ships:
        recorder = queued(ships)
        tell(recorder)
        recorder.close(10.0)
        assert "close" not in ships.asked
        assert len(ships.events) == len(EVENTS)
    assert ships.asked.count("close") == 1


def test_a_block_keeps_the_queue_open() -> None:
    memory = Memory()
    with queued(memory) as recorder:
        tell(recorder)
        assert recorder.flush(10.0)
    assert memory.events == EVENTS


def closed(id: str) -> str:
    """What is said of what came later."""
    return (
        f"The recorder {id} was closed with the last agent that had it, so what it is told is lost; keep it "
        "open with a `with` block."
    )


def test_it_says_what_the_watcher_says() -> None:
    memory = Memory(keep=1)
    recorder = queued(memory)
    tell(recorder)
    assert recorder.flush(10.0)
    assert recorder.notices == memory.notices != ()
    recorder.close(10.0)
    tell(recorder)
    lost = f"{len(EVENTS)} events were lost before memory was told; it is too slow, or stands still."
    assert recorder.notices == (*memory.notices, closed("memory"), lost)


def test_what_the_watcher_ignores_does_not_wait_for_it() -> None:
    class Choosy(Seen):
        ignores = frozenset({ToolsOffered})

    choosy, seen = Choosy("choosy"), Seen()
    recorder = queued(choosy)
    builder, _ = describe([reply(text="Done.")], watch=[recorder, seen])
    run(builder.build().run("go"))
    assert recorder.flush(10.0)
    recorder.close(10.0)
    assert recorder.ignores == {ToolsOffered}
    assert choosy.events == [event for event in seen.events if type(event) is not ToolsOffered]
    assert queued(Seen()).ignores == frozenset()


def test_the_figures_are_those_of_the_queue_and_of_the_watcher() -> None:
    class Counts(Seen):
        dropped, queued, errors = 3, 2, 1

        def on_event(self, event: Event, /) -> None:
            raise OSError

    recorder = queued(Counts("counts"))
    assert (recorder.dropped, recorder.queued, recorder.errors, recorder.notices) == (3, 2, 1, ())
    tell(recorder)
    assert recorder.flush(10.0)
    recorder.close(10.0)
    recorder.on_event(EVENTS[0])
    assert (recorder.dropped, recorder.queued, recorder.errors) == (4, 2, 1 + len(EVENTS))
    assert recorder.notices == (
        closed("counts"),
        "1 events were lost before counts was told; it is too slow, or stands still.",
        f"counts raised {len(EVENTS)} times; the first is in the log.",
    )


def test_what_cannot_be_read_of_the_watcher_fails_nothing() -> None:
    class Broken(Seen):
        @property
        def dropped(self) -> int:
            raise OSError("a secret")

    recorder = queued(Broken("broken"))
    assert recorder.dropped == 0
    assert recorder.notices == ("What this watcher says of itself could not be read: OSError.",)


def test_where_no_thread_can_be_started_nothing_is_raised(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuses(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ships = Ships()
    recorder = queued(ships)
    monkeypatch.setattr(threading.Thread, "start", refuses)
    assert not recorder.flush(10.0)
    recorder.close(10.0)
    assert (ships.asked, recorder.errors) == ([], 2)
    assert caplog.messages == ["The recorder ships failed: RuntimeError."]


def test_who_must_be_asked_in_the_run_is_refused() -> None:
    with pytest.raises(RecorderError) as caught:
        queued(OtelSpans())
    assert str(caught.value) == (
        "The watcher 'otel_spans' has correlation or enclose, which a run must ask at once; give it to "
        ".watch() as it is."
    )


@pytest.mark.parametrize("watcher", [object(), Seen(" "), Seen])
def test_what_is_no_watcher_is_refused(watcher: Any) -> None:
    with pytest.raises(BuilderError):
        queued(watcher)


def test_there_must_be_room_for_one_event() -> None:
    with pytest.raises(RecorderError, match="give bound=1 or more"):
        queued(Seen(), bound=0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork here.")
def test_a_forked_process_tells_nothing_of_its_parent() -> None:
    program = """
import os, sys
sys.path[:0] = ["tests"]
from footprint_observe.recording import queued
from footprint_observe.testing import sample_events
first, second, *_ = sample_events()
class Says:
    id = "says"
    def on_event(self, event):
        os.write(1, f"{os.getpid() == parent} {event.type}\\n".encode())
parent = os.getpid()
recorder = queued(Says())
with recorder._handover._changed:
    recorder.on_event(first)
    child = os.fork()
    if child == 0:
        recorder.on_event(second)
        recorder.close(10.0)
        os._exit(recorder.dropped)
assert os.waitpid(child, 0)[1] == 0
recorder.close(10.0)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    first, second, *_ = EVENTS
    assert sorted(done.stdout.splitlines()) == [f"False {second.type}", f"True {first.type}"]
    assert done.stderr == ""

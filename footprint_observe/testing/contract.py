"""The tests every recorder passes. Whoever builds one subclasses `RecorderContract`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import partial
from typing import cast
from unittest import SkipTest

import msgspec

from footprint_core import Recorder
from footprint_core.events import Event
from footprint_observe.testing import runs
from footprint_observe.testing.bounds import in_fork, require, within
from footprint_observe.testing.leaks import leaks
from footprint_observe.testing.samples import sample_events
from footprint_observe.testing.touching import touched

_PARTS = ("id", "on_event", "flush", "close")
_SHORT_SECONDS = 0.2
_STORY = 6  # times the patience, for a whole run
_MARK = 6  # of a run's id; some recorders show no more of it


class RecorderContract:
    """What an agent and its owner may rely on, whatever a recorder ships to and however that does.

    A subclass says how a recorder is made, and pytest finds the tests in it:

    ```python
    class TestMine(RecorderContract):
        @pytest.fixture(autouse=True)
        def somewhere(self, tmp_path):
            self.path = tmp_path / "events.log"

        def make(self):
            return Mine(self.path)

        def shipped(self):
            return self.path.read_bytes() if self.path.exists() else b""
    ```

    `make` is all it must say. A test that needs `stuck` or `shipped` is skipped without it, and says so.

    The tests check that the recorder

    - has an id that is not blank and stays;
    - takes every event, in any order, twice, of runs it never heard of, and after it was closed;
    - hands over without calling a file, `os`, a socket, SQLite, another program, `print` or `sleep`, and
      without waiting for a condition or a thread: calls from Python are seen, those of compiled code are not;
    - hands over while shipping stands still, so it waits for no lock of who ships;
    - flushes and closes in time, as often as it is asked, and says as a bool whether all was shipped;
    - bounds what it holds, counts what it lost (`dropped`) and tells it in a sentence (`notices`);
    - changes nothing in a run: not its answer, its rows or what the model is sent, in any way to run one;
    - begins anew in a forked process, and ships nothing of its parent a second time;
    - ships facts, never a value of a run. Names as a model wrote them are no values to it; a recorder that
      ships them through `footprint_observe.recording.Names` ships fewer.

    It needs no plugin and does not import pytest; `class TestMine(RecorderContract, unittest.TestCase)` works
    as well.

    Attributes:
        patience: Seconds a call may take that should come back at once. No test is about speed: raise it on
            a machine that has much else to do.
        crowd: How many runs are more than the recorder has room for while it is stuck; None for one that
            holds no events, only figures about them.
    """

    patience: float = 10.0
    crowd: int | None = 1000

    def make(self) -> Recorder:
        """A new recorder that works: what it is told is shipped within `patience` seconds.

        A test may call it several times, and closes what it gives.

        Raises:
            NotImplementedError: The subclass does not say.
        """
        raise NotImplementedError("Give the subclass a make() that returns a new recorder.")

    def stuck(self) -> Recorder:
        """A new recorder whose shipping has begun to stand still for as long as the test lasts.

        For example one that ships to a port that takes connections and never answers.

        Raises:
            SkipTest: The subclass does not say.
        """
        raise SkipTest(
            "The subclass has no stuck(), so it is not known what happens when shipping stands still."
        )

    def shipped(self) -> bytes:
        """All that every recorder of this test shipped, before it was compressed or encrypted.

        Raises:
            SkipTest: The subclass does not say.
        """
        raise SkipTest("The subclass has no shipped(), so it is not known what it shipped.")

    def test_it_has_an_id_that_stays(self) -> None:
        """Rows, health and metrics call it by its id."""
        with self._made() as recorder:
            lacking = [name for name in _PARTS if not hasattr(recorder, name)]
            require(
                not lacking, f"A recorder needs {', '.join(lacking)}; {type(recorder).__name__} has none."
            )
            first = cast("object", recorder.id)
            require(isinstance(first, str) and first.strip(), "Its id must be a string that is not blank.")
            self._tell(recorder, sample_events())
            recorder.close(self.patience)
            require(recorder.id == first, "Its id must stay the same for ever.")

    def test_it_takes_every_event(self) -> None:
        """An event that is new to a recorder is no error: later versions of the agent may tell more."""
        with self._made() as recorder:
            self._tell(recorder, sample_events())

    def test_it_takes_events_of_runs_it_never_heard_of(self) -> None:
        """A recorder that is attached late hears the middle of a run first."""
        with self._made() as recorder:
            self._tell(recorder, (_of(_run_id(), event) for event in sample_events()))

    def test_it_takes_events_out_of_order_and_twice(self) -> None:
        """Tools that run at the same time tell in the order they end, and two agents may share a recorder."""
        with self._made() as recorder:
            self._tell(recorder, reversed(sample_events()))
            self._tell(recorder, (event for event in sample_events() for _ in range(2)))

    def test_it_takes_events_after_it_was_closed(self) -> None:
        """A turn may still run when its agent is closed."""
        with self._made() as recorder:
            self._tell(recorder, sample_events())
            recorder.close(self.patience)
            self._tell(recorder, sample_events(_run_id()))

    def test_flushing_says_whether_all_was_shipped(self) -> None:
        """True is said only when nothing is left and nothing was lost."""
        with self._made() as recorder:
            self._tell(recorder, sample_events())
            at_once = self._flush(recorder, 0.0)
            require(isinstance(at_once, bool), f"flush(0.0) must give a bool, not {type(at_once).__name__}.")
            all_of_it = self._flush(recorder, self.patience)
            require(all_of_it is True, f"flush({self.patience:g}) of a recorder that works must give True.")
            # One that only counts may have the next push of its figures waiting.
            waiting = 0 if self.crowd is None else _figure(recorder, "queued")
            require(not waiting, "Behind a flush that gave True, nothing may be queued.")
            require(
                not _figure(recorder, "dropped"), "Behind a flush that gave True, nothing may be dropped."
            )

    def test_closing_twice_is_harmless(self) -> None:
        """Its owner and an agent may both close it."""
        with self._made() as recorder:
            self._tell(recorder, sample_events())
            self._close(recorder, self.patience)
            self._close(recorder, self.patience)
            self._close(recorder, 0.0)
            require(
                isinstance(self._flush(recorder, 0.0), bool), "flush() must give a bool after close(), too."
            )

    def test_handing_over_touches_nothing(self) -> None:
        """The thread of a run must not wait for a disk or a network."""
        with self._made() as recorder:
            # What is loaded or opened with the first events is no part of handing over the next.
            self._tell(recorder, sample_events())
            again = sample_events(_run_id())
            found = within(self.patience, "on_event()", partial(touched, partial(_tell, recorder, again)))
            require(
                not found, f"on_event() must hand over and return, but it called {', '.join(sorted(found))}."
            )

    def test_handing_over_does_not_wait_for_who_ships(self) -> None:
        """A collector that does not answer slows no run, and closing ends in time all the same."""
        recorder = self.stuck()
        try:
            self._tell(recorder, sample_events())
            flushed = self._flush(recorder, _SHORT_SECONDS)
            require(flushed is False, "flush() must give False while shipping stands still.")
        finally:
            self._close(recorder, _SHORT_SECONDS)

    def test_what_finds_no_room_is_lost_and_counted(self) -> None:
        """Otherwise a collector that does not answer ends the program, by its memory."""
        if self.crowd is None:
            raise SkipTest("The recorder holds no events, so there is no room to run out of.")
        recorder = self.stuck()
        try:
            for _ in range(self.crowd):
                self._tell(recorder, sample_events(_run_id()))
            require(
                _figure(recorder, "dropped"),
                f"Nothing was dropped after {self.crowd} runs: what it holds must have a bound, and "
                f"`dropped` must count what is lost.",
            )
        finally:
            self._close(recorder, _SHORT_SECONDS)
        require(_notices(recorder), "What was lost must be said: `notices` is a tuple of sentences.")

    def test_a_run(self) -> None:
        """A turn with calls that run, fail and are refused is the same with the recorder, streamed."""
        self._same(runs.run)

    def test_a_run_without_an_event_loop(self) -> None:
        """So is one through `run_sync`."""
        self._same(runs.run_sync)

    def test_a_run_that_pauses_and_resumes(self) -> None:
        """So is one in which people are asked."""
        self._same(runs.pause_and_resume)

    def test_a_run_that_fails(self) -> None:
        """So is one whose model fails."""
        self._same(runs.failure)

    def test_a_run_that_is_cancelled(self) -> None:
        """So is one that is cancelled while a tool runs."""
        self._same(runs.cancellation)

    def test_a_run_with_parallel_tools(self) -> None:
        """So is one whose tools run at the same time."""
        self._same(runs.parallel_tools)

    def test_sessions_in_threads(self) -> None:
        """So are conversations in several threads at a time."""
        self._same(runs.sessions_in_threads)

    def test_a_forked_process_begins_anew(self) -> None:
        """Servers fork workers: each ships what it is told itself, and waits for no thread that is gone."""
        if not hasattr(os, "fork"):
            raise SkipTest("Processes cannot be forked here.")
        alone, forked = _run_id(), _run_id()
        with self._made() as reference:
            self._tell(reference, sample_events(alone))
            self._flush(reference, self.patience)
        with self._made() as recorder:
            events = sample_events(forked)
            half = len(events) // 2
            self._tell(recorder, events[:half])
            trouble = in_fork(_STORY * self.patience, partial(self._live_in_child, recorder))
            require(trouble is None, f"In a forked process: {trouble}.")
            self._tell(recorder, events[half:])
            require(
                self._flush(recorder, self.patience), "After a fork, flush() must give True in the parent."
            )
        try:
            shipped = self.shipped()
        except SkipTest:
            return
        once, now = (shipped.count(run_id[-_MARK:].encode()) for run_id in (alone, forked))
        require(now <= once, "What was told before a fork was shipped twice.")
        require(now == once, "What was told before a fork was not shipped.")

    def test_no_value_is_shipped(self) -> None:
        """Messages, arguments, results, questions, reasons and errors belong into the ledger alone."""
        self.shipped()
        for story in runs.STORIES:
            self._play(story, self.make())
        shipped = self.shipped()
        require(shipped, "Nothing was shipped, so nothing is known: shipped() must give what it was.")
        found = leaks(shipped, runs.WORD)
        require(not found, f"Values of a run were shipped ({', '.join(found)}).")

    @contextmanager
    def _made(self) -> Generator[Recorder]:
        recorder = self.make()
        try:
            yield recorder
        finally:
            if hasattr(recorder, "close"):
                self._close(recorder, self.patience)

    def _tell(self, recorder: Recorder, events: Iterable[Event]) -> None:
        within(self.patience, "on_event()", partial(_tell, recorder, events))

    def _flush(self, recorder: Recorder, timeout: float) -> object:
        slack = timeout + self.patience
        return within(slack, f"flush({timeout:g})", partial(recorder.flush, timeout))

    def _close(self, recorder: Recorder, timeout: float) -> None:
        slack = timeout + self.patience
        within(slack, f"close({timeout:g})", partial(recorder.close, timeout))

    def _live_in_child(self, recorder: Recorder) -> None:
        self._tell(recorder, sample_events(_run_id()))
        require(self._flush(recorder, self.patience), "flush() must give True")
        self._close(recorder, self.patience)

    def _same(self, story: runs.Story) -> None:
        without, watched = self._play(story, None), self._play(story, self.make())
        require(not watched.failures, f"It raised {watched.failures} times in the run.")
        require(watched.turns == without.turns, "It changed how the run ended, or its rows.")
        require(watched.requests == without.requests, "It changed what the model is sent.")

    def _play(self, story: runs.Story, recorder: Recorder | None) -> runs.Played:
        playing = partial(runs.play, story, recorder, timeout=self.patience)
        return within(_STORY * self.patience, "The run", playing)


def _tell(recorder: Recorder, events: Iterable[Event]) -> None:
    for event in events:
        try:
            recorder.on_event(event)
        except BaseException as error:
            raise AssertionError(f"on_event({event.type}) raised {type(error).__name__}.") from error


def _figure(recorder: Recorder, name: str) -> int:
    """A figure about its health, which is 0 when it has none."""
    figure: object = getattr(recorder, name, 0)
    if not isinstance(figure, int) or figure < 0:
        raise AssertionError(f"`{name}` must be a number of things, from 0.")
    return figure


def _notices(recorder: Recorder) -> tuple[object, ...]:
    said: object = getattr(recorder, "notices", ())
    require(isinstance(said, tuple), "`notices` must be a tuple of sentences.")
    told = cast("tuple[object, ...]", said)
    require(
        all(isinstance(one, str) and one.strip() for one in told), "Each of `notices` must be a sentence."
    )
    return told


def _of(run_id: str, event: Event) -> Event:
    return msgspec.structs.replace(event, run_id=run_id)


def _run_id() -> str:
    return uuid.uuid4().hex

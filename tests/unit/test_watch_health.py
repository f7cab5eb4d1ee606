"""What an agent says of its watchers, and how it closes them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from footprint_core.providers import reply
from footprint_core.threads import Threads
from story import Seen, describe

REPLIES = [reply(text="done")]


def test_health_shows_the_figures_of_a_watcher_and_zero_for_one_that_has_none() -> None:
    class Ships(Seen):
        dropped, queued, errors = 3, 2, 1
        notices = ("look at it",)

    builder, _ = describe(REPLIES, watch=[Ships("ships"), Seen("plain")])
    ships, plain = builder.build().health().watchers
    assert (ships.dropped, ships.queued, ships.errors, ships.notices) == (3, 2, 1, ("look at it",))
    assert (plain.dropped, plain.queued, plain.errors, plain.notices) == (0, 0, 0, ())


def test_health_is_told_whatever_a_watcher_says_of_itself() -> None:
    class Broken(Seen):
        @property
        def errors(self) -> int:
            raise AttributeError("a secret")

        @property
        def dropped(self) -> int:
            raise OSError("a secret")

        @property
        def queued(self) -> int:
            raise ValueError("a secret")

    agent = describe(REPLIES, watch=[Broken("broken"), Seen("plain")])[0].build()
    broken, plain = agent.health().watchers
    assert (broken.dropped, broken.queued, broken.errors) == (0, 0, 0)
    assert broken.notices == (
        "What this watcher says of itself could not be read: OSError.",
        "What this watcher says of itself could not be read: ValueError.",
        "What this watcher says of itself could not be read: AttributeError.",
    )
    assert plain.notices == ()


@pytest.mark.parametrize(
    ("notices", "expected"),
    [("hello", ()), (None, ()), (["one", "two"], ("one", "two")), ((1, "two"), ("two",)), (print, ())],
)
def test_a_watcher_that_uses_the_names_otherwise_says_nothing_by_them(
    notices: object, expected: tuple[str, ...]
) -> None:
    class Uses(Seen):
        dropped, queued = None, True

        def __init__(self) -> None:
            super().__init__("uses")
            self.errors: list[str] = []
            self.notices = notices

    (uses,) = describe(REPLIES, watch=[Uses()])[0].build().health().watchers
    assert (uses.dropped, uses.queued, uses.errors, uses.notices) == (0, 0, 0, expected)


def test_health_reads_a_watcher_that_hands_on_what_another_says() -> None:
    class Wraps(Seen):
        def __getattr__(self, name: str) -> object:
            return getattr(Ships, name)

    class Ships:
        dropped = 3

    (wraps,) = describe(REPLIES, watch=[Wraps("wraps")])[0].build().health().watchers
    assert (wraps.dropped, wraps.queued, wraps.notices) == (3, 0, ())


class Closes(Seen):
    """A recorder."""

    def flush(self, timeout: float, /) -> bool:
        return True

    def close(self, timeout: float, /) -> None:
        raise NotImplementedError


def test_a_recorder_that_keeps_no_time_takes_none_from_the_others() -> None:
    closed = threading.Event()
    given: list[float] = []

    class Stands(Closes):
        """Comes back when another is closed, in its flush as in its close."""

        def flush(self, timeout: float, /) -> bool:
            return closed.wait(30)

        def close(self, timeout: float, /) -> None:
            assert closed.wait(30)

    class Ships(Closes):
        def close(self, timeout: float, /) -> None:
            given.append(timeout)
            closed.set()

    agent = describe(REPLIES, watch=[Stands("stands"), Ships("ships"), Stands("too")])[0].build()
    asyncio.run(agent.close(timeout=20.0))
    assert given == [20.0]
    assert [one.failures for one in agent.health().watchers] == [0, 0, 0]


@pytest.mark.parametrize("error", [OSError, asyncio.CancelledError, GeneratorExit, BaseException])
def test_whatever_a_recorder_raises_when_it_is_closed_the_others_are_closed(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    closed: list[str] = []

    class Breaks(Closes):
        def close(self, timeout: float, /) -> None:
            closed.append(self.id)
            raise error("a secret")

    agent = describe(REPLIES, watch=[Breaks("a"), Breaks("b")])[0].build()
    asyncio.run(agent.close())
    assert sorted(closed) == ["a", "b"]
    assert [one.failures for one in agent.health().watchers] == [1, 1]
    assert sorted(caplog.messages) == [f"The watcher {id} raised {error.__name__} in close." for id in "ab"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_who_ends_the_program_from_a_recorder_ends_it_when_the_others_are_closed(
    error: type[BaseException],
) -> None:
    asked = threading.Event()
    closed: list[str] = []

    class Ends(Closes):
        def close(self, timeout: float, /) -> None:
            asked.set()
            raise error

    class Ships(Closes):
        def close(self, timeout: float, /) -> None:
            assert asked.wait(30)
            closed.append(self.id)

    agent = describe(REPLIES, watch=[Ends("ends"), Ships("ships")])[0].build()
    with pytest.raises(error):
        asyncio.run(agent.close())
    assert closed == ["ships"]


def test_recorders_that_no_thread_can_be_started_for_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    agent = describe(REPLIES, watch=[Closes("a"), Closes("b")])[0].build()
    monkeypatch.setattr("footprint_core.watch.bus.THREADS", Threads())
    monkeypatch.setattr(threading.Thread, "start", refuses)
    asyncio.run(agent.close())
    assert [one.failures for one in agent.health().watchers] == [1, 1]

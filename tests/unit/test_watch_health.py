"""What an agent says of its watchers, and how it closes them."""

from __future__ import annotations

import asyncio
import threading

from footprint_core.providers import reply
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
        errors = None
        notices = (1, "two")

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
        "1",
        "two",
        "What this watcher says of itself could not be read: OSError.",
        "What this watcher says of itself could not be read: ValueError.",
        "What this watcher says of itself could not be read: TypeError.",
    )
    assert plain.notices == ()


def test_a_recorder_that_takes_all_the_time_to_close_takes_none_from_the_others() -> None:
    shipped = threading.Event()
    asked: list[tuple[str, float]] = []

    class Stands(Seen):
        """Waits for the time it is given."""

        def flush(self, timeout: float, /) -> bool:
            asked.append((self.id, timeout))
            return False

        def close(self, timeout: float, /) -> None:
            assert shipped.wait(10)
            threading.Event().wait(timeout)

    class Ships(Stands):
        """Ships as soon as it is asked to."""

        def flush(self, timeout: float, /) -> bool:
            shipped.set()
            return super().flush(timeout)

    agent = describe(REPLIES, watch=[Stands("stands"), Ships("ships")])[0].build()
    asyncio.run(agent.close(timeout=0.1))
    assert asked == [("stands", 0.0), ("ships", 0.0)]


def test_a_recorder_whose_flush_raises_is_closed_all_the_same() -> None:
    closed: list[str] = []

    class Broken(Seen):
        def flush(self, timeout: float, /) -> bool:
            raise OSError

        def close(self, timeout: float, /) -> None:
            closed.append(self.id)

    agent = describe(REPLIES, watch=[Broken("a"), Broken("b")])[0].build()
    asyncio.run(agent.close())
    assert closed == ["a", "b"]
    assert [one.failures for one in agent.health().watchers] == [1, 1]

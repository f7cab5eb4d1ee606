"""A run that is alone commits in its own thread; several, or a slow disk, go through the writer thread."""

# A few seams are counted from inside.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import msgspec
import pytest

from appending import CONFIGURED, ENDED, TAKEN, append, appender_of, batch, connection_of, whole_run
from footprint_core.errors import LedgerError, RunTakenOverError
from footprint_observe.store import append as append_module
from footprint_observe.store import open_runs
from footprint_observe.store.ledger import SqliteLedger


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteLedger:
    # This machine may be busy, and that is not what these tests are about.
    monkeypatch.setattr(append_module, "SLOW_SECONDS", 60.0)
    return SqliteLedger(tmp_path / "l.db")


def writers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "footprint-ledger"]


def test_runs_that_follow_each_other_never_leave_their_thread(ledger: SqliteLedger) -> None:
    for number in range(20):
        asyncio.run(whole_run(ledger, f"run-{number}", calls=2))
    assert not writers()
    asyncio.run(ledger.close())


def test_while_two_runs_are_open_both_go_through_the_writer_and_the_last_is_alone_again(
    ledger: SqliteLedger,
) -> None:
    async def story() -> None:
        assert ledger.append_inline(batch("a", 1, CONFIGURED)) is not None
        assert ledger.append_inline(batch("b", 1, CONFIGURED)) is None
        await ledger.append(batch("b", 1, CONFIGURED))
        assert ledger.append_inline(batch("a", 2, TAKEN)) is None
        await ledger.append(batch("a", 2, TAKEN))
        # With its end a run is over; the one that is left need not wait for anybody.
        await append(ledger, batch("b", 2, TAKEN, ENDED))
        assert ledger.append_inline(batch("a", 3, TAKEN)) is not None
        await ledger.close()

    asyncio.run(story())


def test_without_an_event_loop_nobody_is_held_up_and_it_is_done_at_once(ledger: SqliteLedger) -> None:
    assert ledger.append_inline(batch("a", 1, CONFIGURED)) is not None
    assert ledger.append_inline(batch("b", 1, CONFIGURED)) is not None
    asyncio.run(ledger.close())


def test_a_run_whose_append_failed_is_not_open_any_more(ledger: SqliteLedger) -> None:
    async def story() -> None:
        await append(ledger, batch("a", 1, CONFIGURED))
        await append(ledger, batch("b", 1, CONFIGURED))
        with pytest.raises(RunTakenOverError):
            await append(ledger, batch("a", 1, TAKEN))
        assert ledger.append_inline(batch("b", 2, TAKEN)) is not None
        # And inline, where it is found out before anybody waits.
        with pytest.raises(RunTakenOverError):
            ledger.append_inline(batch("b", 2, TAKEN))
        assert ledger.append_inline(batch("c", 1, CONFIGURED)) is not None
        await ledger.close()

    asyncio.run(story())


def test_a_run_that_never_says_its_end_is_forgotten_when_it_is_quiet(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        await append(ledger, batch("dead", 1, CONFIGURED))
        assert ledger.append_inline(batch("run", 1, CONFIGURED)) is None
        await ledger.append(batch("run", 1, CONFIGURED))
        monkeypatch.setattr(open_runs, "QUIET_SECONDS", -1.0)
        assert ledger.append_inline(batch("run", 2, TAKEN)) is not None
        monkeypatch.setattr(open_runs, "QUIET_SECONDS", 60.0)
        # Quiet is not dead: when it appends again, it counts again.
        await append(ledger, batch("dead", 2, TAKEN))
        assert ledger.append_inline(batch("run", 3, TAKEN)) is None
        await ledger.close()

    asyncio.run(story())


def test_runs_that_never_end_take_no_more_than_so_much_room(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_runs, "MAX_KNOWN", 3)

    async def story() -> None:
        for number in range(10):
            await append(ledger, batch(f"run-{number}", 1, CONFIGURED))
        await ledger.close()

    asyncio.run(story())
    (opened,) = ledger._by_process.values()
    assert list(opened.runs._appended) == ["run-7", "run-8", "run-9"]


def test_a_disk_that_is_slow_is_waited_for_off_the_loop_until_it_is_fast_again(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.setattr(append_module, "SLOW_SECONDS", -1.0)
        assert ledger.append_inline(batch("run", 1, CONFIGURED)) is None
        await ledger.append(batch("run", 1, CONFIGURED))
        assert ledger.append_inline(batch("run", 2, TAKEN)) is None
        await ledger.append(batch("run", 2, TAKEN))
        monkeypatch.setattr(append_module, "SLOW_SECONDS", 60.0)
        assert ledger.append_inline(batch("run", 3, TAKEN)) is not None
        await ledger.close()

    asyncio.run(story())


def test_how_long_an_append_took_is_measured_with_its_commit(ledger: SqliteLedger) -> None:
    # A trace callback stands for the disk: SQLite calls it before it runs a statement.
    def slow(statement: str) -> None:
        if statement == "COMMIT":
            time.sleep(0.02)

    connection_of(ledger).set_trace_callback(slow)
    ledger.append_inline(batch("run", 1, TAKEN))
    connection_of(ledger).set_trace_callback(None)
    (opened,) = ledger._by_process.values()
    assert opened.appender._seconds >= 0.02
    asyncio.run(ledger.close())


def test_an_error_of_an_append_never_leaves_a_run_open(ledger: SqliteLedger) -> None:
    no_file_can_hold = msgspec.structs.replace(CONFIGURED, agent_id="\ud800")

    async def story() -> None:
        await append(ledger, batch("a", 1, CONFIGURED))
        for number in range(5):
            with pytest.raises(LedgerError):
                await append(ledger, batch(f"b-{number}", 1, CONFIGURED, no_file_can_hold))
        assert ledger.append_inline(batch("a", 2, TAKEN)) is not None
        await ledger.close()

    asyncio.run(story())


def test_while_another_thread_appends_nobody_waits_for_it(ledger: SqliteLedger) -> None:
    answers: list[object] = []
    with appender_of(ledger)._lock:
        asking = threading.Thread(
            target=lambda: answers.append(ledger.append_inline(batch("run", 1, TAKEN))), daemon=True
        )
        asking.start()
        asking.join(30)
        assert answers == [None]
    asyncio.run(ledger.close())

"""The writer thread: what is queued together is written together, and fails alone."""

# A few seams are counted from inside.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from footprint_core.errors import LedgerBusyError, LedgerError, LedgerWriteError, RunTakenOverError
from footprint_core.facts import (
    CallTaken,
    Decided,
    Fact,
    ToolFinished,
    TraceRef,
)
from footprint_core.ledger import Batch, Entry, Receipt
from footprint_core.redacting import Redacting
from footprint_observe.redaction.policy import Redaction
from footprint_observe.store import writer
from footprint_observe.store.append import Appender
from footprint_observe.store.ledger import SqliteLedger
from footprint_observe.store.prepare import Prepared, prepare

TAKEN = CallTaken(iteration=1, call_id="call-1", tool_name="look")


def batch(run_id: str, *facts: Fact, first: int = 1, segment: int = 1) -> Batch:
    entries = tuple(
        Entry(position=place, time=1_700_000_000_000_000 + place, fact=fact)
        for place, fact in enumerate(facts, first)
    )
    trace = TraceRef(trace_id="a" * 32, span_id="b" * 16)
    return Batch(run_id=run_id, segment=segment, entries=entries, trace=trace)


def decided(**fields: Any) -> Decided:
    given: dict[str, Any] = {
        "middleware": "ceiling",
        "moment": "before-tool",
        "iteration": 1,
        "outcome": "allow",
    }
    return Decided(**(given | fields))


def ids(path: Path) -> list[tuple[int, str, int]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT id, run_id, position FROM facts ORDER BY id").fetchall()
    finally:
        connection.close()


def appender(ledger: SqliteLedger) -> Appender:
    (opened,) = ledger._by_process.values()
    return opened.appender


def connection_of(ledger: SqliteLedger) -> sqlite3.Connection:
    connection = appender(ledger)._connection
    assert connection is not None
    return connection


def test_inline_gives_way_while_the_writer_works(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    (opened,) = ledger._by_process.values()
    opened.writer._working = True
    assert ledger.append_inline(batch("run", TAKEN)) is None
    opened.writer._working = False
    assert ledger.append_inline(batch("run", TAKEN)) is not None
    asyncio.run(ledger.close())


def test_a_failed_batch_fails_only_its_own_run(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    ledger.append_inline(batch("taken", TAKEN))

    async def story() -> list[Any]:
        batches = [
            batch("one", TAKEN, TAKEN),
            batch("taken", TAKEN, TAKEN),
            batch("two", TAKEN),
            batch("one", TAKEN, first=3),
            batch("two", TAKEN, first=3),
            batch("two", TAKEN, first=2),
        ]
        return await asyncio.gather(*map(ledger.append, batches), return_exceptions=True)

    answers = asyncio.run(story())
    failed = [(at, type(answer)) for at, answer in enumerate(answers) if isinstance(answer, LedgerError)]
    assert failed == [(1, RunTakenOverError), (4, RunTakenOverError)]
    assert answers[1].run_id == "taken"
    assert [row[1:] for row in ids(tmp_path / "l.db")] == [
        ("taken", 1), ("one", 1), ("one", 2), ("two", 1), ("one", 3), ("two", 2),
    ]  # fmt: skip
    asyncio.run(ledger.close())


def test_what_is_queued_is_one_transaction_and_each_loop_is_woken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    connection = connection_of(ledger)
    statements: list[str] = []
    woken: list[int] = []
    settle = writer._settle

    def counted(settled: Sequence[Any]) -> None:
        woken.append(len(settled))
        settle(settled)

    monkeypatch.setattr(writer, "_settle", counted)
    connection.set_trace_callback(statements.append)

    async def story() -> None:
        with appender(ledger)._lock:
            # While the lock is held nothing can be taken but the first.
            first = asyncio.ensure_future(ledger.append(batch("run-0", TAKEN)))
            await asyncio.sleep(0)
            rest = [asyncio.ensure_future(ledger.append(batch(f"run-{at}", TAKEN))) for at in range(1, 50)]
            await asyncio.sleep(0)
            assert ledger.append_inline(batch("run-99", TAKEN)) is None
        await asyncio.gather(first, *rest)

    asyncio.run(story())
    commits = [statement for statement in statements if statement == "COMMIT"]
    assert 1 <= len(commits) <= 2
    assert len(woken) == len(commits)
    assert sum(woken) == 50
    assert len(ids(tmp_path / "l.db")) == 50
    connection.set_trace_callback(None)
    asyncio.run(ledger.close())


def test_a_queue_that_is_full_refuses_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_QUEUED", 3)
    ledger = SqliteLedger(tmp_path / "l.db")

    async def story() -> None:
        with appender(ledger)._lock:
            waiting = [asyncio.ensure_future(ledger.append(batch(f"run-{at}", TAKEN))) for at in range(10)]
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION, timeout=30)
            refused = [task.exception() for task in done]
            assert refused
            assert all(isinstance(error, LedgerBusyError) for error in refused)
            assert all(isinstance(error, LedgerBusyError) and error.run_id for error in refused)
        await asyncio.gather(*(set(waiting) - done))

    asyncio.run(story())
    assert 3 <= len(ids(tmp_path / "l.db")) <= 9
    asyncio.run(ledger.close())


def test_two_loops_in_two_threads_share_a_ledger(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    problems: list[BaseException] = []

    async def one_run(run: str) -> None:
        for first in range(1, 40, 2):
            given = batch(run, TAKEN, decided(why=run), first=first)
            receipt = ledger.append_inline(given) or await ledger.append(given)
            assert receipt.entries == given.entries

    async def many(name: str) -> None:
        await asyncio.gather(*(one_run(f"{name}-{at}") for at in range(8)))

    def on_a_loop(name: str) -> None:
        try:
            asyncio.run(many(name))
        except BaseException as error:  # noqa: BLE001 - told below, in the thread that asserts
            problems.append(error)

    threads = [threading.Thread(target=on_a_loop, args=(name,)) for name in ("left", "right", "mid")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not problems
    found = ids(tmp_path / "l.db")
    assert [row[0] for row in found] == list(range(1, 24 * 40 + 1))
    for run in {row[1] for row in found}:
        assert [position for _, name, position in found if name == run] == list(range(1, 41))
        assert {row.why for row in ledger.decisions(run)} == {run}
    asyncio.run(ledger.close())


def test_closing_writes_what_is_queued_and_twice_is_harmless(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")

    async def story() -> None:
        waiting = [asyncio.ensure_future(ledger.append(batch(f"run-{at}", TAKEN))) for at in range(20)]
        await asyncio.sleep(0)
        await asyncio.gather(ledger.close(), ledger.close())
        await asyncio.gather(*waiting)
        await ledger.close()
        with pytest.raises(LedgerWriteError, match="closed") as caught:
            await ledger.append(batch("run-0", TAKEN, first=2))
        assert (caught.value.run_id, caught.value.segment) == ("run-0", 1)
        with pytest.raises(LedgerWriteError, match="closed"):
            ledger.append_inline(batch("run-0", TAKEN, first=2))

    asyncio.run(story())
    assert len(ids(tmp_path / "l.db")) == 20
    assert not [thread for thread in threading.enumerate() if thread.name == "footprint-ledger"]
    assert ledger.entries("run-3")


def test_an_append_that_began_before_the_close_does_not_open_the_file_again(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    held = appender(ledger)
    asyncio.run(ledger.close())
    with pytest.raises(LedgerWriteError, match="closed"):
        held.now(prepare(batch("run", TAKEN), Redacting(Redaction.none())))
    assert [path.name for path in tmp_path.iterdir()] == ["l.db"]


def test_an_answer_for_a_loop_that_is_gone_stops_nobody_else(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    lock = appender(ledger)._lock
    lock.acquire()

    async def leaves() -> None:
        asyncio.ensure_future(ledger.append(batch("gone", TAKEN)))  # noqa: RUF006 - abandoned on purpose
        await asyncio.sleep(0)

    asyncio.run(leaves())
    lock.release()
    asyncio.run(ledger.append(batch("here", TAKEN)))
    assert {row[1] for row in ids(tmp_path / "l.db")} == {"gone", "here"}
    asyncio.run(ledger.close())


def test_tasks_that_are_ready_together_share_one_commit(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    statements: list[str] = []
    connection_of(ledger).set_trace_callback(statements.append)

    async def story() -> None:
        for position in (1, 2, 3):
            await asyncio.gather(
                *(ledger.append(batch(f"run-{at}", TAKEN, first=position)) for at in range(50))
            )

    asyncio.run(story())
    assert statements.count("COMMIT") == 3
    connection_of(ledger).set_trace_callback(None)
    asyncio.run(ledger.close())


def test_a_loop_that_is_closed_before_it_woke_the_writer_holds_up_nobody(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")

    loop = asyncio.new_event_loop()
    task = loop.create_task(ledger.append(batch("gone", TAKEN)))
    # The loop ends behind the step in which the batch was queued.
    loop.call_soon(loop.stop)
    loop.run_forever()
    (opened,) = ledger._by_process.values()
    assert not opened.writer.idle
    asyncio.run(asyncio.wait_for(ledger.append(batch("here", TAKEN)), 30))
    assert {row[1] for row in ids(tmp_path / "l.db")} == {"gone", "here"}
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()
    asyncio.run(ledger.close())


def test_an_unexpected_failure_of_the_writer_still_answers_those_who_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")

    def broken(self: Appender, batches: Sequence[Prepared], busy_timeout: float) -> list[LedgerError | None]:
        raise MemoryError("hunter2")

    monkeypatch.setattr(Appender, "together", broken)
    with pytest.raises(LedgerWriteError, match="MemoryError") as caught:
        asyncio.run(ledger.append(batch("run", TAKEN)))
    assert "hunter2" not in str(caught.value)
    monkeypatch.undo()
    asyncio.run(ledger.append(batch("run", TAKEN)))
    asyncio.run(ledger.close())


LARGE = ToolFinished(
    iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result="secret" * 20_000
)


def test_a_disk_that_takes_no_more_fails_the_appends_by_name_and_leaves_nothing(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    ledger.append_inline(batch("run", TAKEN))
    connection_of(ledger).execute("PRAGMA max_page_count = 1")
    with pytest.raises(LedgerWriteError, match="SQLITE_FULL") as caught:
        ledger.append_inline(batch("run", TAKEN, LARGE, first=2))
    assert (caught.value.run_id, caught.value.segment) == ("run", 1)

    async def story() -> None:
        answers = await asyncio.gather(
            ledger.append(batch("other", LARGE)),
            ledger.append(batch("run", TAKEN, LARGE, first=2, segment=3)),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers] == [LedgerWriteError, LedgerWriteError]
        assert [getattr(answer, "run_id", None) for answer in answers] == ["other", "run"]
        assert all("SQLITE_FULL" in str(answer) and "secret" not in str(answer) for answer in answers)
        assert ids(tmp_path / "l.db") == [(1, "run", 1)]

        connection_of(ledger).execute("PRAGMA max_page_count = 1000000")
        await ledger.append(batch("run", TAKEN, LARGE, first=2))
        await ledger.close()

    asyncio.run(story())
    assert [row[1:] for row in ids(tmp_path / "l.db")] == [("run", 1), ("run", 2), ("run", 3)]


def test_a_disk_that_is_too_full_for_one_batch_takes_those_that_were_queued_with_it(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    ledger.append_inline(batch("run", TAKEN))
    connection = connection_of(ledger)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 5}")

    async def story() -> None:
        answers = await together(
            ledger, batch("a", TAKEN), batch("large", LARGE), batch("b", TAKEN), batch("run", TAKEN)
        )
        assert [type(answer) for answer in answers[1:]] == [LedgerWriteError, Receipt, RunTakenOverError]
        assert "SQLITE_FULL" in str(answers[1])
        await ledger.close()

    asyncio.run(story())
    assert [row[1] for row in ids(tmp_path / "l.db")] == ["run", "first", "a", "b"]


async def together(ledger: SqliteLedger, *batches: Batch) -> list[Any]:
    """Append batches so that the writer takes them at once."""
    (opened,) = ledger._by_process.values()
    taken, write = threading.Event(), opened.writer._write

    def told(batches: Sequence[Prepared]) -> Sequence[LedgerError | None]:
        taken.set()
        return write(batches)

    opened.writer._write = told
    with appender(ledger)._lock:
        # While the lock is held, nothing is taken behind the first.
        first = asyncio.ensure_future(ledger.append(batch("first", TAKEN)))
        await asyncio.to_thread(taken.wait, 30)
        waiting = [asyncio.ensure_future(ledger.append(given)) for given in batches]
        await asyncio.sleep(0)
    return (await asyncio.gather(first, *waiting, return_exceptions=True))[1:]


def test_bytes_that_wait_are_bounded_too_and_a_batch_that_is_alone_always_goes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_QUEUED_BYTES", 100_000)
    ledger = SqliteLedger(tmp_path / "l.db")

    async def story() -> None:
        await ledger.append(batch("alone", LARGE))
        answers = await together(
            ledger, batch("a", LARGE), batch("b", TAKEN), batch("c", LARGE), batch("d", TAKEN)
        )
        # The first goes in whatever its size, and nothing else fits beside it.
        refused = [type(answer) for answer in answers]
        assert refused[1:] == [LedgerBusyError] * 3
        assert "MiB already wait" in str(answers[1])
        assert answers[1].run_id == "b"
        await ledger.append(batch("e", LARGE))
        await ledger.close()

    asyncio.run(story())
    assert [row[1] for row in ids(tmp_path / "l.db")] == ["alone", "first", "a", "e"]

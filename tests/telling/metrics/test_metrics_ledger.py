"""The questions that wait: read from the ledger when somebody collects, at little cost, raising nothing."""

from __future__ import annotations

import sqlite3
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from asked import YES, Till, asks, pays, until_asked
from file_ledger import on_file, select
from footprint_core import LedgerOpenError
from footprint_observe.query import database, pending
from footprint_observe.query.waiting import Open, Waiting
from footprint_observe.store import forked
from footprint_observe.store.connect import open_reader
from recorders import otel_metrics_observed
from recorders.otel_metrics import OtelMetrics
from recorders.otel_metrics_observed import Approvals
from story import answered, run
from telling.metrics.figures import Metered

PENDING = "footprint.approvals.pending"
OLDEST = "footprint.approvals.oldest_age"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the file whenever somebody collects, however soon."""
    monkeypatch.setattr(otel_metrics_observed, "_FRESH_SECONDS", -1.0)


async def asked(path: Path, **asked: Any) -> tuple[Till, Any, Any]:
    """An agent over a file, and its open question."""
    till = Till(on_file(path))
    agent = till.agent(pays(500), [asks(**asked)])
    return till, agent, await until_asked(agent)


def test_open_questions_are_counted_until_they_are_answered(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    metered = Metered(ledger=path)

    async def story() -> None:
        till, agent, pause = await asked(path)
        assert metered.all(PENDING) == 1
        assert 0 <= (metered.all(OLDEST) or 0) < 60
        await until_asked(till.agent(pays(500), [asks()]))
        assert metered.all(PENDING) == 2
        answered(await agent.resume(pause.checkpoint, YES))
        assert metered.all(PENDING) == 1
        await till.ledger.close()

    run(story())
    assert metered.recorder.notices == ()


def test_a_question_that_takes_no_answer_any_more_does_not_wait(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    till, _, _ = run(asked(path, expires_in=60))
    waiting, now = Waiting(path), time.time_ns() // 1000
    assert waiting.count(now).count == 1
    assert waiting.count(now + 3_600_000_000) == Open(count=0, oldest=0.0)
    run(till.ledger.close())


def test_a_run_that_was_given_up_does_not_wait(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    till, agent, pause = run(asked(path))
    waiting = Waiting(path)
    assert waiting.count().count == 1
    run(agent.abandon(pause.run_id, by="dana@ops", reason="nobody waits"))
    assert waiting.count().count == 0
    run(till.ledger.close())


def test_ages_are_counted_from_the_oldest_question(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    till, _, _ = run(asked(path))
    run(until_asked(till.agent(pays(500), [asks()])))
    ((first,),) = select(path, "SELECT min(recorded_us) FROM facts WHERE kind = 'pause.opened'")
    assert Waiting(path).count(first + 90_000_000) == Open(count=2, oldest=90.0)
    assert Waiting(path).count(first - 1_000_000).oldest == 0
    run(till.ledger.close())


def test_counting_again_finds_what_counting_for_the_first_time_finds(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    again = Waiting(path)

    async def story() -> None:
        till = Till(on_file(path))
        open_ones: list[tuple[Any, Any]] = []
        for number in range(12):
            agent = till.agent(pays(500), [asks()])
            open_ones.append((agent, await until_asked(agent)))
            if number % 3 == 2:
                agent, pause = open_ones.pop(number % len(open_ones))
                await agent.resume(pause.checkpoint, YES)
            now = time.time_ns() // 1000
            assert again.count(now) == Waiting(path).count(now)
            assert again.count(now).count == len(open_ones) == len(pending(path))
        await till.ledger.close()

    run(story())


def test_another_file_at_the_same_path_is_looked_at_anew(tmp_path: Path) -> None:
    path, other = tmp_path / "l.db", tmp_path / "other.db"
    waiting = Waiting(path)
    till = Till(on_file(path))
    # Here the only question comes late, in the other file the first of three comes early.
    for _ in range(2):
        run(till.agent(pays(5)).run("go"))
    run(until_asked(till.agent(pays(500), [asks()])))
    run(till.ledger.close())
    assert waiting.count().count == 1
    for _ in range(3):
        till, _, _ = run(asked(other))
        run(till.agent(pays(5, 6, 7)).run("go"))
        run(till.ledger.close())
    for part in tmp_path.glob("l.db*"):
        part.unlink()
    other.replace(path)
    assert waiting.count().count == 3


def test_counting_again_reads_only_what_came_since_and_what_was_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "l.db"
    till, agent, pause = run(asked(path))
    waiting = Waiting(path)
    waiting.count()
    run(agent.resume(pause.checkpoint, YES))
    statements: list[str] = []
    monkeypatch.setattr(
        database, "open_reader", lambda path, **how: traced(open_reader(path, **how), statements)
    )
    waiting.count()
    run(till.ledger.close())
    connection = sqlite3.connect(path)
    asked_for = [one for one in statements if "candidates" in one]
    plan = [row[3] for one in asked_for for row in connection.execute(f"EXPLAIN QUERY PLAN {one}")]
    connection.close()
    assert any("p USING INTEGER PRIMARY KEY (rowid>?)" in line for line in plan)
    for line in plan:
        assert not line.startswith("SCAN facts"), line
        # The index of pauses is searched for one pause, and never read through.
        assert "facts_pauses" not in line or "pause_id=?" in line, line


def traced(connection: sqlite3.Connection, statements: list[str]) -> sqlite3.Connection:
    connection.set_trace_callback(statements.append)
    return connection


def test_a_fork_waits_for_a_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l.db"
    till, _, _ = run(asked(path))
    held: list[bool] = []

    def opened(path: Path, **how: Any) -> sqlite3.Connection:
        held.append(forked.reading.locked())
        return open_reader(path, **how)

    monkeypatch.setattr(database, "open_reader", opened)
    Waiting(path).count()
    assert held == [True]
    run(till.ledger.close())


def test_a_file_that_is_not_there_gives_no_sample_and_is_said(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    metered = Metered(ledger=path)
    assert metered.all(PENDING) is None
    assert metered.all(OLDEST) is None
    (notice,) = metered.recorder.notices
    assert notice.startswith("The questions that wait cannot be counted. There is no ledger file")
    till, _, _ = run(asked(path))
    assert metered.all(PENDING) == 1
    assert metered.recorder.notices == ()
    run(till.ledger.close())


def test_a_file_that_is_no_ledger_gives_no_sample_and_is_said(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    path.write_bytes(b"no ledger at all" * 100)
    metered = Metered(ledger=path)
    assert metered.all(PENDING) is None
    assert len(metered.recorder.notices) == 1


def test_a_file_that_somebody_has_locked_gives_no_sample_and_is_said(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    till, _, _ = run(asked(path))
    run(till.ledger.close())
    metered = Metered(ledger=path)
    locking = sqlite3.connect(path, isolation_level=None)
    try:
        locking.execute("PRAGMA locking_mode = EXCLUSIVE")
        locking.execute("BEGIN EXCLUSIVE")
        before = time.monotonic()
        assert metered.all(PENDING) is None
        assert time.monotonic() - before < 30
        assert len(metered.recorder.notices) == 1
        locking.execute("ROLLBACK")
    finally:
        locking.close()
    assert metered.all(PENDING) == 1


def test_whatever_goes_wrong_with_the_file_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Waiting, now_us: int | None = None) -> Open:
        raise MemoryError("a secret")

    monkeypatch.setattr(Waiting, "count", fails)
    metered = Metered(ledger=tmp_path / "l.db")
    assert metered.all(PENDING) is None
    assert metered.recorder.notices == ("The questions that wait cannot be counted (MemoryError).",)


def test_a_run_goes_on_while_the_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l.db"
    till = Till(on_file(path))
    metered = Metered(ledger=path)
    ran: list[Any] = []

    def opened(path: Path, **how: Any) -> sqlite3.Connection:
        connection = open_reader(path, **how)
        ran.append(run(till.agent(pays(5)).run("go")))
        return connection

    run(till.agent(pays(5)).run("go"))
    monkeypatch.setattr(database, "open_reader", opened)
    assert metered.all(PENDING) == 0
    assert [answered(out).text for out in ran] == ["done"] * len(ran)
    assert ran
    run(till.ledger.close())


def test_two_gauges_are_one_look_at_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l.db"
    till, _, _ = run(asked(path))
    monkeypatch.setattr(otel_metrics_observed, "_FRESH_SECONDS", 60.0)
    looks: list[Path] = []

    def opened(path: Path, **how: Any) -> sqlite3.Connection:
        looks.append(path)
        return open_reader(path, **how)

    monkeypatch.setattr(database, "open_reader", opened)
    metered = Metered(ledger=path)
    assert metered.all(PENDING) == 1
    assert len(looks) == 1
    run(till.ledger.close())


def test_two_recorders_with_two_ledgers_are_added_up_and_one_ledger_counts_once(tmp_path: Path) -> None:
    for name in ("a.db", "b.db"):
        till, _, _ = run(asked(tmp_path / name))
        run(till.ledger.close())
    metered = Metered(ledger=tmp_path / "a.db")
    others = [
        OtelMetrics(meter_provider=metered.provider, ledger=tmp_path / name, id=f"{name}-{number}")
        for number, name in enumerate(["a.db", "b.db"])
    ]
    assert metered.all(PENDING) == 2
    for other in others:
        other.close(1.0)
    assert metered.all(PENDING) == 1


def test_a_recorder_that_is_closed_reads_its_ledger_no_more(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    till, _, _ = run(asked(path))
    run(till.ledger.close())
    metered = Metered(ledger=str(path))
    assert metered.all(PENDING) == 1
    metered.recorder.close(1.0)
    metered.recorder.close(1.0)
    assert metered.all(PENDING) is None


def test_a_signal_handler_may_close_a_recorder_while_ledgers_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.db", "b.db"):
        till, _, _ = run(asked(tmp_path / name))
        run(till.ledger.close())
    metered = Metered(ledger=tmp_path / "a.db")
    other = OtelMetrics(meter_provider=metered.provider, ledger=tmp_path / "b.db")

    def path(approvals: Approvals) -> Path:
        # Where a handler can find the thread that collects.
        other.close(1.0)
        return approvals._waiting.path

    found: list[float | None] = []
    with monkeypatch.context() as interrupted:
        interrupted.setattr(Approvals, "path", property(path))
        collecting = threading.Thread(target=lambda: found.append(metered.all(PENDING)), daemon=True)
        collecting.start()
        collecting.join(20)
        assert not collecting.is_alive()
    assert found == [2]
    assert metered.all(PENDING) == 1


def test_a_change_of_folder_does_not_move_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    till, _, _ = run(asked(tmp_path / "l.db"))
    run(till.ledger.close())
    monkeypatch.chdir(tmp_path)
    metered = Metered(ledger="l.db")
    monkeypatch.chdir("/")
    assert metered.all(PENDING) == 1


def test_a_ledger_is_given_by_its_path(tmp_path: Path) -> None:
    ledger: Any = on_file(tmp_path / "l.db")
    for make in (OtelMetrics, OtelMetrics.to_otlp, partial(OtelMetrics.to_prometheus, port=0)):
        with pytest.raises(LedgerOpenError, match="The path of a ledger is a text"):
            make(ledger=ledger)
    with pytest.raises(LedgerOpenError):
        Waiting(tmp_path / "none.db").count()

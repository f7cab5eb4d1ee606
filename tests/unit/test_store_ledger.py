"""Appending: all or nothing, in its place or not at all, and what a receipt says is what the file says."""

# A few seams are counted from inside.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from footprint_core.decisions import Decision
from footprint_core.errors import LedgerWriteError, RunTakenOverError
from footprint_core.facts import (
    CallTaken,
    Decided,
    Fact,
    PauseAnswered,
    PauseOpened,
    RunAbandoned,
    RunConfigured,
    SegmentEnded,
    ToolFinished,
    TraceRef,
)
from footprint_core.ledger import Batch, Entry, Ledger, Marks, PauseBody, decision_row
from footprint_observe.redaction.policy import Redaction
from footprint_observe.store import read
from footprint_observe.store.append import Appender
from footprint_observe.store.connect import open_reader
from footprint_observe.store.ledger import SqliteLedger

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


def test_it_is_a_ledger(tmp_path: Path) -> None:
    ledger: Ledger = SqliteLedger(tmp_path / "l.db")
    asyncio.run(ledger.close())
    assert ledger.decisions("no such run") == ()


def test_an_append_is_in_the_file_when_it_returns(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    receipt = ledger.append_inline(batch("run", TAKEN, TAKEN))
    assert receipt is not None
    assert [entry.position for entry in receipt.entries] == [1, 2]
    assert receipt.marks == {}
    assert ids(tmp_path / "l.db") == [(1, "run", 1), (2, "run", 2)]
    asyncio.run(ledger.close())


def test_what_was_redacted_is_on_the_receipt_and_nothing_else_was_copied(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    given = batch(
        "run", TAKEN, decided(changed=True, why="w", before={"password": "hunter2"}, after={"n": 1})
    )
    receipt = ledger.append_inline(given)
    assert receipt is not None
    assert receipt.marks == {2: (("before.password", "mask"),)}
    assert receipt.entries[0] is given.entries[0]
    kept = receipt.entries[1].fact
    assert isinstance(kept, Decided)
    assert kept.before == {"password": "[redacted]"}
    assert isinstance(given.entries[1].fact, Decided)
    assert given.entries[1].fact.before == {"password": "hunter2"}
    asyncio.run(ledger.close())


def test_the_decisions_of_a_run_are_the_rows_of_its_receipts(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    rows: list[Decision] = []
    facts: list[Fact] = [
        decided(moment="input", iteration=0, why="w", detail=None),
        TAKEN,
        decided(
            outcome="ask", why="sure?", detail={"token": "abc", "x": [1.0, None]}, tool_name="t", call_id="c"
        ),
        decided(changed=True, before={"z": 1, "a": 2}, after={"password": 1}, duration_us=3, shadow=True),
        decided(answer="person", decided_by="dana@ops", after_approval=True, error_class="E", version="2"),
    ]
    for segment, fact in enumerate(facts, 1):
        receipt = ledger.append_inline(batch("run", fact, first=segment, segment=segment))
        assert receipt is not None
        (entry,) = receipt.entries
        if isinstance(entry.fact, Decided):
            rows.append(decision_row("run", segment, entry, entry.fact, receipt.marks.get(segment, ())))
    assert len(rows) == 4
    assert ledger.decisions("run") == tuple(rows)
    assert ledger.decisions("run")[1].redacted == (("detail.token", "mask"),)
    assert [row.to_dict() for row in ledger.decisions("run")] == [row.to_dict() for row in rows]
    assert ledger.decisions("another") == ()
    asyncio.run(ledger.close())


def test_reading_decisions_reads_no_value_of_anything_else(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    result = ToolFinished(
        iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result="a long result"
    )
    ledger.append_inline(batch("run", result, decided(why="because")))
    texts: list[bytes] = []

    def noted(text: bytes) -> str:
        texts.append(text)
        return text.decode()

    connection = open_reader(tmp_path / "l.db")
    connection.text_factory = noted
    (row,) = read.decisions(connection, "run")
    connection.close()
    assert row.why == "because"
    assert b'"because"' in texts
    assert b'"a long result"' not in texts
    asyncio.run(ledger.close())


@pytest.mark.parametrize("first", [1, 2, 4])
def test_a_batch_that_does_not_follow_is_refused_whole(tmp_path: Path, first: int) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    ledger.append_inline(batch("run", TAKEN, TAKEN))
    before = ids(tmp_path / "l.db")

    async def story() -> None:
        for _ in range(2):
            with pytest.raises(RunTakenOverError) as caught:
                await ledger.append(batch("run", TAKEN, TAKEN, first=first, segment=7))
            assert (caught.value.run_id, caught.value.segment) == ("run", 7)
            with pytest.raises(RunTakenOverError) as caught:
                ledger.append_inline(batch("run", TAKEN, TAKEN, first=first, segment=7))
            assert (caught.value.run_id, caught.value.segment) == ("run", 7)
        assert ids(tmp_path / "l.db") == before
        await ledger.append(batch("run", TAKEN, first=3))
        await ledger.close()

    asyncio.run(story())
    assert ids(tmp_path / "l.db")[-1] == (3, "run", 3)


def test_a_run_the_file_does_not_have_begins_with_its_first_row(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")

    async def story() -> None:
        with pytest.raises(LedgerWriteError, match="nothing of this run"):
            ledger.append_inline(batch("run", TAKEN, first=2))
        with pytest.raises(LedgerWriteError, match="nothing of this run"):
            await ledger.append(batch("run", TAKEN, first=2))
        await ledger.close()

    asyncio.run(story())
    assert ids(tmp_path / "l.db") == []


def test_of_two_ledgers_on_one_file_the_second_to_continue_a_run_fails_before_it_acts(tmp_path: Path) -> None:
    one, other = SqliteLedger(tmp_path / "l.db"), SqliteLedger(tmp_path / "l.db")
    one.append_inline(batch("run", TAKEN))
    other.append_inline(batch("run", TAKEN, first=2))
    with pytest.raises(RunTakenOverError):
        # Its own memory says that 2 is next.
        one.append_inline(batch("run", TAKEN, TAKEN, first=2))
    one.append_inline(batch("run", TAKEN, first=3))
    assert [row[0] for row in ids(tmp_path / "l.db")] == [1, 2, 3]
    asyncio.run(one.close())
    asyncio.run(other.close())


def test_a_run_may_come_back_after_another_process_went_on_with_it(tmp_path: Path) -> None:
    one, other = SqliteLedger(tmp_path / "l.db"), SqliteLedger(tmp_path / "l.db")
    one.append_inline(batch("run", TAKEN))
    other.append_inline(batch("run", TAKEN, first=2))
    # Its own memory says that 1 is the last; the file knows better.
    assert one.append_inline(batch("run", TAKEN, first=3)) is not None
    connection = sqlite3.connect(tmp_path / "l.db")
    hashes = connection.execute("SELECT prev_hash, hash FROM facts ORDER BY id").fetchall()
    connection.close()
    assert [before for before, _ in hashes] == [bytes(32), hashes[0][1], hashes[1][1]]
    asyncio.run(one.close())
    asyncio.run(other.close())


def test_positions_with_a_gap_are_refused(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    entries = tuple(Entry(position=place, time=1, fact=TAKEN) for place in (1, 3))
    with pytest.raises(LedgerWriteError):
        ledger.append_inline(Batch(run_id="run", segment=1, entries=entries))
    assert ids(tmp_path / "l.db") == []
    asyncio.run(ledger.close())


def test_a_batch_that_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    ledger.append_inline(batch("run", TAKEN))
    connection = connection_of(ledger)
    connection.execute(
        "CREATE TEMP TRIGGER broken BEFORE INSERT ON main.vals WHEN NEW.json = '\"third\"' "
        "BEGIN SELECT RAISE(ABORT, 'a value: third'); END"
    )
    facts = [
        ToolFinished(iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result=result)
        for result in ("first", "second", "third")
    ]
    for run, first in (("run", 2), ("new", 1)):
        with pytest.raises(LedgerWriteError, match="SQLITE_CONSTRAINT_TRIGGER") as caught:
            ledger.append_inline(batch(run, *facts, first=first))
        assert "third" not in str(caught.value)
        assert caught.value.run_id == run
    assert ids(tmp_path / "l.db") == [(1, "run", 1)]
    connection.execute("DROP TRIGGER broken")
    ledger.append_inline(batch("run", *facts, first=2))
    assert ids(tmp_path / "l.db")[-1] == (4, "run", 4)
    asyncio.run(ledger.close())


class Failing:
    """A redactor that raises what it likes."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def redact(self, fact: Fact) -> tuple[Fact, Marks]:
        raise self._error


def test_when_a_redactor_raises_every_value_is_masked_and_the_row_says_so(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db", redact=Failing(KeyError("hunter2")))
    pause = PauseOpened(
        pause_id="p", pause_kind="ask", iteration=1, call_id="c", tool_name="t", salt="00", digest="11"
    )
    receipt = ledger.append_inline(
        batch("run", decided(why="hunter2", detail={"x": "hunter2"}, before=["hunter2"]), TAKEN, pause)
    )
    assert receipt is not None
    row = ledger.decisions("run")[0]
    assert (row.why, row.detail, row.before) == ("[redacted]", "[redacted]", "[redacted]")
    assert dict(row.redacted) == dict.fromkeys(("why", "detail", "before"), "failed")
    assert row.after is msgspec.UNSET
    assert receipt.entries[1].fact == TAKEN
    assert receipt.entries[2].fact == pause
    assert set(receipt.marks) == {1}
    for path in tmp_path.iterdir():
        assert b"hunter2" not in path.read_bytes()
    asyncio.run(ledger.close())


def test_the_body_of_a_pause_is_in_no_file(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db", redact=Redaction.none())
    given = batch("run", TAKEN)
    body = PauseBody(pause_id="p", checkpoint={"args": "the-args-of-the-call"})
    ledger.append_inline(msgspec.structs.replace(given, pause=body))
    for path in tmp_path.iterdir():
        assert b"the-args-of-the-call" not in path.read_bytes()
    asyncio.run(ledger.close())


def test_a_pause_stands_until_it_is_answered_or_its_run_is_abandoned(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")

    def opening(pause_id: str) -> PauseOpened:
        return PauseOpened(
            pause_id=pause_id,
            pause_kind="ask",
            iteration=1,
            call_id="c",
            tool_name="t",
            salt="5a" * 16,
            digest="d1" * 32,
        )

    def ended(outcome: Any) -> SegmentEnded:
        return SegmentEnded(outcome=outcome, iterations=1, input_tokens=0, output_tokens=0, duration_us=1)

    async def story() -> None:
        assert await ledger.pause_standing("run", "p") is None
        await ledger.append(batch("run", TAKEN, opening("p"), ended("paused")))
        standing = await ledger.pause_standing("run", "p")
        assert standing is not None
        assert (standing.position, standing.segment, standing.answered) == (3, 1, False)
        assert (standing.salt, standing.digest) == ("5a" * 16, "d1" * 32)
        assert standing.opened_us == 1_700_000_000_000_002
        assert await ledger.pause_standing("run", "q") is None
        assert await ledger.pause_standing("another", "p") is None

        answer = PauseAnswered(
            pause_id="p", pause_kind="ask", answer="approved", tool_name="t", call_id="c", paused_us=5
        )
        await ledger.append(batch("run", answer, first=4, segment=2))
        standing = await ledger.pause_standing("run", "p")
        assert standing is not None
        assert (standing.position, standing.segment, standing.answered) == (4, 2, True)

        await ledger.append(batch("left", opening("l"), ended("paused")))
        # A resume that died before its answer was on record leaves the question open; a person does not.
        await ledger.append(batch("left", ended("abandoned"), first=3, segment=2))
        standing = await ledger.pause_standing("left", "l")
        assert standing is not None
        assert not standing.answered
        await ledger.append(batch("left", RunAbandoned(by="dana", reason="old"), first=4, segment=2))
        standing = await ledger.pause_standing("left", "l")
        assert standing is not None
        assert standing.answered
        await ledger.close()

    asyncio.run(story())


def test_the_heads_that_are_remembered_are_bounded_and_forgetting_one_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("footprint_observe.store.append._MAX_HEADS", 2)
    ledger = SqliteLedger(tmp_path / "l.db")
    for first in (1, 2, 3):
        for run in ("a", "b", "c", "d"):
            ledger.append_inline(batch(run, TAKEN, first=first))
            assert len(appender(ledger)._heads) <= 2
    assert len(ids(tmp_path / "l.db")) == 12
    asyncio.run(ledger.close())


def test_a_run_without_a_trace_is_kept(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    fact = RunConfigured(
        agent_id="a", agent_name="n", provider="p", model="m", rules={}, tools=(), turn_index=1
    )
    entry = Entry(position=1, time=0, fact=fact)
    ledger.append_inline(Batch(run_id="run", segment=1, entries=(entry,)))
    assert ledger.entries("run") == (entry,)
    asyncio.run(ledger.close())

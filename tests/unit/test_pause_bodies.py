"""The body of a pause in a file: sealed for its run and pause, there while it is open, gone behind that."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asked import DONE, NO, YES, Till, asks, paused, pays, until_asked
from file_ledger import on_file, select
from footprint_core import (
    KeyRingError,
    LedgerOpenError,
    RunTakenOverError,
    StaleDecisionError,
    UnknownPauseError,
    pause_here,
    tool,
)
from footprint_core.facts import CallTaken, PauseAnswered, PauseOpened
from footprint_core.ledger import Batch, Entry, PauseBody
from footprint_core.providers import call, reply
from footprint_observe import KeyRing, SqliteLedger
from footprint_observe.store.pauses import kept_pause
from footprint_observe.store.read import pause_standing
from laws.test_pause_once import Hand, under
from sealed import KEYS, SECRET, abandon, bodies, flushed, tampered, traces
from story import answered, run

OTHER = bytes(range(1, 33))


ENDS: dict[str, Callable[[Any, Any], Any]] = {
    "approved": lambda agent, pause: agent.resume(pause_id=pause.pause_id, answer=YES),
    "declined": lambda agent, pause: agent.resume(pause_id=pause.pause_id, answer=NO),
    "by its checkpoint": lambda agent, pause: agent.resume(pause.checkpoint, YES),
}


@pytest.mark.parametrize("end", [*ENDS, "a value", "expired", "abandoned"])
@pytest.mark.parametrize("keyless", [False, True])
def test_whatever_ends_a_pause_leaves_nothing_of_its_body_in_the_file(
    end: str, keyless: bool, tmp_path: Path
) -> None:
    path, clock = tmp_path / "l.db", Hand()
    first, kind = on_file(path, keys=KEYS), "human" if end == "a value" else "ask"
    till = Till(first)
    replies = [reply(calls=[call("c0", "pay", {"amount": 500, "note": "x" * 20_000})])]

    @tool(name="pay")
    def pay(amount: int, note: str) -> Any:
        return pause_here(note) if kind == "human" else amount

    rules = [asks(above=100 if kind == "ask" else 1000, expires_in=60)]
    pause = run(until_asked(under(clock, till.agent(replies, rules, pay))))
    ((_, _, _, body),) = bodies(path)
    assert len(traces(body, flushed(path))) > 30
    # Whoever ends a pause destroys its body, also a ledger that could not read it.
    last = on_file(path, keys=None if keyless else KEYS)
    session = under(clock, Till(last).agent(DONE, rules, pay))
    if end == "abandoned":
        abandon(last, pause)
    elif end == "expired":
        clock.move(61)
        with pytest.raises(StaleDecisionError):
            run(session.resume(pause.checkpoint, YES))
    else:
        ends = ENDS["by its checkpoint"] if keyless or end == "a value" else ENDS[end]
        answered(run(ends(session, pause)))
    assert bodies(path) == []
    for ledger in (first, last):
        run(ledger.close())
    assert traces(body, flushed(path)) == []
    assert select(path, "PRAGMA integrity_check") == [("ok",)]


async def asked(path: Path, keys: KeyRing | None, **options: Any) -> Any:
    """A pause in a file that was closed again."""
    ledger = on_file(path, keys=keys)
    pause = await until_asked(Till(ledger).agent(pays(500), [asks()], **options))
    await ledger.close()
    return pause


async def answer(path: Path, keys: KeyRing | None, **given: Any) -> list[int]:
    """What an answer by another agent over the file pays."""
    ledger = on_file(path, keys=keys)
    till = Till(ledger)
    try:
        answered(await till.agent(DONE, [asks()]).resume(answer=YES, **given))
    finally:
        await ledger.close()
    return till.paid


def test_a_body_is_sealed_under_the_current_key_with_a_nonce_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    pauses = [run(asked(path, KEYS)) for _ in range(2)]
    found = bodies(path)
    assert [row[:3] for row in found] == [(pause.pause_id, pause.run_id, "k1") for pause in pauses]
    nonces = [nonce for (nonce,) in select(path, "SELECT nonce FROM pause_bodies")]
    assert [len(nonce) for nonce in nonces] == [12, 12]
    assert len(set(nonces)) == 2


def test_without_keys_no_body_is_written_and_the_pause_is_answered_by_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    pause = run(asked(path, None))
    assert bodies(path) == []
    for keys in (None, KEYS):
        with pytest.raises(UnknownPauseError, match="keeps no body"):
            run(answer(path, keys, pause_id=pause.pause_id))
    assert run(answer(path, None, checkpoint=pause.checkpoint)) == [500]


RINGS: dict[str, tuple[KeyRing | None, str]] = {
    "no keys": (None, "without keys"),
    "no key of that id": (KeyRing.of({"k2": OTHER}), "'k1'"),
    "another secret of that id": (KeyRing.of({"k1": OTHER}), "'k1'"),
}


@pytest.mark.parametrize("ring", RINGS)
def test_keys_that_do_not_open_a_body_are_named_and_use_nothing_up(ring: str, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    pause = run(asked(path, KEYS))
    keys, said = RINGS[ring]
    with pytest.raises(KeyRingError, match=said) as raised:
        run(answer(path, keys, pause_id=pause.pause_id))
    assert raised.value.key_id == "k1"
    assert [row[0] for row in bodies(path)] == [pause.pause_id]
    assert select(path, "SELECT count(*) FROM facts WHERE kind = 'pause.answered'") == [(0,)]
    assert run(answer(path, KEYS, pause_id=pause.pause_id)) == [500]


def test_a_body_under_an_older_key_of_the_ring_still_opens_and_new_ones_are_under_the_new(
    tmp_path: Path,
) -> None:
    path = tmp_path / "l.db"
    pause = run(asked(path, KEYS))
    rotated = KeyRing.of({"k2": OTHER, "k1": SECRET})
    later = run(asked(path, rotated))
    assert [row[2] for row in bodies(path)] == ["k1", "k2"]
    assert run(answer(path, rotated, pause_id=pause.pause_id)) == [500]
    assert run(answer(path, rotated, pause_id=later.pause_id)) == [500]


_OF_ANOTHER = "SELECT {} FROM pause_bodies WHERE pause_id = :other"
TAMPERED: dict[str, str] = {
    "the body of another pause": f"(body, nonce) = ({_OF_ANOTHER.format('body, nonce')})",
    "a byte of the body": "body = CAST(zeroblob(1) || substr(body, 2) AS BLOB)",
    "its end": "body = substr(body, 1, length(body) - 1)",
    "nothing left": "body = x''",
    "another nonce": "nonce = zeroblob(12)",
    "no nonce": "nonce = x''",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_body_that_was_tampered_with_is_refused_and_nothing_runs(what: str, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    pause, other = run(asked(path, KEYS)), run(asked(path, KEYS))
    change = f"UPDATE pause_bodies SET {TAMPERED[what]} WHERE pause_id = :pause"
    tampered(path, change, pause=pause.pause_id, other=other.pause_id)
    with pytest.raises(KeyRingError, match="damaged or moved"):
        run(answer(path, KEYS, pause_id=pause.pause_id))
    assert select(path, "SELECT count(*) FROM facts WHERE kind = 'pause.answered'") == [(0,)]
    assert run(answer(path, KEYS, pause_id=other.pause_id)) == [500]
    assert run(answer(path, KEYS, checkpoint=pause.checkpoint)) == [500]


def test_a_body_cannot_be_moved_to_another_run_either(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    pause, other = run(asked(path, KEYS)), run(asked(path, KEYS))
    # The whole pause of one run is made one of the other: row, values and body.
    moved = {"pause": pause.pause_id, "run": other.run_id}
    which = "kind = 'pause.opened' AND pause_id = :pause"
    tampered(path, f"UPDATE facts SET run_id = :run, position = position + 1000 WHERE {which}", **moved)
    tampered(path, "UPDATE pause_bodies SET run_id = :run WHERE pause_id = :pause", **moved)
    with pytest.raises(KeyRingError, match="damaged or moved"):
        run(answer(path, KEYS, pause_id=pause.pause_id))


def test_a_body_of_an_earlier_question_of_the_run_is_not_that_of_a_later_one(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = on_file(path, keys=KEYS)
    agent = Till(ledger).agent([*pays(500, 600), DONE], [asks()])
    first = run(until_asked(agent))
    ((nonce, body),) = select(path, "SELECT nonce, body FROM pause_bodies")
    second = paused(run(agent.resume(pause_id=first.pause_id, answer=YES)))
    assert second.run_id == first.run_id
    tampered(path, "UPDATE pause_bodies SET nonce = :nonce, body = :body", nonce=nonce, body=body)
    with pytest.raises(KeyRingError, match="damaged or moved"):
        run(agent.resume(pause_id=second.pause_id, answer=YES))
    run(ledger.close())


def opening(pause_id: str, position: int) -> Entry:
    fact = PauseOpened(pause_id=pause_id, pause_kind="ask", iteration=1, call_id="c", tool_name="t")
    return Entry(position=position, time=position, fact=fact)


def batch(run_id: str, *entries: Entry, body: str | None = None) -> Batch:
    pause = None if body is None else PauseBody(pause_id=body, checkpoint={"version": 1})
    return Batch(run_id=run_id, segment=1, entries=entries, pause=pause)


def test_the_body_of_a_batch_that_is_not_taken_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "l.db"

    async def go() -> None:
        ledger = SqliteLedger(path, keys=KEYS)
        await ledger.append(batch("run", opening("p", 1), body="p"))
        # Together in one transaction: the one that fails takes back nothing but its own.
        outcomes = await asyncio.gather(
            ledger.append(batch("run", opening("late", 1), body="late")),
            ledger.append(batch("other", opening("q", 1), body="q")),
            return_exceptions=True,
        )
        assert isinstance(outcomes[0], RunTakenOverError)
        with pytest.raises(RunTakenOverError):
            await ledger.append(batch("run", opening("late", 1), body="late"))
        await ledger.close()

    run(go())
    assert [row[0] for row in bodies(path)] == ["p", "q"]


def test_one_batch_may_answer_a_pause_and_open_the_next(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    answers = PauseAnswered(
        pause_id="p", pause_kind="ask", answer="approved", tool_name="t", call_id="c", paused_us=1
    )

    async def go() -> None:
        ledger = SqliteLedger(path, keys=KEYS)
        await ledger.append(batch("run", opening("p", 1), body="p"))
        await ledger.append(batch("run", Entry(position=2, time=2, fact=answers), opening("q", 3), body="q"))
        await ledger.close()

    run(go())
    assert [row[0] for row in bodies(path)] == ["q"]


def test_what_is_no_key_ring_is_refused_when_the_ledger_is_made(tmp_path: Path) -> None:
    wrong: Any = {"k1": SECRET}
    with pytest.raises(LedgerOpenError, match="KeyRing"):
        SqliteLedger(tmp_path / "l.db", keys=wrong)
    assert not (tmp_path / "l.db").exists()


def steps(path: Path) -> int:
    """The steps SQLite takes to look a pause up, and to see whether its body may go."""
    counted = [0]

    def count() -> None:
        counted[0] += 1

    connection = sqlite3.connect(path, isolation_level=None)
    connection.set_progress_handler(count, 1)
    assert pause_standing(connection, "run", "p") is not None
    assert kept_pause(connection, "p", KEYS) is not None
    with pytest.raises(sqlite3.IntegrityError, match="a body goes with its answer"):
        connection.execute("DELETE FROM pause_bodies WHERE pause_id = 'p'")
    connection.close()
    return counted[0]


def test_a_pause_costs_the_same_however_long_its_run_is(tmp_path: Path) -> None:
    def made(rows: int) -> Path:
        path = tmp_path / f"{rows}.db"

        async def go() -> None:
            ledger = on_file(path, keys=KEYS)
            taken = [CallTaken(iteration=1, call_id=f"c{i}", tool_name="t") for i in range(rows)]
            entries = [Entry(position=i, time=i, fact=fact) for i, fact in enumerate(taken, 1)]
            await ledger.append(batch("run", *entries, opening("p", rows + 1), body="p"))
            await ledger.close()

        run(go())
        return path

    few, many = steps(made(10)), steps(made(3000))
    assert many < few + 100

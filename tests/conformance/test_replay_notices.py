"""A fact that counts something and was altered is noticed where it stands."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.play import play
from conformance.reading import OPEN, read_directory
from footprint_core import ProviderError
from footprint_core.providers import call, reply
from footprint_observe import Redaction, SqliteLedger
from footprint_observe.query.replay import Replay, replay
from story import answered, describe, run
from unguarded import altered, cut_off, fields_of, unguarded

CALL = ("iteration", "call_id")
COUNTED: dict[str, tuple[str, ...]] = {
    "run.configured": ("turn_index", "resumed"),
    "message.taken": ("turn_index", "message_chars"),
    "window.visited": ("iteration", "removed", "removed_messages", "dropped_observations"),
    "model.asked": ("iteration", "messages", "new_messages", "first", "message_chars"),
    "model.replied": ("iteration", "call_count"),
    "model.failed": ("iteration",),
    "decision": ("iteration",),
    "call.taken": (*CALL, "parallel_count"),
    "permission.checked": CALL,
    "check-in.asked": CALL,
    "check-in.answered": CALL,
    "credential.requested": CALL,
    "credential.acquired": CALL,
    "tool.intended": CALL,
    "tool.finished": CALL,
    "call.answered": (*CALL, "status", "executed"),
    "pause.opened": CALL,
    "pause.answered": ("pause_id", "pause_kind", "call_id"),
    "iteration.ended": ("iteration", "call_count"),
    "output.judged": ("iteration", "attempt"),
    "route.taken": ("iteration",),
    "budget.exhausted": ("iteration", "pending_tool_calls"),
    "run.recovered": ("finished", "in_doubt"),
    "segment.ended": ("outcome", "iterations", "input_tokens", "output_tokens"),
}
"""The fields that follow from the facts before them, by kind."""

EACH = 10**9 if os.environ.get("FOOTPRINT_FULL") else 6
"""How many facts of a kind are altered in each of its fields."""

WORDS: dict[str, tuple[str, ...]] = {
    "status": ("ran", "failed", "denied", "invalid", "unknown", "blocked", "cancelled"),
    "outcome": ("paused",),
    "pause_kind": ("human", "ask"),
}
"""What a word could be instead."""


def others(field: str, value: Any) -> Iterator[Any]:
    """What the field could say instead."""
    if field in WORDS:
        yield from (word for word in WORDS[field] if word != value)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1 if value > 1 else value + 2)
    elif isinstance(value, list):
        if value:
            yield value[:-1]
        yield [*value, *([max(value) + 1] if value and isinstance(value[0], int) else ["another"])]
    else:
        yield f"{value}-"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every scenario on one file, which nothing guards any more."""
    path = tmp_path_factory.mktemp("recorded") / "l.db"
    ledger = SqliteLedger(path, redact=Redaction.none(), durability="process")
    for case in read_directory(OPEN):
        run(play(case.scenario(), ledger))
    silent, _ = describe([], ledger=ledger)
    with pytest.raises(ProviderError):
        run(silent.build().run("go"))
    recover_one(ledger)
    run(ledger.close())
    return path


def recover_one(ledger: SqliteLedger) -> None:
    """A run whose process died in the second of two tools, and that went on."""

    def look(number: int) -> int:
        return number

    calls = [call("a", "look", {"number": 1}), call("b", "look", {"number": 2})]
    first, _ = describe([reply(calls=calls), reply(text="done")], look, ledger=ledger)
    run_id = answered(run(first.build().run("go"))).run_id
    with unguarded(ledger.path) as connection:
        last = "SELECT max(position) FROM facts WHERE run_id = ? AND kind = 'tool.intended'"
        cut_off(connection, run_id, connection.execute(last, (run_id,)).fetchone()[0])
    second, _ = describe([reply(text="done")], look, ledger=ledger)
    answered(run(second.build().recover(run_id)))


def facts_of(connection: sqlite3.Connection, kind: str) -> list[tuple[int, str, int]]:
    """Id, run and position of the facts of a kind, spread over the file."""
    found = connection.execute("SELECT id, run_id, position FROM facts WHERE kind = ? ORDER BY id", (kind,))
    facts = found.fetchall()
    return facts[:: max(1, len(facts) // EACH)]


def holds_text(connection: sqlite3.Connection, fact_id: int) -> bool:
    held = connection.execute("SELECT count(*) FROM vals WHERE fact_id = ? AND field = 'text'", (fact_id,))
    return bool(held.fetchone()[0])


@pytest.mark.parametrize("kind", COUNTED)
def test_what_was_altered_is_noticed_where_it_stands(recorded: Path, kind: str) -> None:
    noticed = dict.fromkeys(COUNTED[kind], 0)
    with unguarded(recorded) as connection:
        for fact_id, run_id, position in facts_of(connection, kind):
            said = fields_of(connection, fact_id)
            for field in COUNTED[kind]:
                value = said.get("tool_call_id" if field == "call_id" else field)
                # The length of a message that was refused is on record, and the message is not.
                if value is None or (kind == "message.taken" and not holds_text(connection, fact_id)):
                    continue
                for other in others(field, value):
                    with altered(connection, fact_id, field, other):
                        found = replay(recorded, run_id)
                    assert_noticed(found, position, f"{kind}.{field}: {value!r} -> {other!r}")
                    noticed[field] += 1
            assert replay(recorded, run_id).matches
    assert all(noticed.values()), noticed


@pytest.mark.parametrize("field", ["position", "segment"])
def test_a_fact_that_was_moved_is_noticed(recorded: Path, field: str) -> None:
    with unguarded(recorded) as connection:
        ends = "SELECT run_id, id, position, segment FROM facts WHERE kind = 'segment.ended' ORDER BY id"
        for run_id, fact_id, position, segment in connection.execute(ends).fetchall()[::7]:
            moved = {"position": position + 1000, "segment": segment + 1}[field]
            with altered(connection, fact_id, field, moved):
                difference = replay(recorded, run_id).difference
            assert difference is not None
            assert difference.what == field


def test_a_row_that_is_no_fact_is_noticed_and_not_quoted(recorded: Path) -> None:
    with unguarded(recorded) as connection:
        asked = "SELECT id, run_id, position FROM facts WHERE kind = 'model.asked' ORDER BY id LIMIT 1"
        fact_id, run_id, position = connection.execute(asked).fetchone()
        for field, other in (("kind", "a secret"), ("messages", "a secret")):
            with altered(connection, fact_id, field, other):
                found = replay(recorded, run_id)
            assert_noticed(found, position, field)
            assert "a secret" not in repr(found)


def assert_noticed(found: Replay, position: int, what: str) -> None:
    assert found.difference is not None, what
    assert found.difference.position == position, (what, found.difference)

"""A digest over values that is written anywhere is salted or keyed, and its salt can be erased with them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from asked import DONE, YES, Till, asks, pays, until_asked
from file_ledger import on_file, select
from footprint_core import AskPause, approve_once, plain
from footprint_core.facts import PauseOpened
from footprint_core.pause.checkpoint import digest
from story import answered, run

AMOUNT = 4711
ARGS = {"amount": AMOUNT}


def opened(ledger: Any, run_id: str) -> PauseOpened:
    (fact,) = [entry.fact for entry in ledger.entries(run_id) if isinstance(entry.fact, PauseOpened)]
    return fact


def dump(path: Path, *tables: str) -> str:
    """Every table and view of a file, or some of them; bytes as hex."""
    named = tables or [
        name for (name,) in select(path, "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
    ]
    cells = [cell for name in named for row in select(path, f'SELECT * FROM "{name}"') for cell in row]
    return "\n".join(cell.hex() if isinstance(cell, bytes) else str(cell) for cell in cells)


async def two_alike(path: Path, **options: Any) -> tuple[Any, AskPause, AskPause]:
    """Two runs that differ in nothing but their ids; each asks about the same call."""
    till = Till(on_file(path))
    agent = till.agent([*pays(AMOUNT), *pays(AMOUNT)], [asks()], **options)
    pauses: list[Any] = []
    for _ in range(2):
        pauses.append(await until_asked(agent))
        answered(await agent.resume(pauses[-1].checkpoint, YES))
    return till.ledger, pauses[0], pauses[1]


@pytest.mark.parametrize("options", [{}, {"checkpoint_key": b"k" * 16}], ids=["unsigned", "signed"])
def test_two_pauses_about_equal_args_share_neither_digest_nor_salt(tmp_path: Path, options: Any) -> None:
    path = tmp_path / "l.db"
    ledger, one, two = run(two_alike(path, **options))
    first, second = opened(ledger, one.run_id), opened(ledger, two.run_id)
    assert one.checkpoint["call"]["args"] == two.checkpoint["call"]["args"] == ARGS
    assert (first.salt, first.digest) == (one.checkpoint["salt"], one.checkpoint["digest"])
    assert len({first.digest, second.digest, first.salt, second.salt}) == 4
    assert len(bytes.fromhex(str(first.salt))) == 16
    run(ledger.close())


def test_a_digest_says_nothing_of_equal_args_without_its_salt(tmp_path: Path) -> None:
    ledger, one, two = run(two_alike(tmp_path / "l.db"))
    first, second = opened(ledger, one.run_id), opened(ledger, two.run_id)
    # What is digested is all of the checkpoint; the same under the salt of the other has another digest.
    assert digest(str(first.salt), one.checkpoint) == first.digest
    assert digest(str(second.salt), one.checkpoint) not in {first.digest, second.digest}
    run(ledger.close())


def test_salt_and_digest_of_a_pause_stand_only_where_values_can_be_erased(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger, one, _ = run(two_alike(path))
    fact = opened(ledger, one.run_id)
    rows = dump(path, "facts")
    assert str(fact.salt) not in rows
    assert str(fact.digest) not in rows
    where = "SELECT v.field FROM vals AS v JOIN facts AS f ON f.id = v.fact_id WHERE f.kind = 'pause.opened'"
    assert sorted(select(path, where)) == [("digest",), ("digest",), ("salt",), ("salt",)]
    run(ledger.close())


def test_commitments_to_equal_values_differ_and_their_salts_go_with_the_values(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger, _, _ = run(two_alike(path))
    run(ledger.close())
    about = "SELECT f.commitments, v.json, v.salt, f.id FROM facts AS f JOIN vals AS v ON v.fact_id = f.id "
    rows = select(path, about + "WHERE f.kind = 'tool.intended' AND v.field = 'args' ORDER BY f.id")
    (first, of_first, salt, at), (second, of_second, other, _) = rows
    assert json.loads(of_first) == json.loads(of_second) == ARGS
    assert json.loads(first)["args"] != json.loads(second)["args"]
    assert (len(salt), salt != other) == (16, True)
    salts = [found for (found,) in select(path, "SELECT salt FROM vals")]
    assert len(set(salts)) == len(salts) > 10
    # A salt is in the row of its value and nowhere else, so erasing the one erases the other.
    assert dump(path).count(salt.hex()) == 1
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER vals_no_delete")
    connection.execute("DELETE FROM vals WHERE fact_id = ? AND field = 'args'", (at,))
    connection.commit()
    connection.close()
    assert salt.hex() not in dump(path)


def test_no_digest_of_a_value_can_be_made_from_the_value_alone(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    rule = approve_once()
    till = Till(on_file(path))
    agent = till.agent([*pays(AMOUNT)], [rule])
    pause = run(until_asked(agent))
    answered(run(agent.resume(pause.checkpoint, YES)))
    run(till.ledger.close())
    found = dump(path) + json.dumps({**pause.checkpoint, "rows": []}) + json.dumps(pause.detail)
    call = [None, "pay", ARGS, None]
    forms = {
        form
        for value in (ARGS, AMOUNT, call, call[1:3], str(AMOUNT), {"paid": AMOUNT}, "go", "done")
        for form in (plain.canonical(value), plain.encode(value), str(value).encode(), repr(value).encode())
    }
    for name in sorted(hashlib.algorithms_guaranteed - {"shake_128", "shake_256"}):
        for form in forms:
            assert hashlib.new(name, form).hexdigest() not in found
    for size in (8, 16, 32):
        assert not [form for form in forms if hashlib.blake2b(form, digest_size=size).hexdigest() in found]


def test_a_key_of_approve_once_is_made_under_a_secret_of_the_object(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    keys: list[str] = []

    async def story() -> None:
        rules = [approve_once(), approve_once()]
        till = Till(on_file(path))
        for rule in (*rules, rules[0]):
            pause = await until_asked(till.agent([*pays(AMOUNT), DONE], [rule]))
            keys.append(pause.detail["key"])
        rules[0].forget()
        keys.append((await until_asked(till.agent(pays(AMOUNT), [rules[0]]))).detail["key"])
        await till.ledger.close()

    run(story())
    first, of_another, of_the_same, once_forgotten = keys
    assert first == of_the_same
    assert len({first, of_another, once_forgotten}) == 3
    # The row shows the key, among the values that can be erased.
    assert first in dump(path, "vals")
    assert first not in dump(path, "facts")

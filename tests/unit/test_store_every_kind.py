"""Every kind of fact is kept and comes back, and no credential planted in any of its values is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from footprint_core.facts import Fact, ModelAsked, ModelReplied, PauseOpened, ToolFinished
from footprint_core.ledger import Batch, Entry
from footprint_core.messages import ToolCall
from footprint_observe.redaction.policy import Redaction
from footprint_observe.store.ledger import SqliteLedger
from samples import FULL, TRACE


def kind_of(fact: Fact) -> str:
    return str(fact.__struct_config__.tag)


def at_defaults(fact: Fact) -> Fact:
    """The same fact with only what it cannot be without; None where the type allows it."""
    cls = type(fact)
    required = {
        field.name: getattr(fact, field.name)
        for field in msgspec.structs.fields(cls)
        if field.default is msgspec.NODEFAULT
    }
    if cls is ModelAsked:
        required["server"] = None
    return cls(**required)


def batch(run_id: str, *facts: Fact, first: int = 1) -> Batch:
    entries = tuple(
        Entry(position=place, time=1_700_000_000_123_456 + place, fact=fact)
        for place, fact in enumerate(facts, first)
    )
    return Batch(run_id=run_id, segment=1, entries=entries, trace=TRACE)


def test_the_samples_hold_every_kind_with_every_field_set_to_something_unusual() -> None:
    assert [type(fact) for fact in FULL] == list(get_args(Fact))
    for fact in FULL:
        for field in msgspec.structs.fields(type(fact)):
            assert getattr(fact, field.name) != field.default, (kind_of(fact), field.name)


def same_to_the_type(one: object, other: object) -> bool:
    """Equal, and `1` is not `1.0` or `True`, and keys are in the same order."""
    return one == other and repr(one) == repr(other)


@pytest.mark.parametrize("fact", [*FULL, *map(at_defaults, FULL)], ids=kind_of)
def test_a_fact_comes_back_exactly_as_it_was(tmp_path: Path, fact: Fact) -> None:
    ledger = SqliteLedger(tmp_path / "l.db", redact=Redaction.none())
    receipt = ledger.append_inline(batch("r" * 32, fact))
    assert receipt is not None
    assert receipt.entries[0].fact is fact
    (entry,) = ledger.entries("r" * 32)
    assert same_to_the_type(entry.fact, fact)
    assert entry == receipt.entries[0]
    asyncio.run(ledger.close())


def test_a_value_that_is_empty_is_not_a_value_that_is_absent(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db", redact=Redaction.none())
    values: list[Any] = [None, "", 0, False, [], {}, msgspec.UNSET]
    facts = tuple(
        ToolFinished(iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result=value)
        for value in values
    )
    ledger.append_inline(batch("r" * 32, *facts))
    assert [entry.fact for entry in ledger.entries("r" * 32)] == list(facts)
    asyncio.run(ledger.close())


TOKENS = (
    "ghp_" + "a1B2" * 9,
    "sk-ant-api03-" + "Zx9_" * 8,
    "AKIA" + "ABCD1234EFGH5678",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6y",
)
PLAIN = "correct-horse-battery-staple"


def planted(token: str) -> Any:
    """A value that holds a credential in every form a value can."""
    return {
        "note": f"use {token} now",
        "deep": [{"password": PLAIN, "n": [f"x={token}"]}],
        "text": '{"client_secret": "' + PLAIN + '", "more": "{\\"apiKey\\": \\"' + PLAIN + '\\"}"}',
        token: "a key",
        "pin": {"sessionKey": 8_675_309_123_456},
    }


@pytest.mark.parametrize("token", TOKENS)
def test_a_credential_planted_in_any_value_of_any_kind_is_in_no_file(tmp_path: Path, token: str) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    facts: list[Fact] = []
    for fact in FULL:
        values = {name: planted(token) for name in type(fact).values}
        if isinstance(fact, ModelReplied):
            args = '{"token": "' + PLAIN + '", "note": "' + token + '"}'
            values["calls"] = (ToolCall(id="c", name=f"n {token}", args_json=args, repeats=f"r {token}"),)
        if isinstance(fact, PauseOpened):
            values = {}
        facts.append(msgspec.structs.replace(fact, **values))
    receipt = ledger.append_inline(batch("r" * 32, *facts))
    assert receipt is not None

    for secret in (token, PLAIN, "8675309123456"):
        # While it is open, so that the log is there too.
        names = [path.name for path in tmp_path.iterdir()]
        assert "l.db-wal" in names
        for path in tmp_path.iterdir():
            assert secret.encode() not in path.read_bytes(), path.name
        assert secret not in repr(receipt)
    for entry in receipt.entries:
        expected = bool(type(entry.fact).values) and not isinstance(entry.fact, PauseOpened)
        assert (entry.position in receipt.marks) is expected
    kept = [entry for entry in receipt.entries if isinstance(entry.fact, PauseOpened)]
    assert isinstance(kept[0].fact, PauseOpened)
    assert kept[0].fact.digest == "cd" * 32
    marked = [
        msgspec.structs.replace(entry, marks=receipt.marks.get(entry.position, ()))
        for entry in receipt.entries
    ]
    assert list(ledger.entries("r" * 32)) == marked

    asyncio.run(ledger.close())
    for path in tmp_path.iterdir():
        assert token.encode() not in path.read_bytes(), path.name

"""Values under erasable paths are rows of their own, come back where they were, and go alone."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from erasing import Erasing
from file_ledger import file_bytes, select
from footprint_core.errors import LedgerReadError
from footprint_core.facts import Decided, Fact, ModelReplied, ToolFinished, ToolIntended
from footprint_core.ledger import Batch, Entry
from footprint_core.messages import ToolCall
from footprint_observe.redaction.policy import Redaction
from footprint_observe.store.hashing import disclosure_digest
from footprint_observe.store.ledger import SqliteLedger
from samples import FULL


def intended(args: object) -> ToolIntended:
    return ToolIntended(iteration=1, call_id="c", tool_name="t", args=args)


def finished(result: object) -> ToolFinished:
    return ToolFinished(iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result=result)


def replied(*args_json: str) -> ModelReplied:
    calls = tuple(ToolCall(id=f"c{at}", name="t", args_json=text) for at, text in enumerate(args_json))
    return ModelReplied(
        iteration=1,
        call_count=len(calls),
        stop_reason="tool_use",
        duration_us=1,
        route="tool-calls",
        calls=calls,
    )


def kept(path: Path, facts: Sequence[Fact], redactor: Erasing) -> tuple[Entry, ...]:
    """What is read back of facts, which is what the receipt said of them."""
    ledger = SqliteLedger(path, redact=redactor, durability="process")
    entries = tuple(Entry(position=at, time=at, fact=fact) for at, fact in enumerate(facts, 1))
    receipt = ledger.append_inline(Batch(run_id="run", segment=1, entries=entries))
    found = ledger.entries("run")
    asyncio.run(ledger.close())
    assert receipt is not None
    assert [entry.fact for entry in found] == [entry.fact for entry in receipt.entries]
    return found


def without(path: Path, *fields: str) -> list[Entry]:
    """What is read back when the values of some fields and paths are not in the file any more."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP TRIGGER vals_no_delete")
    for field in fields:
        assert connection.execute("DELETE FROM vals WHERE field = ?", (field,)).rowcount == 1, field
    connection.close()
    ledger = SqliteLedger(path)
    found = ledger.entries("run")
    asyncio.run(ledger.close())
    return list(found)


def vals(path: Path) -> dict[str, str]:
    return dict(select(path, "SELECT field, json FROM vals"))


def test_a_value_under_a_declared_path_is_in_a_row_of_its_own_and_nowhere_else(tmp_path: Path) -> None:
    fact = intended({"a": 1, "customer": {"name": "Ada", "ssn": "123-45-6789"}, "z": 2})
    (entry,) = kept(tmp_path / "l.db", [fact], Erasing("args.customer.ssn"))
    assert entry.fact == fact
    assert entry.marks == ()
    found = vals(tmp_path / "l.db")
    assert found["args.customer.ssn"] == '"123-45-6789"'
    assert "123-45-6789" not in found["args"]
    assert list(json.loads(found["args"])["customer"]) == ["name", "ssn"]
    assert select(tmp_path / "l.db", "SELECT run_id, kind, field, path, value FROM disclosures") == [
        ("run", "tool.intended", "args", "args.customer.ssn", '"123-45-6789"')
    ]


def test_the_row_commits_to_it_by_the_digest_of_its_disclosure(tmp_path: Path) -> None:
    facts = [intended({"customer": {"ssn": "1"}, "cards": [{"n": 1}, [2, 3]]})]
    kept(tmp_path / "l.db", facts, Erasing("args.customer.ssn", "args.cards.1.0"))
    ((text,),) = select(tmp_path / "l.db", "SELECT commitments FROM facts")
    committed = json.loads(text)
    assert set(committed) == {"args", "args.customer.ssn", "args.cards.1.0"}
    salts = dict(select(tmp_path / "l.db", "SELECT field, salt FROM vals"))
    assert committed["args.customer.ssn"] == disclosure_digest(salts["args.customer.ssn"], "ssn", '"1"')
    assert committed["args.cards.1.0"] == disclosure_digest(salts["args.cards.1.0"], None, "2")
    held = json.loads(vals(tmp_path / "l.db")["args"])
    assert held["customer"] == {"ssn": {"...": committed["args.customer.ssn"]}}
    assert held["cards"] == [{"n": 1}, [{"...": committed["args.cards.1.0"]}, 3]]


@pytest.mark.parametrize(
    ("key", "between"), [("family_name", ',"family_name",'), ('a"b', ',"a\\"b",'), (None, ",")]
)
def test_a_digest_is_that_of_an_sd_jwt_disclosure(key: str | None, between: str) -> None:
    salt = bytes(range(16))

    def base64url(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    disclosure = base64url(f'["{base64url(salt)}"{between}"Möbius"]'.encode())
    expected = base64url(hashlib.sha256(disclosure.encode("ascii")).digest())
    assert disclosure_digest(salt, key, '"Möbius"') == expected


@pytest.mark.parametrize(
    ("declared", "paths"),
    [
        ("args.**.card", {"args.card", "args.items.0.card", "args.items.2.card"}),
        ("args.items.*.card", {"args.items.0.card", "args.items.2.card"}),
        ("args.items.card", {"args.items.0.card", "args.items.2.card"}),
        ("args.items.2.card", {"args.items.2.card"}),
        ("args.items.*", {"args.items.0", "args.items.1", "args.items.2"}),
        ("**.card", {"args.card", "args.items.0.card", "args.items.2.card"}),
        ("args.none", set[str]()),
        ("args", set[str]()),
        ("result.card", set[str]()),
    ],
)
def test_a_declared_path_stands_for_the_places_it_meets(
    tmp_path: Path, declared: str, paths: set[str]
) -> None:
    fact = intended({"card": None, "items": [{"card": 1}, {"x": 2}, {"card": {"n": 3}}]})
    (entry,) = kept(tmp_path / "l.db", [fact], Erasing(declared))
    assert entry.fact == fact
    assert set(vals(tmp_path / "l.db")) == {"args"} | paths


def test_an_erased_path_is_marked_and_the_rest_is_as_it_was(tmp_path: Path) -> None:
    fact = intended({"a": 1, "customer": {"ssn": "1", "name": "Ada"}})
    kept(tmp_path / "l.db", [fact], Erasing("args.customer.ssn"))
    (entry,) = without(tmp_path / "l.db", "args.customer.ssn")
    assert entry.fact == intended({"a": 1, "customer": {"ssn": "[redacted]", "name": "Ada"}})
    assert entry.marks == (("args.customer.ssn", "erased"),)


def test_a_path_within_another_goes_alone_or_with_it(tmp_path: Path) -> None:
    fact = intended({"customer": {"ssn": "1", "name": "Ada"}})
    paths = ("args.customer", "args.customer.ssn")
    for name, gone, left in (
        ("none", (), {"ssn": "1", "name": "Ada"}),
        ("inner", ("args.customer.ssn",), {"ssn": "[redacted]", "name": "Ada"}),
        ("outer", ("args.customer",), "[redacted]"),
        ("both", paths, "[redacted]"),
    ):
        file = tmp_path / f"{name}.db"
        (entry,) = kept(file, [fact], Erasing(*paths))
        assert entry.fact == fact
        found = vals(file)
        assert set(found) == {"args", *paths}
        assert '"1"' not in found["args"] + found["args.customer"]
        (entry,) = without(file, *gone)
        assert entry.fact == intended({"customer": left})
        assert {path for path, _ in entry.marks} == set(gone)


def test_a_whole_value_that_is_erased_takes_its_places_with_it(tmp_path: Path) -> None:
    kept(tmp_path / "l.db", [intended({"card": 1})], Erasing("args.card"))
    (entry,) = without(tmp_path / "l.db", "args")
    assert entry.marks == (("args", "erased"),)
    assert entry.fact == ToolIntended(iteration=1, call_id="c", tool_name="t")


def test_data_that_looks_like_a_placeholder_is_data(tmp_path: Path) -> None:
    facts = [intended({"a": {"...": "x"}, "card": {"...": "y"}, "b": {"...": "x", "card": {"...": 1}}})]
    assert kept(tmp_path / "l.db", facts, Erasing("args.**.card"))[0].fact == facts[0]


@pytest.mark.parametrize(
    "key",
    [
        "a.b",
        "a\\.b",
        "\\",
        "",
        ".",
        "\x00",
        "\n",
        "\x7f",
        '"',
        "é\u2028",
        "\U0001f600",
        "0",
        "...",
        "\\x00",
        "'",
    ],
)
def test_any_key_can_be_on_the_way(tmp_path: Path, key: str) -> None:
    fact = intended({"m": {key: {"card": 1, key: 2}, "a": {"b": {"card": 3}}, "x": {"card": 4}}})
    (entry,) = kept(tmp_path / "l.db", [fact], Erasing("args.**.card", "args.m.*.*"))
    assert entry.fact == fact
    assert len(vals(tmp_path / "l.db")) == 6


@pytest.mark.parametrize(
    "text",
    [
        '{"card":1,"a":2}',
        ' {\n "a" : [ 1.0, 1e2 ], "card"\t: { "x" : "\\u00e9\\/" } , "z":-0 }\n',
        '{"items":[{"card":"a"},{"card":"b"}],"card":"\\ud800"}',
        '{"c\\u0061rd":"escaped key"}',
        '{"a":"{\\"card\\":1}"}',
        '{"card":{"card":{"card":1}}}',
        '[{"card":1}]',
    ],
)
def test_what_the_model_asked_for_comes_back_byte_for_byte(tmp_path: Path, text: str) -> None:
    fact = replied(text, '{"a":1}')
    (entry,) = kept(tmp_path / "l.db", [fact], Erasing("args.**.card"))
    assert entry.fact == fact
    found = vals(tmp_path / "l.db")
    assert len(found) > 1
    assert all(path == "calls" or path.startswith("calls.0.args.") for path in found)
    assert '{\\"...\\":' in found["calls"]


def test_arguments_in_which_places_cannot_be_told_are_cut_as_a_whole(tmp_path: Path) -> None:
    texts = ('{"card": 1, "card": 2}', '{"card": 12', "", '{"a": NaN, "card": 1}', "{}{}", "[" * 100_000)
    fact = replied(*texts)
    (entry,) = kept(tmp_path / "l.db", [fact], Erasing("args.card"))
    assert entry.fact == fact
    found = vals(tmp_path / "l.db")
    assert [json.loads(found[f"calls.{at}.args"]) for at in range(len(texts))] == list(texts)
    (entry,) = without(tmp_path / "l.db", "calls.0.args")
    assert isinstance(entry.fact, ModelReplied)
    assert [call.args_json for call in entry.fact.calls] == ['"[redacted]"', *texts[1:]]


def test_arguments_are_cut_as_a_whole_where_all_of_them_are_erasable(tmp_path: Path) -> None:
    fact = replied('{"card": 1}')
    (entry,) = kept(tmp_path / "l.db", [fact, intended({"card": 1})], Erasing("args", "args.card"))[:1]
    assert entry.fact == fact
    assert set(vals(tmp_path / "l.db")) == {"args", "args.card", "calls", "calls.0.args", "calls.0.args.card"}
    (entry, _) = without(tmp_path / "l.db", "calls.0.args.card")
    assert isinstance(entry.fact, ModelReplied)
    assert entry.fact.calls[0].args == {"card": "[redacted]"}


@pytest.mark.parametrize(
    ("result", "paths"),
    [
        ('{"card": "1",  "a": 2}', {"result.card"}),
        ({"in": '{"card": "1"}'}, {"result.in.card"}),
        # Within a text of a text, and where a key stands twice: the nearest whole above it.
        ({"in": '{"x": "{\\"card\\": 1}"}'}, {"result.in.x"}),
        ({"in": '{"card": 1, "card": 2}'}, {"result.in"}),
        ({"in": '{"x": {"card": 1, "card": 2}}'}, {"result.in.x"}),
        ('{"card": 1, "card": 2}', set[str]()),
        ("[note] no card", set[str]()),
        ({"in": "{card}"}, set[str]()),
        ('{"x":' * 800 + '{"card":1}' + "}" * 800, None),
    ],
)
def test_a_step_into_a_text_goes_into_the_json_in_it(
    tmp_path: Path, result: Any, paths: set[str] | None
) -> None:
    fact = finished(result)
    (entry,) = kept(tmp_path / "l.db", [fact], Erasing("result.**.card"))
    assert entry.fact == fact
    found = set(vals(tmp_path / "l.db")) - {"result"}
    assert len(found) == 1 if paths is None else found == paths


def test_what_was_redacted_before_is_what_is_cut_out(tmp_path: Path) -> None:
    redactor = Erasing("args.token", "args.card", redactor=Redaction.standard())
    (entry,) = kept(tmp_path / "l.db", [intended({"token": "correct horse", "card": 1})], redactor)
    assert entry.fact == intended({"token": "[redacted]", "card": 1})
    assert entry.marks == (("args.token", "mask"),)
    assert vals(tmp_path / "l.db")["args.token"] == '"[redacted]"'
    assert b"correct horse" not in file_bytes(tmp_path / "l.db")


def test_facts_of_every_kind_come_back_whatever_is_declared(tmp_path: Path) -> None:
    declared = Erasing("**.alpha", "**.zulu", "**.zulu.3", "args.b", "**")
    assert [entry.fact for entry in kept(tmp_path / "l.db", FULL, declared)] == list(FULL)


def test_decision_rows_have_their_values_put_back(tmp_path: Path) -> None:
    fact = Decided(
        middleware="m", moment="before-tool", iteration=1, outcome="allow", changed=True, why="w",
        before={"card": 1}, after={"card": 2},
    )  # fmt: skip
    kept(tmp_path / "l.db", [fact], Erasing("**.card"))
    ledger = SqliteLedger(tmp_path / "l.db")
    (row,) = ledger.decisions("run")
    asyncio.run(ledger.close())
    assert (row.before, row.after) == ({"card": 1}, {"card": 2})


def test_a_row_without_the_placeholder_it_commits_to_is_refused_by_name(tmp_path: Path) -> None:
    kept(tmp_path / "l.db", [intended({"card": "SECRET"})], Erasing("args.card"))
    connection = sqlite3.connect(tmp_path / "l.db", isolation_level=None)
    connection.execute("DROP TRIGGER vals_no_update")
    connection.execute('UPDATE vals SET json = \'{"card":{"...":"x"}}\' WHERE field = \'args\'')
    connection.close()
    ledger = SqliteLedger(tmp_path / "l.db")
    with pytest.raises(LedgerReadError, match="row 1 cannot be read") as caught:
        ledger.entries("run")
    assert "SECRET" not in repr(caught.value.__context__)
    asyncio.run(ledger.close())

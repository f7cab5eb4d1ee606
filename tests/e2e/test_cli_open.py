"""`footprint open`: what was sealed is shown to whoever has the key, and to nobody else."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from file_ledger import file_bytes, select
from footprint_core import ToolResultContext, ToolResultOutcome, after_tool, allow
from footprint_core.providers import call, reply
from footprint_observe import KeyRing, Redaction, Rule, SqliteLedger
from footprint_observe.cli import main
from footprint_observe.query.sealed import sealed
from story import answered, describe, run

SECRET = b"\x07" * 32
RING = KeyRing.of({"k1": SECRET})
CARD = "4111-1111-1111-1111"
POLICY = Redaction.of(
    rules=[Rule(path="**.card", strategy="seal"), Rule(path="**.customer", strategy="seal")], keys=RING
)
RESULT = {"customer": {"name": "Ada", "n": 1}, "ok": True}


@after_tool("strip")
def strip(call: ToolResultContext) -> ToolResultOutcome:
    return allow({"ok": True}, why="not for the model")


def charge(card: str) -> dict[str, Any]:
    """Charge."""
    return RESULT


def ledger_of(path: Path) -> str:
    """A file with one run; its id."""
    builder, _ = describe(
        [reply(calls=[call("c1", "charge", {"card": CARD})]), reply(text="done")],
        charge,
        act={"after_tool": [strip]},
        ledger=SqliteLedger(path, redact=POLICY, durability="process"),
    )

    async def go() -> str:
        async with builder.build() as agent:
            return answered(await agent.run("go")).run_id

    return run(go())


def key_file(folder: Path, secret: bytes = SECRET, key_id: str = "k1") -> str:
    path = folder / f"keys-{key_id}-{secret[0]}"
    path.write_text(f"{key_id}:{base64.b64encode(secret).decode()}\n")
    path.chmod(0o600)
    return str(path)


def footprint(path: Path, *words: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(
        main, [*words, "--db", str(path)], env={"COLUMNS": "300", "FOOTPRINT_KEYS": "", **(env or {})}
    )


def test_the_file_holds_it_sealed_and_the_key_opens_it(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    run_id = ledger_of(path)
    kept = file_bytes(path)
    assert CARD.encode() not in kept
    assert b"Ada" not in kept
    told = footprint(path, "open", run_id[:12], "--keys", key_file(tmp_path), "--json")
    assert told.exit_code == 0, told.output
    found = [json.loads(line) for line in told.stdout.splitlines()]
    assert [(one["kind"], one["field"], one["value"]) for one in found] == [
        ("model.replied", "calls.0.args.card", CARD),
        ("tool.intended", "args.card", CARD),
        ("tool.finished", "result.customer", {"name": "Ada", "n": 1}),
        ("decision", "before.customer", {"name": "Ada", "n": 1}),
    ]
    assert {one["run_id"] for one in found} == {run_id}
    assert found == sealed(path, keys=RING, run=run_id)
    assert CARD.encode() not in file_bytes(path)


def test_the_keys_can_come_from_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger_of(path)
    told = footprint(path, "open", "last", env={"FOOTPRINT_KEYS": f"k1:{base64.b64encode(SECRET).decode()}"})
    assert told.exit_code == 0, told.output
    assert f"args.card: {CARD}" in told.stdout
    assert 'before.customer: {"name":"Ada","n":1}' in told.stdout


def test_one_row_and_one_field_of_it_can_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger_of(path)
    ((row,),) = select(path, "SELECT id FROM facts WHERE kind = 'decision'")
    keys = ["--keys", key_file(tmp_path), "--json"]
    told = footprint(path, "open", "--id", str(row), *keys)
    assert [json.loads(line)["field"] for line in told.stdout.splitlines()] == ["before.customer"]
    below = footprint(path, "open", "last", "--field", "before", *keys)
    assert [json.loads(line)["field"] for line in below.stdout.splitlines()] == ["before.customer"]
    nothing = footprint(path, "open", "last", "--field", "befor", *keys)
    assert nothing.exit_code == 1
    assert "Nothing is sealed there" in nothing.stderr


@pytest.mark.parametrize(
    ("secret", "key_id", "says"),
    [
        (b"\x08" * 32, "k1", "The key 'k1' does not open this"),
        (SECRET, "k2", "The key ring has no key 'k1', only k2"),
    ],
)
def test_a_wrong_key_opens_nothing_and_is_named(
    secret: bytes, key_id: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "l.db"
    ledger_of(path)
    told = footprint(path, "open", "last", "--keys", key_file(tmp_path, secret, key_id))
    assert told.exit_code == 1
    assert says in " ".join(told.stderr.split())
    assert CARD not in told.output


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger_of(path)
    keys = ["--keys", key_file(tmp_path)]
    for words, code, says in (
        (["open", "last"], 2, "give --keys FILE, or set FOOTPRINT_KEYS"),
        (["open", *keys], 2, "Name a run, or one row with --id"),
        (["open", "last", "--id", "1", *keys], 2, "Name a run, or one row with --id"),
        (["open", "none", *keys], 1, "no such run"),
        (["open", "--id", "9999", *keys], 1, "no row of that id"),
        (["open", "last", "--keys", str(tmp_path / "absent")], 2, "cannot be read"),
    ):
        told = footprint(path, *words)
        assert told.exit_code == code, told.output
        assert says in told.stderr

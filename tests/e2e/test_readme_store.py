"""What the README says of the store: its recipes, its commands and its policy."""

from __future__ import annotations

import asyncio
import re
import shlex
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from footprint_core import Agent
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger
from footprint_observe.cli import main

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SQL = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)[0]
RECIPES = dict(re.findall(r"^-- (.*)\n((?:.+\n)+?)(?=--|\Z)", SQL, re.MULTILINE))
COMMANDS = re.findall(r"^(footprint .*?)\s+#", README, re.MULTILINE)
ROWS = {
    "what was refused, and why": 1,
    "what a person decided": 1,
    "what a rule changed, before and after": 3,
    "calls that may have run, and nobody heard of them again": 0,
    "what ran with other arguments than the model asked for": 0,
    "questions that are open": 0,
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "footprint.db"
    done = CliRunner().invoke(main, ["demo", "--approve", "--db", str(path)])
    assert done.exit_code == 0, done.output
    return path


def test_the_readme_has_its_recipes() -> None:
    assert len(RECIPES) == SQL.count("-- ") == 9
    assert set(ROWS) <= set(RECIPES)


@pytest.mark.parametrize("asked", RECIPES)
def test_a_recipe_of_the_readme_gives_what_it_says(asked: str, demo: Path) -> None:
    db = sqlite3.connect(demo)
    rows = db.execute(RECIPES[asked].strip().rstrip(";")).fetchall()
    db.close()
    assert len(rows) == ROWS.get(asked, len(rows) or 1)
    assert asked in ROWS or rows


def test_the_commands_of_the_readme_are_there(demo: Path) -> None:
    assert len(COMMANDS) == 8
    for line in COMMANDS:
        words = shlex.split(line)[1:]
        if words[0] == "tail":
            words += ["--since", "2020-01-01", "--limit", "1"]
        words = [{"CALL": "call_1", "select ...": "select 1 as one"}.get(word, word) for word in words]
        done = CliRunner().invoke(main, [*words, "--db", str(demo)])
        # A question may find nothing in the demonstration; it is understood.
        assert done.exit_code in {0, 1}, (line, done.output)
        assert done.exit_code == 0 or "find" in words or "why" in words, (line, done.output)


def test_the_policy_of_the_readme_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    block = next(one for one in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "Rule(" in one)
    names: dict[str, Any] = {"SqliteLedger": SqliteLedger}
    exec(compile(block, "README.md", "exec"), names)
    args = {
        "note": "ask ada@example.com",
        "customer_id": "c-81",
        "payment": {"card": "4242424242424242"},
        "address": "1 Main St",
        "mail": "bob@example.com",
    }

    async def ship(note: str, customer_id: str, payment: dict[str, str], address: str, mail: str) -> str:
        return "shipped"

    async def once() -> str:
        model = Scripted([reply(calls=[call("c1", "ship", args)]), reply(text="Done.")])
        builder = Agent.create(provider=model, model="m", name="readme").tool(ship)
        async with builder.ledger(names["ledger"]).build() as agent:
            return (await agent.run("ship it")).run_id

    run_id = asyncio.run(once())
    db = sqlite3.connect(tmp_path / "customers.db")
    row = db.execute(
        "select args ->> '$.note', args ->> '$.customer_id', args ->> '$.payment.card', "
        "args ->> '$.address', args ->> '$.mail' from tool_calls"
    ).fetchone()
    kept = db.execute("select value from disclosures where path = 'args.address'").fetchall()
    db.close()
    assert row[0] == "ask ada@example.com"
    assert row[1].startswith("pseudonym:2026:")
    assert row[2].startswith("sealed:2026:")
    assert "..." in row[3]
    assert "bob@example.com" not in row[4]
    assert kept == [('"1 Main St"',)]
    keys = tmp_path / "keys"
    keys.write_text("2026:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
    keys.chmod(0o600)
    asked = ["open", run_id, "--keys", str(keys), "--db", str(tmp_path / "customers.db")]
    opened = CliRunner().invoke(main, asked)
    assert "4242424242424242" in opened.output

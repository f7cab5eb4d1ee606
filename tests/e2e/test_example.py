"""The example of the documentation, run as printed over a scripted model.

`build` and `main` stand here as they are printed. Only the provider is not a vendor's: `Anthropic` is a
scripted model here, which needs no key and no network.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from footprint_core import Agent, Answer, AskPause, check_in_approved, sliding_window
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger
from footprint_observe.demo.refunds import (
    four_eyes,
    issue_refund,
    no_codenames,
    refund_ceiling,
    scrub_ssns,
    strip_pii,
)
from otlp_receiver import OtlpReceiver
from recorders.otel_spans import OtelSpans

ROOT = Path(__file__).resolve().parents[2]


def Anthropic() -> Scripted:  # noqa: N802 - stands where a vendor's class stands
    """The model of the story: it asks for a refund that needs a person, then answers."""
    return Scripted(
        [
            reply(calls=[call("1", "issue_refund", {"order_id": 41, "amount": 250})]),
            reply(text="Project Bluebird refunded order 41."),
        ]
    )


# fmt: off
def build() -> Agent:
    return (
        Agent.create(provider=Anthropic(), model="...", name="refunds")
        .system("You handle refunds.")
        .tool(issue_refund)
        .act(input=[scrub_ssns], before_tool=[refund_ceiling, four_eyes], after_tool=[strip_pii],
             window=sliding_window(keep_recent_turns=12), output=[no_codenames])
        .watch(OtelSpans.to_otlp("http://localhost:4318"))
        .ledger(SqliteLedger("decisions.db"))
        .build()
    )


async def main() -> None:
    async with build() as agent:  # leaving it flushes recorders (bounded) and closes the ledger
        out = await agent.run("Refund order 41")  # or agent.run_sync(...), agent.stream(...)
        while isinstance(out, AskPause):
            out = await agent.resume(out.checkpoint, check_in_approved(by="dana@ops"))
        assert isinstance(out, Answer)
        print(out.text, out.run_id, out.decisions)
# fmt: on


def test_the_example_runs_as_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(main())
    printed = capsys.readouterr().out
    assert "Our refund desk refunded order 41." in printed
    with sqlite3.connect("decisions.db") as db:
        rows = db.execute("select moment, middleware, outcome, changed from decisions order by id").fetchall()
    db.close()
    assert rows == [
        ("input", "scrub-ssns", "allow", 0),
        ("input", "no-codenames", "allow", 0),
        ("before-tool", "refund-ceiling", "allow", 0),
        ("before-tool", "four-eyes", "ask", 0),
        ("before-tool", "four-eyes", "allow", 0),
        ("after-tool", "strip-pii", "allow", 0),
        ("output", "scrub-ssns", "allow", 0),
        ("output", "no-codenames", "allow", 1),
    ]


def _blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def test_the_first_example_of_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(_blocks()[0], "README.md", "exec"), {"__name__": "readme"})
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "Refund $250? {'order_id': 41, 'amount': 250}"
    assert printed[1] == "Refunded."
    assert "before-tool four-eyes allow approved by dana@ops" in printed
    assert "input no-ssns allow masked a number" in printed


def test_the_second_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(_blocks()[1], "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out.splitlines() == [
        "{'account': 'a-7'} {'reversible': False}",
        "{'question': 'Which colour?', 'options': ['red', 'blue']}",
        """['{"closed":"a-7","address":"[address]","for":"ada"}', 'blue']""",
    ]


def test_the_recorder_lines_of_the_readme_ship_spans(tmp_path: Path) -> None:
    with OtlpReceiver() as receiver:
        lines = _blocks()[3].replace("http://localhost:4318", receiver.endpoint)
        model = Scripted([reply(text="hello")])
        builder = Agent.create(provider=model, model="m", name="readme")
        exec(compile(lines, "README.md", "exec"), {"builder": builder})

        async def once() -> Any:
            async with builder.ledger(SqliteLedger(tmp_path / "r.db")).build() as agent:
                return await agent.run("hi")

        asyncio.run(once())
        assert {span.name for span in receiver.wait(2)} == {"invoke_agent readme", "chat m"}


def test_the_readme_has_exactly_two_set_up_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^python3 -m venv .*$", text, re.MULTILINE)
    assert len(commands) == 2
    assert "footprint demo" in commands[0]
    assert "pytest" in commands[1]

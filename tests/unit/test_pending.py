"""`pending` and `footprint pending`: the questions that are open, and on request what they are about."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from asked import DONE, NO, YES, Till, asks, pays, until_asked
from file_ledger import on_file
from footprint_core import LedgerOpenError, StaleDecisionError, ask_human, tool
from footprint_core.mcp import mock_mcp_client
from footprint_core.providers import call, reply
from footprint_observe import KeyRing
from footprint_observe.cli import main
from footprint_observe.query.pending import pending
from footprint_observe.query.refusals import QuestionError
from laws.test_pause_once import Hand, under
from sealed import KEYS, SECRET, abandon, written
from story import answered, run


@tool
def wonders(note: str) -> str:
    """A tool that asks a person."""
    ask_human("Which one?", note=note)


@tool(check_in="always", evidence=lambda args: {"balance": 7})
def wires(amount: int, note: str = "none") -> str:
    """A tool that needs consent."""
    return note


def calling(name: str, **args: Any) -> list[Any]:
    return [reply(calls=[call("c1", name, args)]), DONE]


async def three_kinds(path: Path, keys: KeyRing | None, **asked: Any) -> list[Any]:
    """A file with an open question of every kind, in order."""
    ledger = on_file(path, keys=keys)
    till = Till(ledger)
    bank = mock_mcp_client("bank", [wires]).tools_now()
    agents = (
        till.agent(pays(500), [asks(detail={"limit": 100}, **asked)]),
        till.agent(calling("wires", amount=3), [], *bank),
        till.agent(calling("wonders", note="a or b"), [], wonders),
    )
    pauses = [await until_asked(agent) for agent in agents]
    await ledger.close()
    return pauses


def footprint(*words: str, **env: str) -> Result:
    return CliRunner().invoke(main, ["pending", *words], env={"FOOTPRINT_KEYS": "", "COLUMNS": "200", **env})


def ids(rows: list[Any]) -> list[str]:
    return [row["pause_id"] for row in rows]


def test_every_open_question_is_listed_the_newest_last_without_what_it_is_about(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    pauses = run(three_kinds(path, KEYS, expires_in=3600))
    found = pending(path, now=datetime.now(UTC) + timedelta(hours=2, seconds=30))
    assert ids(found) == [pause.pause_id for pause in pauses]
    assert [row["run_id"] for row in found] == [pause.run_id for pause in pauses]
    assert [(row["kind"], row["tool_name"], row["tool_source"], row["middleware"]) for row in found] == [
        ("ask", "pay", None, "four-eyes"),
        ("check-in", "wires", "bank", None),
        ("human", "wonders", None, None),
    ]
    assert [row["tool_call_id"] for row in found] == ["c0", "c1", "c1"]
    assert [row["expired"] for row in found] == [True, False, False]
    assert [row["expires_at"] is None for row in found] == [False, True, True]
    assert all(2 * 3600 < row["age_seconds"] < 3 * 3600 for row in found)
    assert [row["key_id"] for row in found] == ["k1"] * 3
    assert not {"question", "args", "shown", "problem", "nonce", "body"} & set(found[0])


def test_with_keys_a_question_says_what_the_person_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    pauses = run(three_kinds(path, KEYS))
    found = pending(path, keys=KEYS)
    told = [(row["question"], row["args"], row["shown"], row["problem"]) for row in found]
    assert told == [
        ("Really?", {"amount": 500}, {"limit": 100}, None),
        (None, {"amount": 3, "note": "none"}, {"balance": 7}, None),
        (None, {"note": "a or b"}, {"question": "Which one?", "note": "a or b"}, None),
    ]
    ask, check_in, human = pauses
    assert (ask.question, ask.args, ask.detail) == told[0][:3]
    assert (check_in.args, check_in.evidence) == told[1][1:3]
    assert human.data == told[2][2]


def test_what_cannot_be_opened_says_so_and_the_others_are_opened_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    for keys in (KEYS, None, KeyRing.of({"k2": bytes(32)})):
        ledger = on_file(path, keys=keys)
        run(until_asked(Till(ledger).agent(pays(500), [asks()])))
        run(ledger.close())
    found = pending(path, keys=KEYS)
    assert [row["key_id"] for row in found] == ["k1", None, "k2"]
    assert [row["args"] for row in found] == [{"amount": 500}, None, None]
    assert found[0]["problem"] is None
    assert found[1]["problem"] == "the ledger has no body of it"
    assert "'k2'" in found[2]["problem"]


def test_an_answered_a_closed_and_an_abandoned_question_are_open_no_more(tmp_path: Path) -> None:
    path, clock = tmp_path / "l.db", Hand()
    ledger = on_file(path, keys=KEYS)
    till = Till(ledger)
    rules = [asks(expires_in=60)]
    sessions = [under(clock, till.agent([pays(500)[0], DONE], rules)) for _ in range(4)]
    answers, expires, is_abandoned, stays = [run(until_asked(session)) for session in sessions]
    answered(run(sessions[0].resume(pause_id=answers.pause_id, answer=NO)))
    abandon(ledger, is_abandoned)
    clock.move(61)
    with pytest.raises(StaleDecisionError):
        run(sessions[1].resume(pause_id=expires.pause_id, answer=YES))
    assert ids(pending(path)) == [stays.pause_id]
    run(ledger.close())


def test_the_filters_say_which_questions_are_meant(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    one, two, three = [pause.pause_id for pause in run(three_kinds(path, KEYS))]
    assert ids(pending(path, rule="four-eyes")) == [one]
    assert ids(pending(path, tool="wires")) == [two]
    assert ids(pending(path, source="bank")) == [two]
    assert ids(pending(path, tool="wires", rule="four-eyes")) == []
    assert ids(pending(path, limit=2)) == [two, three]
    assert ids(pending(path, since="1h", until="2100-01-01")) == [one, two, three]
    assert ids(pending(path, until="1h")) == []
    assert ids(pending(path, since="2100-01-01")) == []
    with pytest.raises(QuestionError):
        pending(path, since="soon")


def test_the_command_lists_them_and_shows_nothing_that_is_sealed_unless_it_is_told_to(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    pauses = run(three_kinds(path, KEYS, expires_in=0.000001))
    db = ("--db", str(path))
    listed = footprint(*db, FOOTPRINT_KEYS=written())
    assert listed.exit_code == 0
    lines = listed.output.splitlines()
    assert [line.split()[0] for line in lines[::2]] == [pause.pause_id for pause in pauses]
    assert lines[0].endswith("ask of four-eyes about pay")
    assert lines[2].endswith("check-in about wires (bank)")
    assert lines[1].endswith("expired")
    assert f"run {pauses[0].run_id[:16]}, opened 20" in lines[1]
    assert "second" in lines[3]
    for sealed in ("Really?", "amount", "limit", "balance", "Which one?"):
        assert sealed not in listed.output
    shown = footprint(*db, "--show", FOOTPRINT_KEYS=written())
    assert shown.exit_code == 0
    for sealed in ("question: Really?", 'args: {"amount":500}', 'shown: {"limit":100}', '{"balance":7}'):
        assert sealed in shown.output


def test_the_command_prints_json_and_takes_its_keys_from_a_file(tmp_path: Path) -> None:
    path, file = tmp_path / "l.db", tmp_path / "keys"
    run(three_kinds(path, KEYS))
    file.write_text(f"# of the desk\n{written()}\n")
    file.chmod(0o600)
    plain = footprint("--db", str(path), "--json")
    assert ids([json.loads(line) for line in plain.output.splitlines()]) == ids(pending(path))
    assert "Really?" not in plain.output
    opened = footprint("--db", str(path), "--json", "--show", "--keys", str(file), "--tool", "pay")
    (row,) = [json.loads(line) for line in opened.output.splitlines()]
    assert (row["question"], row["args"], row["shown"]) == ("Really?", {"amount": 500}, {"limit": 100})


def test_show_without_keys_is_refused_and_a_wrong_key_is_named(tmp_path: Path) -> None:
    path, file = tmp_path / "l.db", tmp_path / "keys"
    run(three_kinds(path, KEYS))
    refused = footprint("--db", str(path), "--show")
    assert refused.exit_code == 2
    assert "FOOTPRINT_KEYS" in refused.output
    missing = footprint("--db", str(path), "--show", "--keys", str(file))
    assert missing.exit_code == 2
    assert "Traceback" not in missing.output
    wrong = footprint("--db", str(path), "--show", FOOTPRINT_KEYS=written(SECRET, key_id="old"))
    assert wrong.exit_code == 1
    assert (
        footprint(
            "--db", str(path), "--show", "--json", FOOTPRINT_KEYS=written(SECRET, key_id="old")
        ).exit_code
        == 1
    )
    assert wrong.output.count("has no key 'k1'") == 3


def test_no_open_question_is_no_failure_and_no_ledger_is_one(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    run(on_file(path).close())
    empty = footprint("--db", str(path))
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert "No question is open." in empty.stderr
    assert footprint("--db", str(path), "--json").output == ""
    assert footprint("--db", str(tmp_path / "none.db")).exit_code == 3
    with pytest.raises(LedgerOpenError):
        pending(tmp_path / "none.db")


def test_what_a_tool_asks_drives_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = on_file(path, keys=KEYS)
    rule = asks(question="\x1b[2J[bold]Pay?\u202e\n", name="loud\x1b[2J")
    run(until_asked(Till(ledger).agent(pays(500), [rule])))
    run(ledger.close())
    shown = footprint("--db", str(path), "--show", FOOTPRINT_KEYS=written())
    assert "\x1b" not in shown.output
    assert "\u202e" not in shown.output
    assert "[bold]Pay?" in shown.output

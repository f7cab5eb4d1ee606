"""What a back-test is given and cannot use: one sentence, exit code 2, and no file that was not there."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from footprint_observe.backtest import TranscriptError, read_transcripts
from footprint_observe.cli import main
from footprint_observe.plugins import recorder_names
from otlp_receiver import OtlpReceiver

MADE_UP = Path(__file__).with_name("conversations.jsonl")
AIRLINE = Path(__file__).parents[2].parent / "shared" / "trajectories" / "airline.jsonl"
RULES = "footprint_observe.backtest.airline:rules"


def backtest(*args: str) -> Result:
    return CliRunner().invoke(main, ["backtest", *args], env={"COLUMNS": "120"})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # The command makes the folder importable; what comes after this test shall not see it.
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


@pytest.mark.parametrize("path", [MADE_UP, AIRLINE], ids=["made-up", "airline"])
def test_a_dropped_message_is_an_error_that_names_conversation_and_line(path: Path, tmp_path: Path) -> None:
    if not path.exists():
        pytest.skip("the recorded airline conversations are not at hand")
    lines = path.read_text(encoding="utf-8").splitlines()
    broken = tmp_path / "broken.jsonl"
    tried = 0
    for number, line in enumerate(lines, 1):
        conversation = json.loads(line)
        messages = conversation["messages"]
        # Behind the last message nothing tells that it was not the last; a system prompt may be absent.
        for at in [at for at in range(len(messages) - 1) if messages[at]["role"] != "system"]:
            dropped = {**conversation, "messages": messages[:at] + messages[at + 1 :]}
            # The line before is sound, so that the number is not always the first.
            broken.write_text("\n".join([lines[0], "", json.dumps(dropped)]), encoding="utf-8")
            with pytest.raises(TranscriptError) as raised:
                read_transcripts(broken)
            assert (raised.value.line, raised.value.conversation) == (3, conversation["id"])
            assert f"Line 3 (conversation {conversation['id']!r}) has a message " in str(raised.value)
            assert "is missing; put it back." in str(raised.value)
            tried += 1
        assert read_transcripts(path)[number - 1].id == conversation["id"]
    assert tried > 40


USER = {"role": "user", "content": "Hello"}


def call(arguments: str = "{}") -> dict[str, Any]:
    function = {"name": "look", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}


def test_the_newer_name_of_the_system_prompt_and_parts_of_text_are_read(tmp_path: Path) -> None:
    def parts(*texts: str) -> list[dict[str, str]]:
        return [{"type": "text", "text": text} for text in texts]

    messages = [
        {"role": "developer", "content": parts("You ", "look.")},
        {"role": "user", "content": parts("Hel", "lo")},
        {**call(), "content": parts("I look.")},
        {"role": "tool", "tool_call_id": "a", "content": parts("1", "2")},
        {"role": "assistant", "content": parts("It is ", "12.")},
    ]
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps({"id": "x", "messages": messages}), encoding="utf-8")
    (read,) = read_transcripts(path)
    assert read.system == "You look."
    (turn,) = read.turns
    assert turn.text == "Hello"
    assert [reply.text for reply in turn.replies] == ["I look.", "It is 12."]
    assert turn.replies[0].calls[0].result == "12"


def test_one_of_anything_is_said_in_the_singular(here: Path) -> None:
    messages = [USER, call(), {"role": "tool", "tool_call_id": "a", "content": "1"}]
    (here / "one.jsonl").write_text(json.dumps({"id": "x", "messages": messages}), encoding="utf-8")
    said = " ".join(backtest("one.jsonl", "--rules", RULES, "--db", "out.db").output.split())
    assert "1 conversation, 1 message of users. 1 call: " in said


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "Line 2 is no JSON;"),
        ("[1]", "Line 2 is no JSON object;"),
        ("[" * 5000, "Line 2 is no JSON;"),
        (json.dumps({"messages": [USER]}), 'Line 2 has no "id"'),
        (json.dumps({"id": " ", "messages": [USER]}), 'Line 2 has no "id"'),
        (json.dumps({"id": "x"}), "Line 2 (conversation 'x') has no \"messages\""),
        (json.dumps({"id": "x", "messages": []}), "Line 2 (conversation 'x') has no \"messages\""),
        (
            json.dumps({"id": "x", "messages": [USER, "hi"]}),
            "a message 2 that is no chat message (see its role)",
        ),
        (json.dumps({"id": "x", "messages": [{"role": "robot"}]}), "a message 1 that is no chat message"),
        (json.dumps({"id": "x", "messages": [{"role": "user"}]}), "no chat message (see its content)"),
        *(
            (json.dumps({"id": "x", "messages": [{**USER, "content": content}]}), "(see its content)")
            for content in (
                [],
                ["Hello"],
                [{"type": "text"}],
                [{"type": "text", "text": 1}],
                [{"type": "text", "text": "Hello"}, {"type": "image_url", "image_url": {"url": "u"}}],
            )
        ),
        (json.dumps({"id": "x", "messages": [{**USER, "content": " \n\x1c"}]}), "is the user's, and empty"),
        (json.dumps({"id": "x", "messages": [{"role": "system", "content": "s"}]}), "no message of a user"),
        (json.dumps({"id": "x", "messages": [USER, {"role": "system", "content": "s"}]}), "put it first"),
        (
            json.dumps({"id": "x", "messages": [USER, {"role": "assistant"}]}),
            "without text and without calls",
        ),
        (json.dumps({"id": "x", "messages": [USER, call("{n: 1}")]}), "a call whose result is missing"),
        (
            json.dumps(
                {
                    "id": "x",
                    "messages": [USER, call("{n: 1}"), {"role": "tool", "tool_call_id": "a", "content": "1"}],
                }
            ),
            "a message 2 that has a call whose arguments are no JSON text; correct them.",
        ),
        (
            json.dumps({"id": "x", "messages": [USER, {"role": "assistant", "tool_calls": [{"id": 7}]}]}),
            "a message 2 that is no chat message (see its tool_calls.0.id)",
        ),
    ],
)
def test_a_line_that_is_no_conversation_is_refused_by_its_number(
    line: str, sentence: str, here: Path
) -> None:
    (here / "bad.jsonl").write_text(
        MADE_UP.read_text(encoding="utf-8").splitlines()[0] + "\n" + line, encoding="utf-8"
    )
    result = backtest("bad.jsonl", "--rules", RULES, "--db", "out.db")
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert_one_sentence(result)
    assert not (here / "out.db").exists()


def assert_one_sentence(result: Result, *, and_cause: bool = False) -> None:
    assert result.stdout == ""
    assert result.stderr.lower().startswith("error: ")
    assert result.stderr.count("\n") == 1 + and_cause
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read (FileNotFoundError)"),
        (b"", "holds no conversation"),
        (b"\n \n", "holds no conversation"),
        (b'{"id": "\xff"}', "Line 1 is no JSON"),
    ],
)
def test_a_file_that_is_missing_empty_or_no_text_is_refused(
    content: bytes | None, sentence: str, here: Path
) -> None:
    if content is not None:
        (here / "bad.jsonl").write_bytes(content)
    result = backtest("bad.jsonl", "--rules", RULES, "--db", "out.db")
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert_one_sentence(result)
    assert not (here / "out.db").exists()


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("airline", "'airline' are not named MODULE:NAME"),
        ("nowhere_at_all:rules", "nowhere_at_all:rules cannot be imported (ModuleNotFoundError)"),
        (".airline:rules", "cannot be imported (TypeError)"),
        (f"{RULES}_too", "cannot be imported (AttributeError)"),
        ("broken_rules:rules", "broken_rules:rules cannot be imported (SyntaxError)"),
        ("leaving_rules:rules", "leaving_rules:rules cannot be imported (SystemExit)"),
        ("footprint_observe.backtest.airline:CEILING", "of type int"),
        ("footprint_observe.backtest.airline:mask_reply", "of type ContentRule"),
    ],
)
def test_rules_that_cannot_be_had_are_refused_by_their_name(named: str, sentence: str, here: Path) -> None:
    (here / "broken_rules.py").write_text("rules = {", encoding="utf-8")
    (here / "leaving_rules.py").write_text("raise SystemExit(0)", encoding="utf-8")
    result = backtest(str(MADE_UP), "--rules", named, "--db", "out.db")
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert_one_sentence(result, and_cause="imported" in sentence)
    assert not (here / "out.db").exists()


def _foreign(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("create table theirs (x)")
    db.commit()
    db.close()


@pytest.mark.parametrize(
    ("make", "name", "sentence"),
    [
        (lambda _: None, "missing/out.db", "does not exist; make it first"),
        (_foreign, "theirs.db", "a database of another program"),
        (
            lambda path: path.write_text("no database at all", encoding="utf-8"),
            "text.db",
            "no SQLite database",
        ),
        (lambda path: path.mkdir(), "folder", "is a folder"),
    ],
)
def test_a_database_that_cannot_be_used_is_refused_and_left_as_it_was(
    make: Callable[[Path], object], name: str, sentence: str, here: Path
) -> None:
    make(here / name)
    before = {path: path.is_file() and path.read_bytes() for path in here.rglob("*")}
    result = backtest(str(MADE_UP), "--rules", RULES, "--db", name)
    assert result.exit_code == 3
    assert sentence in result.stderr
    assert_one_sentence(result)
    assert {path: path.is_file() and path.read_bytes() for path in here.rglob("*")} == before


def test_an_endpoint_that_cannot_be_used_is_refused_before_there_is_a_file(here: Path) -> None:
    result = backtest(str(MADE_UP), "--rules", RULES, "--db", "out.db", "--otlp", "nonsense://x")
    assert result.exit_code == 2
    assert_one_sentence(result)
    assert not (here / "out.db").exists()


def test_the_command_says_what_ran_and_appends_to_the_file_of_a_former_run(here: Path) -> None:
    (here / "own_rules.py").write_text(
        "from footprint_observe.backtest.airline import rules as shipped\n"
        "RULES = {**shipped(), 'input': []}\n",
        encoding="utf-8",
    )
    first = backtest(str(MADE_UP), "--rules", "own_rules:RULES", "--db", "out.db")
    assert first.exit_code == 0, first.output
    second = backtest(str(MADE_UP), "--rules", RULES, "--db", "out.db", "--answer", "decline")
    assert second.exit_code == 0, second.output
    said = " ".join(second.stdout.split())
    assert (
        "3 conversations, 9 messages of users. 23 calls: 18 given their recorded result, 5 refused." in said
    )
    assert "5 questions: 0 approved, 5 declined, 0 left open." in said
    assert "3 unanswered, where a recording ends: 2 behind a message, 1 behind a result." in said
    assert "5 divergences from the recordings: 5 call-declined." in said
    assert "line 1, made-up-1: call-declined, call call_a, by ask-before-changes" in said
    db = sqlite3.connect("out.db")
    runs = db.execute("select count(*), count(distinct conversation_id) from runs").fetchone()
    query = second.stdout.split('"')[1]
    assert len(db.execute(query).fetchall()) > 7
    db.close()
    assert runs == (18, 3)


def test_the_command_ships_its_spans(here: Path) -> None:
    if "otel_spans" not in recorder_names():
        pytest.skip("the package is not installed, so no recorder can be found by name")
    with OtlpReceiver() as receiver:
        result = backtest(str(MADE_UP), "--rules", RULES, "--db", "out.db", "--otlp", receiver.endpoint)
        assert result.exit_code == 0, result.output
        names = [span.name for span in receiver.spans]
    # Five questions were asked, and what follows the answer to one is a tree of its own.
    assert names.count("invoke_agent backtest") == 9 + 5
    assert names.count("middleware.decision strip-personal-data") == 23

"""What reaches a terminal: colours and a pager there only, nothing that drives it, and a quiet end."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from commanded import demonstrate, environment, footprint, installed
from footprint_core.facts import (
    CallTaken,
    Decided,
    Fact,
    MessageTaken,
    ModelFailed,
    RunConfigured,
    ToolFinished,
    ToolIntended,
)
from footprint_core.ledger import Batch, Entry
from footprint_observe import SqliteLedger
from footprint_observe.query import timeline
from footprint_observe.redaction.policy import Redaction

HOSTILE = "\x1b]0;owned\x07[red]\x9b31m\u202e"
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


def hostile_run(path: Path) -> None:
    name = f"tool{HOSTILE}"
    facts: tuple[Fact, ...] = (
        RunConfigured(
            agent_id="a",
            agent_name=f"agent{HOSTILE}",
            provider="scripted",
            model=f"m{HOSTILE}",
            rules={},
            tools=(),
            turn_index=1,
        ),
        MessageTaken(turn_index=1, message_chars=1, text=f"hello{HOSTILE}"),
        CallTaken(iteration=1, call_id=f"call{HOSTILE}", tool_name=name, tool_source=HOSTILE),
        Decided(
            middleware=f"rule{HOSTILE}",
            version=HOSTILE,
            moment="before-tool",
            iteration=1,
            outcome="allow",
            changed=True,
            why=HOSTILE,
            before={HOSTILE: 1},
            after={f"{HOSTILE}\n": 2},
            decided_by=HOSTILE,
            tool_name=name,
            tool_source=HOSTILE,
            call_id=f"call{HOSTILE}",
        ),
        ToolIntended(iteration=1, call_id=f"call{HOSTILE}", tool_name=name, args={"a": HOSTILE}),
        ToolFinished(
            iteration=1,
            call_id=f"call{HOSTILE}",
            tool_name=name,
            failed=False,
            cancelled=True,
            error_class=f"Error{HOSTILE}",
            duration_us=1,
        ),
        ModelFailed(iteration=1, error_class=f"Error{HOSTILE}", duration_us=1),
    )
    ledger = SqliteLedger(path, redact=Redaction.none())
    entries = tuple(Entry(position=at, time=at, fact=fact) for at, fact in enumerate(facts, 1))
    ledger.append_inline(Batch(run_id="abc", segment=1, entries=entries))
    asyncio.run(ledger.close())


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("runs",),
    ("decisions",),
    ("show", "last"),
    ("timeline", "last"),
    ("why", f"call{HOSTILE}"),
    ("totals", "--by", "rule,version,tool"),
    ("find", HOSTILE),
    ("find", "hello"),
    ("tail", "--since", "1970-01-01", "--limit", "1"),
    ("sql", "select * from tool_calls"),
)


@pytest.mark.parametrize("as_json", [False, True], ids=["table", "json"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_no_name_a_model_or_a_person_made_up_reaches_the_terminal_raw(
    tmp_path: Path, command: tuple[str, ...], as_json: bool
) -> None:
    hostile_run(tmp_path / "l.db")
    said = footprint(*command, *["--json"] * as_json, "--db", str(tmp_path / "l.db")).output
    for character in "\x1b\x07\x9b\u202e":
        assert character not in said
    assert "tool" in said or "agent" in said or "hello" in said


def on_a_terminal(*words: str, keys: bytes = b"", **env: str) -> tuple[int, bytes]:
    """How the command ends on a terminal of 24 lines, and all that it wrote there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [installed(), *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env=environment(TERM="xterm-256color", COLUMNS="100", LINES="24", **env),
    ) as process:
        os.close(theirs)
        os.write(ours, keys)
        said = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                # The other side was closed.
                break
            said += part
        code = process.wait(timeout=60)
    os.close(ours)
    return code, said


@pytest.fixture
def path(tmp_path: Path) -> str:
    return demonstrate(tmp_path / "l.db")


def test_a_terminal_gets_colours_and_no_color_takes_them_away(path: str) -> None:
    code, said = on_a_terminal("decisions", "--outcome", "deny", "--db", path)
    assert (code, bool(COLOUR.search(said))) == (0, True)
    assert b"\x1b[31mdeny" in said
    code, said = on_a_terminal("decisions", "--outcome", "deny", "--db", path, NO_COLOR="1")
    assert code == 0
    assert b"deny" in said
    assert b"\x1b[31m" not in said


def test_what_is_longer_than_the_screen_goes_through_the_pager_and_what_is_shorter_does_not(
    path: str, tmp_path: Path
) -> None:
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ncat > {tmp_path}/paged\n")
    pager.chmod(0o755)
    code, said = on_a_terminal("runs", "--db", path, PAGER=str(pager))
    assert (code, b"answered" in said) == (0, True)
    assert not (tmp_path / "paged").exists()
    code, said = on_a_terminal("timeline", "last", "--db", path, PAGER=str(pager))
    assert (code, b"tool.intended" in said) == (0, False)
    assert (tmp_path / "paged").read_text().count("\n") > 30
    # Records are for programs: they are never paged.
    code, said = on_a_terminal("timeline", "last", "--json", "--db", path, PAGER=str(pager))
    assert (code, len(re.findall(rb'^{"id":\d+,', said, re.MULTILINE))) == (0, len(timeline(path)))


def test_a_progress_bar_is_drawn_on_a_terminal_only_and_taken_away_again(path: str) -> None:
    code, said = on_a_terminal("find", "nowhere at all", "--db", path)
    assert code == 1
    assert b"That text is nowhere in this ledger" in said
    assert footprint("find", "nowhere at all", "--db", path, code=1).output.count("\n") == 1


@pytest.mark.parametrize("as_json", [False, True], ids=["table", "json"])
def test_data_goes_into_the_pipe_while_a_bar_is_drawn_on_the_terminal(path: str, as_json: bool) -> None:
    ours, theirs = pty.openpty()
    words = ["find", "bluebird", "--db", path, *["--json"] * as_json]
    with subprocess.Popen(
        [installed(), *words], stdout=subprocess.PIPE, stderr=theirs, env=environment(TERM="xterm")
    ) as process:
        os.close(theirs)
        data, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0
    assert data == footprint(*words).stdout_bytes


@pytest.mark.parametrize(
    "words", [("runs",), ("decisions",), ("timeline", "last"), ("find", "e"), ("sql", "select * from facts")]
)
@pytest.mark.parametrize("as_json", [False, True], ids=["table", "json"])
def test_a_reader_that_goes_away_ends_the_command_quietly(
    path: str, words: tuple[str, ...], as_json: bool
) -> None:
    gone, ours = os.pipe()
    os.close(gone)
    with subprocess.Popen(
        [installed(), *words, *["--json"] * as_json, "--db", path],
        stdout=ours,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        os.close(ours)
        _, said = process.communicate(timeout=60)
    # As a shell says it of a command that SIGPIPE ended; 1 would mean that the answer is no.
    assert (process.returncode, said) == (141, b"")


def test_records_are_utf8_whatever_the_locale_says(path: str) -> None:
    done = subprocess.run(
        [installed(), "sql", "select 'ü€' as t", "--json", "--db", path],
        capture_output=True,
        check=True,
        env=environment(LC_ALL="C", PYTHONIOENCODING="ascii"),
    )
    assert done.stdout == '{"t":"ü€"}\n'.encode()

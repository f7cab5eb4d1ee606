"""The command `footprint`, as a person types it."""

from __future__ import annotations

import asyncio
import os
import re
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

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
from footprint_observe.cli import main
from footprint_observe.redaction.policy import Redaction
from otlp_receiver import OtlpReceiver


def footprint(*args: str, ok: bool = True) -> Result:
    result = CliRunner().invoke(main, args, env={"COLUMNS": "100"})
    if ok:
        assert result.exit_code == 0, result.output
    else:
        assert result.exit_code == 2, result.output
        assert result.output.count("Error: ") == 1
        assert "Traceback" not in result.output
    return result


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


ROWS = [
    ("input", "scrub-ssns", "allow", 1),
    ("input", "no-codenames", "allow", 0),
    ("before-tool", "refund-ceiling", "allow", 0),
    ("before-tool", "four-eyes", "allow", 0),
    ("after-tool", "strip-pii", "allow", 1),
    ("before-tool", "refund-ceiling", "deny", 0),
    ("before-tool", "refund-ceiling", "allow", 0),
    ("before-tool", "four-eyes", "ask", 0),
    ("before-tool", "four-eyes", "allow", 0),
    ("after-tool", "strip-pii", "allow", 0),
    ("output", "scrub-ssns", "allow", 0),
    ("output", "no-codenames", "allow", 1),
]


def _rows(path: Path) -> list[tuple[object, ...]]:
    db = sqlite3.connect(path)
    found = db.execute("select moment, middleware, outcome, changed from decisions order by id").fetchall()
    db.close()
    return found


def test_the_demonstration_tells_its_story_from_the_ledger(here: Path) -> None:
    output = footprint("demo", "--approve").output
    assert _rows(here / "footprint.db") == ROWS
    for told in (
        "masked 1 social security number(s)",
        "Refunds above $500 are not yours to give",
        "Refund $450 for order 41?",
        "approved by",
        "removed name, email, address",
        "Our refund desk has refunded you $450.",
    ):
        assert told in output.replace("\n", " ") or re.sub(r"\s+", " ", told) in re.sub(r"\s+", " ", output)
    assert output.count('sqlite3 -box footprint.db "select') == 3


def test_the_queries_the_demonstration_prints_work(here: Path) -> None:
    output = footprint("demo", "--approve").output
    queries = re.findall(r'sqlite3 -box footprint.db "(.*)"', output)
    assert len(queries) == 3
    for query in queries:
        assert footprint("sql", query).output.count("\n") > 1


def test_without_a_terminal_the_demonstration_declines_and_says_how_to_approve(here: Path) -> None:
    output = footprint("demo").output
    assert "footprint demo --approve" in output
    assert "could not approve" in output
    assert _rows(here / "footprint.db")[8] == ("before-tool", "four-eyes", "deny", 0)
    assert footprint("demo", "--decline").exit_code == 0


def test_the_demonstration_ships_its_spans(here: Path) -> None:
    with OtlpReceiver() as receiver:
        assert receiver.endpoint in footprint("demo", "--approve", "--otlp", receiver.endpoint).output
        names = [span.name for span in receiver.wait(22)]
    assert names.count("invoke_agent refunds") == 2
    assert "middleware.decision refund-ceiling" in names


def test_the_demonstration_says_what_was_lost_and_not_that_it_was_sent(here: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    said = re.sub(r"\s+", " ", footprint("demo", "--approve", "--otlp", nobody).output)
    assert "22 spans were lost; look at the collector and its address." in said
    assert "were sent" not in said


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _wait_until_it_reads(pid: int) -> None:
    """Wait until a process sleeps: a signal in the moment before it reads would only be noted."""
    deadline, asleep = time.monotonic() + 30, 0
    while asleep < 200 and time.monotonic() < deadline:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs a terminal and /proc")
def test_the_first_interrupt_at_the_question_ends_the_demonstration(here: Path) -> None:
    command = shutil.which("footprint", path=str(Path(sys.executable).parent))
    if command is None:
        pytest.skip("the package is not installed with its command here")
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [command, "demo"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        # A shell starts what it runs in the background with this signal ignored, and that is inherited.
        preexec_fn=_heed_interrupts,  # noqa: PLW1509 - it takes no lock
    ) as demo:
        os.close(theirs)
        try:
            said = b""
            while b"Approve?" not in said:
                assert select.select([ours], [], [], 60)[0], said
                said += os.read(ours, 4096)
            _wait_until_it_reads(demo.pid)
            demo.send_signal(signal.SIGINT)
            assert demo.wait(timeout=60) == 1
        finally:
            demo.kill()
            os.close(ours)
    # It was closed: nothing stands beside the ledger.
    assert [path.name for path in here.iterdir()] == ["footprint.db"]


def test_runs_decisions_and_a_whole_run_are_shown(here: Path) -> None:
    footprint("demo", "--approve")
    runs = footprint("runs").output
    assert "answered" in runs
    run_id = re.search(r"[0-9a-f]{16}", runs)
    assert run_id is not None
    for name in (run_id[0], run_id[0][:13], "last"):
        shown = footprint("show", name).output
        assert "tool.intended" in shown
        assert "may have run" not in shown
    denied = footprint("decisions", "--outcome", "deny").output
    assert "refund-ceiling" in denied
    assert "four-eyes" not in denied
    assert "strip-pii" in footprint("decisions", "--run", "last", "--moment", "after-tool").output
    assert "no-codenames" in footprint("decisions", "--rule", "no-codenames", "--limit", "1").output
    assert "look_up_order" in footprint("decisions", "--tool", "look_up_order").output


def test_sql_reads_and_cannot_write(here: Path) -> None:
    footprint("demo", "--approve")
    assert footprint("sql", "select count(*) from decisions").output == "count(*)\n12\n"
    for query in (
        "delete from facts",
        "drop view decisions",
        "create table t (a)",
        "selec",
        "select 1; select 2",
        "select ?",
        "select '\udcff'",
        "select\0 1",
        "select 1 union\n selec \x1b]0;x\x07",
        "attach database 'other.db' as other",
        "attach database 'footprint.db' as other",
        "vacuum into 'copy.db'",
        "vacuum",
    ):
        said = footprint("sql", query, ok=False).output
        assert re.fullmatch(r"Error: SQLite does not take that query \([^\n]+\); correct it\.\n", said), said
        assert "\x1b" not in said
    for query in ("", " ", "/* nothing */", "begin"):
        said = footprint("sql", query, ok=False).output
        assert said == "Error: That query gives no rows; ask one, like `select * from runs`.\n"
    assert _rows(here / "footprint.db") == ROWS
    assert [path.name for path in here.iterdir()] == ["footprint.db"]


def test_a_row_stays_one_line_and_drives_no_terminal(here: Path) -> None:
    footprint("demo", "--approve")
    query = "select 'a' || char(9, 10, 13, 27, 155, 8232, 8238) || 'é' as \"x\n\x1by\", null, 1.5, x'00'"
    said = footprint("sql", query).output
    assert said == (
        "x\\n\\x1by\tnull\t1.5\tx'00'\n" + "a\\t\\n\\r\\x1b\\x9b\\u2028\\u202eé\t\t1.5\tb'\\x00'\n"
    )


HOSTILE = "\x1b]0;owned\x07[red]\x9b31m\u202e"


def hostile_run() -> None:
    name = f"tool{HOSTILE}"
    facts: tuple[Fact, ...] = (
        RunConfigured(
            agent_id="a",
            agent_name=f"agent{HOSTILE}",
            provider="scripted",
            model="m",
            rules={},
            tools=(),
            turn_index=1,
        ),
        MessageTaken(turn_index=1, message_chars=1, text=f"hello{HOSTILE}"),
        CallTaken(iteration=1, call_id=f"call{HOSTILE}", tool_name=name),
        Decided(
            middleware=f"rule{HOSTILE}",
            moment="before-tool",
            iteration=1,
            outcome="allow",
            changed=True,
            why=HOSTILE,
            before={HOSTILE: 1},
            after={f"{HOSTILE}\n": 2},
            tool_name=name,
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
    ledger = SqliteLedger("footprint.db", redact=Redaction.none())
    entries = tuple(Entry(position=at, time=at, fact=fact) for at, fact in enumerate(facts, 1))
    ledger.append_inline(Batch(run_id="abc", segment=1, entries=entries))
    asyncio.run(ledger.close())


@pytest.mark.parametrize(
    "command", [["runs"], ["decisions"], ["show", "last"], ["sql", "select * from tool_calls"]]
)
def test_no_name_a_model_or_a_person_made_up_reaches_the_terminal_raw(here: Path, command: list[str]) -> None:
    hostile_run()
    said = footprint(*command).output
    for character in "\x1b\x07\x9b\u202e":
        assert character not in said
    assert "tool" in said or "agent" in said


def test_a_tool_that_was_cancelled_while_it_ran_may_have_run(here: Path) -> None:
    hostile_run()
    shown = footprint("show", "last").output
    assert re.sub(r"\s+", " ", shown).count("may have run") == 2
    assert "cancelled" in shown


def test_as_many_rows_as_sqlite_can_count_may_be_asked_for(here: Path) -> None:
    footprint("demo", "--approve")
    for command in ("runs", "decisions"):
        assert footprint(command, "--limit", str(2**63 - 1)).exit_code == 0
        assert "not in the range" in footprint(command, "--limit", str(2**63), ok=False).output


@pytest.mark.parametrize(
    "command", [["runs"], ["decisions"], ["show", "last"], ["sql", "select 1"], ["demo", "--approve"]]
)
def test_what_is_wrong_with_a_path_is_said_the_same_by_every_command(here: Path, command: list[str]) -> None:
    assert "needs a file" in footprint(*command, "--db", "", ok=False).output
    assert f"{here} is a folder" in footprint(*command, "--db", str(here), ok=False).output
    assert "\x1b" not in footprint(*command, "--db", "no/\x1b[31m/x.db", ok=False).output
    assert list(here.iterdir()) == []


def test_the_ledger_is_named_by_option_or_environment(here: Path) -> None:
    footprint("demo", "--approve", "--db", "other.db")
    assert not (here / "footprint.db").exists()
    result = CliRunner().invoke(main, ["runs"], env={"FOOTPRINT_DB": str(here / "other.db")})
    assert "answered" in result.output


def test_an_empty_ledger_says_that_it_is_empty(here: Path) -> None:
    SqliteLedger("footprint.db")
    assert "no run" in footprint("runs").output


@pytest.mark.parametrize("command", [["runs"], ["decisions"], ["show", "last"], ["sql", "select 1"]])
def test_reading_what_is_no_ledger_is_refused_in_one_sentence(here: Path, command: list[str]) -> None:
    (here / "text.db").write_text("not a database, but text that is long enough to be looked at as one")
    other = sqlite3.connect(here / "other.db")
    other.execute("create table t (a)")
    other.close()
    for path in ("missing.db", "no/folder/x.db", "text.db", "other.db", "."):
        footprint(*command, "--db", path, ok=False)
    assert not (here / "missing.db").exists()


def test_writing_where_nothing_can_be_written_is_refused_in_one_sentence(here: Path) -> None:
    (here / "text.db").write_text("not a database, but text that is long enough to be looked at as one")
    other = sqlite3.connect(here / "other.db")
    other.execute("create table t (a)")
    other.close()
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    for path in ("no/folder/x.db", "text.db", "other.db", ".", ":memory:"):
        footprint("demo", "--approve", "--db", path, ok=False)
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def test_a_run_that_is_not_there_is_refused_with_where_to_look(here: Path) -> None:
    footprint("demo", "--approve")
    for name in ("nope", "0" * 32, "%", ""):
        assert "footprint runs" in footprint("show", name, ok=False).output


def test_the_installed_command_works_in_a_process_of_its_own(here: Path) -> None:
    command = shutil.which("footprint", path=str(Path(sys.executable).parent))
    if command is None:
        pytest.skip("the package is not installed with its command here")
    done = subprocess.run(
        [command, "demo", "--approve"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert _rows(here / "footprint.db") == ROWS
    refused = subprocess.run(
        [command, "runs", "--db", "missing.db"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("Error: ")
    assert refused.stderr.count("\n") == 1

"""The command `footprint`, as a person types it."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from footprint_observe.cli import main
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
    for query in ("delete from facts", "drop view decisions", "create table t (a)", "selec"):
        assert "correct it" in footprint("sql", query, ok=False).output
    assert _rows(here / "footprint.db") == ROWS


def test_the_ledger_is_named_by_option_or_environment(here: Path) -> None:
    footprint("demo", "--approve", "--db", "other.db")
    assert not (here / "footprint.db").exists()
    result = CliRunner().invoke(main, ["runs"], env={"FOOTPRINT_DB": str(here / "other.db")})
    assert "answered" in result.output


def test_an_empty_ledger_says_that_it_is_empty(here: Path) -> None:
    from footprint_observe import SqliteLedger

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

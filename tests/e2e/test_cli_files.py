"""Which file the commands ask, what they say when it cannot be asked, and how they end."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from pathlib import Path

import pytest

from commanded import QUESTIONS, demonstrate, footprint, installed, records, refused
from footprint_observe import SqliteLedger
from footprint_observe.cli import main
from footprint_observe.cli.exits import Exit

NAMES = {words[0] for words in QUESTIONS}
EVERY = pytest.mark.parametrize("words", QUESTIONS, ids=lambda words: words[0])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def strangers(here: Path) -> tuple[str, ...]:
    """Paths at which there is no ledger."""
    (here / "text.db").write_text("not a database, but text that is long enough to be looked at as one")
    other = sqlite3.connect(here / "other.db")
    other.execute("create table t (a)")
    other.close()
    (here / "empty.db").touch()
    return ("missing.db", "no/folder/x.db", "text.db", "other.db", "empty.db", ".")


@EVERY
def test_every_question_has_an_answer_in_the_file_of_the_demonstration(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    path = demonstrate(tmp_path / "l.db")
    plain = footprint(*words, "--db", path)
    # The demonstration leaves no question open.
    assert bool(plain.stdout) == (words[0] != "pending")
    assert all("\x1b" not in text for text in (plain.stdout, plain.stderr))
    told = records(*words, "--db", path)
    assert bool(told) == (words[0] != "pending")
    assert all(type(record) is dict for record in told)


@EVERY
def test_what_is_wrong_with_a_path_is_said_the_same_by_every_command(
    here: Path, words: tuple[str, ...]
) -> None:
    assert "needs a file" in refused(*words, "--db", "", code=3)
    assert f"{here} is a folder" in refused(*words, "--db", str(here), code=3)
    assert "\x1b" not in refused(*words, "--db", "no/\x1b[31m/x.db", code=3)
    assert "none a file can have" in refused(*words, "--db", "a\0b.db", code=3)
    assert list(here.iterdir()) == []


@EVERY
def test_reading_what_is_no_ledger_is_refused_in_one_sentence(
    here: Path, strangers: tuple[str, ...], words: tuple[str, ...]
) -> None:
    for path in strangers:
        assert refused(*words, "--db", path, code=3).count("\n") == 1
    assert {path.name for path in here.iterdir()} == {"text.db", "other.db", "empty.db"}


def test_writing_where_nothing_can_be_written_is_refused_in_one_sentence(
    here: Path, strangers: tuple[str, ...]
) -> None:
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    for path in (*set(strangers) - {"missing.db", "empty.db"}, ":memory:"):
        footprint("demo", "--approve", "--db", path, code=3)
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


@EVERY
def test_a_damaged_file_is_named_and_never_a_traceback(tmp_path: Path, words: tuple[str, ...]) -> None:
    path = Path(demonstrate(tmp_path / "l.db"))
    whole = path.read_bytes()
    # All pages but the first few, which say what the file is and what is in it.
    path.write_bytes(whole[: 4096 * 12] + b"\xa5" * (len(whole) - 4096 * 12))
    said = footprint(*words, "--db", str(path), code=3)
    assert said.stderr.startswith("Error: ")
    assert said.stderr.count("\n") == 1


@EVERY
def test_an_empty_ledger_has_no_answer_and_that_is_no_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    path = tmp_path / "l.db"
    asyncio.run(SqliteLedger(path).close())
    if words[0] == "tail":
        # It would wait for the first decision.
        return
    # What names one thing, or looks for one, says that it is not there.
    code = Exit.NO if words[0] in {"show", "timeline", "why", "find"} else Exit.DONE
    for more in ((), ("--json",)):
        told = footprint(*words, "--db", str(path), *more, code=code)
        assert told.stdout == ("id\trun_id" in told.stdout) * told.stdout
        assert bool(told.stderr) == (words[0] != "sql" and (code is Exit.NO or not more))


def test_the_ledger_is_named_by_option_or_environment_and_the_option_wins(here: Path) -> None:
    footprint("demo", "--approve", "--db", "other.db")
    assert not (here / "footprint.db").exists()
    named = {"FOOTPRINT_DB": str(here / "other.db")}
    for words in QUESTIONS:
        if words[0] != "pending":
            assert footprint(*words, env=named).stdout
        refused(*words, "--db", "missing.db", code=3, env=named)


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "--limit", "0"),
        ("runs", "--limit", str(2**63)),
        ("runs", "--ended", "somehow"),
        ("decisions", "--outcome", "maybe"),
        ("decisions", "--moment", "never"),
        ("decisions", "--since", "yesterweek"),
        ("totals", "--by", "colour"),
        ("find",),
        ("find", ""),
        ("why",),
        ("sql", "select 1", "-p", "name"),
        ("sql", "select 1", "--timeout", "0"),
        ("sql", "selec"),
        ("completion", "tcsh"),
        ("nothing",),
        ("runs", "--nothing"),
    ],
)
def test_what_cannot_be_understood_ends_with_two(tmp_path: Path, words: tuple[str, ...]) -> None:
    path = demonstrate(tmp_path / "l.db")
    of_a_file = words[0] in NAMES and "--nothing" not in words
    said = footprint(*words, *(("--db", path) if of_a_file else ()), code=Exit.USAGE)
    assert said.stdout == ""
    assert said.stderr.count("Error: ") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("show", "nope"),
        ("timeline", "0" * 32),
        ("show", "%"),
        ("show", ""),
        ("decisions", "--run", "nope"),
        ("totals", "--run", "nope"),
        ("tail", "--run", "nope"),
        ("find", "refund", "--run", "nope"),
        ("why", "call-1", "--run", "nope"),
        ("why", "nope"),
        ("why", "nope", "--run", "last"),
        ("find", "nowhere at all"),
    ],
)
def test_what_is_not_in_the_ledger_ends_with_one(tmp_path: Path, words: tuple[str, ...]) -> None:
    path = demonstrate(tmp_path / "l.db")
    for more in ((), ("--json",)):
        said = footprint(*words, *more, "--db", path, code=Exit.NO)
        assert said.stdout == ""
        assert said.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("show", "\udcff"),
        ("why", "\udcff"),
        ("find", "\udcff"),
        ("decisions", "--rule", "\udcff"),
        ("decisions", "--person", "\udcff"),
        ("decisions", "--run", "\udcff"),
        ("runs", "--tool", "\udcff"),
        ("totals", "--version", "\udcff"),
        ("tail", "--source", "\udcff"),
        ("sql", "select :x", "-p", "x=\udcff"),
        ("sql", "select '\udcff'"),
    ],
)
def test_bytes_that_are_no_text_are_refused_in_one_sentence(tmp_path: Path, words: tuple[str, ...]) -> None:
    said = refused(*words, "--db", demonstrate(tmp_path / "l.db"), code=Exit.USAGE)
    assert said.count("\n") == 1
    assert "text" in said


def test_the_exit_codes_are_in_the_help() -> None:
    told = " ".join(footprint("--help").stdout.split())
    assert "0 done, also when a list is empty; 1 the answer is no" in told
    assert [code.value for code in Exit] == [0, 1, 2, 3, 141]
    assert all(f"{code.value} " in told for code in Exit)


def test_the_help_lists_every_command_and_each_has_its_own() -> None:
    told = footprint("--help").stdout
    context = main.make_context("footprint", ["runs", "--help"], resilient_parsing=True)
    for name in main.list_commands(context):
        assert f"  {name} " in told
        assert footprint(name, "--help").stdout.startswith(f"Usage: main {name} ")


def test_an_error_of_the_installed_command_is_on_standard_error(here: Path) -> None:
    done = subprocess.run(
        [installed(), "runs", "--db", "missing.db"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1

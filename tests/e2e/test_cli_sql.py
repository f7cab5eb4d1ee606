"""`footprint sql`: reads, and can neither write, reach other files, nor run for ever."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from commanded import demonstrate, environment, footprint, installed, records, refused
from footprint_observe.query import QuestionError, QuestionTimeoutError, sql

ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return demonstrate(tmp_path / "l.db")


def test_sql_reads_and_cannot_write(path: str) -> None:
    assert footprint("sql", "select count(*) from decisions", "--db", path).stdout == "count(*)\n12\n"
    before = Path(path).read_bytes()
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
        f"attach database '{path}' as other",
        "vacuum into 'copy.db'",
        "vacuum",
        "select :missing",
        "select load_extension('x')",
        "select fts3_tokenizer('simple', x'4141414141414141')",
        "pragma journal_mode = delete",
        "PRAGMA JOURNAL_MODE(delete)",
        "pragma user_version = 9",
        "pragma writable_schema = on",
        "pragma wal_checkpoint",
        "pragma optimize",
    ):
        said = refused("sql", query, "--db", path, code=2)
        assert re.fullmatch(r"Error: SQLite does not take that query \([^\n]+\); correct it\.\n", said), said
        assert "\x1b" not in said
    for query in (
        "pragma journal_mode",
        "pragma table_info(facts)",
        "select * from pragma_index_list('facts')",
    ):
        assert footprint("sql", query, "--db", path).stdout
    for query in ("", " ", "/* nothing */", "begin"):
        said = refused("sql", query, "--db", path, code=2)
        assert said == "Error: That query gives no rows; ask one, like `select * from runs`.\n"
    assert Path(path).read_bytes() == before
    # Reading leaves the files of its log, and nothing else was made.
    assert {file.name for file in Path(path).parent.iterdir()} <= {"l.db", "l.db-wal", "l.db-shm"}


def test_a_row_stays_one_line_and_drives_no_terminal(path: str) -> None:
    query = (
        "select 'a' || char(9, 10, 13, 27, 155, 8232, 8238) || '\u00e9' as \"x\n\x1by\", null, 1.5, x'00ff'"
    )
    assert footprint("sql", query, "--db", path).stdout == (
        "x\\n\\x1by\tnull\t1.5\tx'00ff'\n" + "a\\t\\n\\r\\x1b\\x9b\\u2028\\u202e\u00e9\t\t1.5\t00ff\n"
    )
    (record,) = records("sql", query, "--db", path)
    assert record == {
        "x\n\x1by": "a\t\n\r\x1b\x9b\u2028\u202e\u00e9",
        "null": None,
        "1.5": 1.5,
        "x'00ff'": "00ff",
    }
    raw = footprint("sql", query, "--json", "--db", path).stdout
    assert all(character not in raw for character in "\x1b\x9b\u2028\u202e")


def test_a_text_that_is_no_utf8_is_shown_and_no_error(path: str) -> None:
    query = "select cast(x'61ff62' as text) as t"
    assert footprint("sql", query, "--db", path).stdout == "t\na\\xffb\n"
    assert records("sql", query, "--db", path) == [{"t": "a\\xffb"}] == sql(path, query)


def test_values_are_given_by_name(path: str) -> None:
    query = "select middleware, why from decisions where outcome = :outcome and id > cast(:after as integer)"
    words = ("-p", "outcome=deny", "-p", "after=3")
    found = records("sql", query, *words, "--db", path)
    assert [row["middleware"] for row in found] == ["refund-ceiling"]
    assert found == sql(path, query, {"outcome": "deny", "after": 3})
    # What is given is a value and never a part of the query.
    assert records("sql", query, "-p", "outcome=x' or 1 --", "-p", "after=0", "--db", path) == []
    assert records("sql", "select :x as x", "-p", "x=a=b", "--db", path) == [{"x": "a=b"}]
    with pytest.raises(QuestionError):
        sql(path, "select :x", {"x": object()})
    with pytest.raises(QuestionError):
        sql(path, "select :x", {"x": 2**70})


def test_columns_of_one_name_are_told_apart(path: str) -> None:
    assert sql(path, "select 1 as a, 2 as a, 3 as a_2, 4 as a") == [{"a": 1, "a_2": 2, "a_2_2": 3, "a_3": 4}]


def test_a_query_without_end_is_stopped_in_one_sentence(path: str) -> None:
    began = time.monotonic()
    said = refused("sql", ENDLESS, "--timeout", "0.3", "--db", path, code=2)
    assert said == (
        "Error: The query took longer than 0.3 seconds and was stopped; ask for less, or give it more time "
        "with --timeout.\n"
    )
    assert time.monotonic() - began < 30
    with pytest.raises(QuestionTimeoutError):
        sql(path, ENDLESS, timeout=0.1)
    with pytest.raises(QuestionTimeoutError):
        sql(path, ENDLESS.replace("max(i)", "i") + " where i % 1000 = 0", timeout=0.3)


def test_rows_come_as_they_are_found_and_not_when_all_are(path: str) -> None:
    endless = ENDLESS.replace("max(i)", "i")
    with subprocess.Popen(
        [installed(), "sql", endless, "--db", path], stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == [b"i\n", b"1\n", b"2\n"]
        process.kill()


def test_an_interrupt_ends_a_query(path: str) -> None:
    with subprocess.Popen(
        [installed(), "sql", f"select 1 union all select * from ({ENDLESS})", "--db", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(PYTHONUNBUFFERED="1"),
        bufsize=0,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 1
        assert process.stderr is not None
        assert process.stderr.read().strip() == b"Aborted!"

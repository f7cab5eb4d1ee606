"""A served ledger is read and nothing else, while agents go on writing to it."""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from browsed import LONG, Served, files, seeded_file, serving
from commanded import demonstrate, footprint
from footprint_observe.store.connect import open_writer


def _state(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return seeded_file(tmp_path_factory.mktemp("reading"))


@pytest.fixture(scope="module")
def served(file: Path) -> Generator[Served]:
    with serving(file, "--timeout", "1") as running:
        yield running


WRITES = (
    "insert into vals values (1, 'a', '1', x'00')",
    "update facts set kind = 'x'",
    "delete from facts",
    "replace into facts (id) values (1)",
    "drop view decisions",
    "create table t (a)",
    "with x as (select 1) insert into vals select 1, 'a', '1', x'00'",
    "with x as (select 1) update facts set kind = 'x'",
    "with x as (select 1) delete from facts",
    "attach 'other.db' as other",
    "detach main",
    "vacuum",
    "vacuum into 'copy.db'",
    "reindex",
    "analyze",
    "begin immediate",
    "pragma journal_mode = delete",
    "pragma user_version = 7",
    "pragma writable_schema = on",
    "pragma query_only = off",
    "pragma wal_checkpoint(truncate)",
    "select * from pragma_wal_checkpoint('truncate')",
    "select * from pragma_journal_mode('delete')",
    "select load_extension('anything')",
    "select writefile('stolen', 'x')",
    "select readfile('/etc/passwd')",
    "select fts3_tokenizer('simple', x'0000000000000000')",
    "select 1; delete from facts",
    "explain delete from facts",
)


@pytest.mark.parametrize("write", WRITES)
def test_sql_that_would_write_or_leave_the_file_is_refused(served: Served, file: Path, write: str) -> None:
    before = hashlib.sha256(file.read_bytes()).hexdigest()
    for answer in (served.sql(write), served.get("/ledger", query={"sql": write})):
        assert answer.status == 400, answer.body
    assert hashlib.sha256(file.read_bytes()).hexdigest() == before
    assert {one.removeprefix(file.name) for one in files(file.parent)} <= {"", "-wal", "-shm"}


@pytest.mark.parametrize(
    ("page", "status"), [("/ledger.db", 403), ("/_internal", 403), ("/_memory", 404), ("/-/permissions", 404)]
)
def test_there_is_no_other_way_to_the_file(served: Served, page: str, status: int) -> None:
    assert served.get(page).status == status


@pytest.mark.parametrize(
    "page",
    ["patterns", "messages", "allow-debug", "threads", "threads.json", "permissions", "auth-token", "logout"],
)
def test_pages_of_datasette_that_nobody_needs_are_closed(served: Served, page: str) -> None:
    assert served.get(f"/-/{page}").status == 404


@pytest.mark.parametrize(
    "address",
    [
        "/ledger.json?_shape=array",
        "/ledger.json?sql=&_shape=arrayfirst",
        "/ledger.csv?sql=",
        "/ledger/facts?_sort=nosuch",
        "/ledger/facts.json?_sort=nosuch",
        "/ledger/facts.csv?_sort=nosuch",
        "/ledger/facts?_sort=id&_sort_desc=id",
        "/ledger/facts?_through=x",
        "/ledger/facts?id__in=[",
        "/ledger/vals/1",
    ],
)
def test_an_address_that_makes_no_sense_is_refused_and_prints_nothing(file: Path, address: str) -> None:
    with serving(file) as running:
        answer = running.get(address)
        running.process.terminate()
        said = running.process.communicate(timeout=60)
    assert answer.status == 400
    assert said == ("", "")


def test_reading_changes_no_byte_and_leaves_no_file(tmp_path: Path) -> None:
    path = Path(demonstrate(tmp_path / "l.db"))
    before = _state(tmp_path)
    with serving(path) as running:
        for page in ("/", "/ledger", "/ledger/decisions", "/ledger/facts/1", "/-/dashboards/governance"):
            assert running.get(page).status == 200, page
        assert running.rows("/ledger/timeline")
    assert running.process.returncode == 0
    assert _state(tmp_path) == before


@pytest.mark.parametrize(
    "question", ["select * from decisions", LONG, "select hex(zeroblob(90000000)) from facts"]
)
def test_an_idle_site_holds_no_file_however_its_last_question_ended(
    served: Served, file: Path, question: str
) -> None:
    served.get("/ledger", query={"sql": question})
    assert not [one for one in served.opened() if str(one).startswith(str(file))]


def test_rows_appear_as_they_are_written_and_the_log_is_put_away_by_who_wrote(tmp_path: Path) -> None:
    path = Path(demonstrate(tmp_path / "l.db"))
    with serving(path) as running:
        before = running.rows("/ledger/latest_runs")
        # Another agent, in this process, whose ledger closes while the site goes on.
        footprint("demo", "--decline", "--db", str(path))
        after = running.rows("/ledger/latest_runs")
        assert len(after) == len(before) + 1
        assert after[1:] == before
    assert files(tmp_path) == {"l.db"}


def test_a_reader_that_is_stopped_keeps_no_writer_from_its_log(served: Served, file: Path) -> None:
    assert served.sql(LONG).status == 400
    with closing(sqlite3.connect(file)) as writer:
        busy, log, moved = writer.execute("pragma wal_checkpoint(truncate)").fetchone()
    assert (busy, log, moved) == (0, 0, 0)


def test_a_query_beyond_its_time_is_stopped(served: Served) -> None:
    for answer in (served.sql(LONG), served.get("/ledger", query={"sql": LONG})):
        assert answer.status == 400
        assert b"SQL Interrupted" in answer.body
    assert served.sql("select 1 as one").json == [{"one": 1}]


@pytest.mark.parametrize(
    "huge",
    [
        "select length(hex(randomblob(900000000)))",
        "select replace(hex(zeroblob(9000000)), '00', '0000000000')",
    ],
)
def test_no_single_value_can_be_made_that_takes_long_or_fills_the_memory(served: Served, huge: str) -> None:
    answer = served.sql(huge)
    assert answer.status == 400
    assert b"too big" in answer.body


@pytest.mark.parametrize(
    ("huge", "said"),
    [
        ("select hex(zeroblob(9000000)) from facts", b"longer than 32 MiB"),
        (f"select {', '.join(f'hex(zeroblob({n}))' for n in range(9000000, 9000100))}", b"too much memory"),
        ("select zeroblob(9000000), 'x' from facts", b"longer than 32 MiB"),
    ],
)
def test_an_answer_of_many_long_values_does_not_fill_the_memory(file: Path, huge: str, said: bytes) -> None:
    with serving(file) as running:
        for answer in (running.sql(huge), running.get("/ledger", query={"sql": huge})):
            assert answer.status == 400
            assert said in answer.body
        status = Path(f"/proc/{running.process.pid}/status").read_text()
        assert running.sql("select 1 as one").json == [{"one": 1}]
    (most,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    assert int(most) < 600_000


def test_an_answer_has_so_many_rows_and_no_facet_or_count_reads_the_whole_file(served: Served) -> None:
    rows = served.sql("select id from facts").json
    assert len(rows) == 1000
    assert served.get("/ledger/decisions.json?_facet=outcome").status == 400
    assert served.get("/ledger/decisions.csv?_stream=1").status in {400, 403}
    settings = served.get("/-/settings.json").json
    assert not any(settings[name] for name in ("allow_download", "allow_facet", "suggest_facets"))


def test_views_with_json_in_them_are_read(served: Served) -> None:
    (row,) = served.sql(
        "select json_extract(args, '$.order') as n from tool_calls where args is not null limit 1"
    ).json
    assert row["n"] is not None


def test_what_is_sealed_stays_sealed(served: Served) -> None:
    (row,) = served.sql(
        "select json from vals where json like '%footprint:sealed%' or json like '%seal%' limit 1"
    ).json
    assert "4000" not in row["json"]


def test_what_fails_prints_no_value(file: Path) -> None:
    with serving(file) as running:
        assert running.sql("select json_extract(:x, '$')", x="planted-value").status == 400
        assert running.sql("select nothing from facts where kind = 'planted-value'").status == 400
        running.process.terminate()
        out, err = running.process.communicate(timeout=60)
    assert (out, err) == ("", "")


def test_a_file_that_is_taken_away_or_put_back_is_noticed(tmp_path: Path) -> None:
    path = Path(demonstrate(tmp_path / "l.db"))
    kept = tmp_path / "kept"
    with serving(path) as running:
        shutil.move(path, kept)
        gone = running.sql("select count(*) as n from facts")
        assert gone.status == 503
        assert b"There is no ledger file" in gone.body
        shutil.move(kept, path)
        assert running.sql("select count(*) as n from facts").status == 200


def test_the_name_of_a_file_is_no_address(tmp_path: Path) -> None:
    path = Path(demonstrate(tmp_path / "a ledger?mode=rwc&x=%41#.db"))
    with serving(path) as running:
        assert running.rows("/ledger/latest_runs")
        assert b"a ledger?mode=rwc&amp;x=%41#.db" in running.get("/ledger").body
    assert files(tmp_path) == {path.name}


def test_a_ledger_can_be_served_before_it_has_a_row(tmp_path: Path) -> None:
    writer = open_writer(tmp_path / "l.db", durability="process", busy_timeout=1)
    with closing(writer), serving(tmp_path / "l.db") as running:
        assert running.rows("/ledger/latest_runs") == []
        assert running.get("/-/dashboards/governance").status == 200

"""Files and folders a user may not touch: refused in one sentence, and read where reading is possible."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from footprint_core.facts import CallTaken
from footprint_core.ledger import Batch, Entry
from footprint_observe.store.ledger import SqliteLedger

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to become a user who may do less"
)

NOBODY = """
import asyncio, json, os, sys
from pathlib import Path
from footprint_observe.store import ledger, read
from footprint_observe.store.connect import open_reader
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
out = []
for how, path in json.load(sys.stdin):
    try:
        if how == "write":
            asyncio.run(ledger.SqliteLedger(path).close())
            out.append("opened")
        else:
            connection = open_reader(Path(path))
            out.append(len(read.entries(connection, "run")))
            connection.close()
    except Exception as error:
        out.append(f"{type(error).__name__}: {error}")
print(json.dumps(out))
"""


def as_nobody(*asked: tuple[str, Path]) -> list[object]:
    """What becomes of opening each path, to write or to read, as a user who owns nothing."""
    done = subprocess.run(
        [sys.executable, "-c", NOBODY],
        input=json.dumps([(how, os.fspath(path)) for how, path in asked]),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answers: list[object] = json.loads(done.stdout)
    return answers


@pytest.fixture
def folder() -> Generator[Path]:
    # Not tmp_path: nobody else may look into that.
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def written(path: Path) -> SqliteLedger:
    ledger = SqliteLedger(path)
    entry = Entry(position=1, time=1, fact=CallTaken(iteration=1, call_id="c", tool_name="t"))
    assert ledger.append_inline(Batch(run_id="run", segment=1, entries=(entry,))) is not None
    return ledger


def test_a_folder_that_cannot_be_looked_into_is_said_in_one_sentence(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    asyncio.run(written(closed / "l.db").close())
    answers = as_nobody(
        ("write", closed / "l.db"), ("read", closed / "l.db"), ("write", closed / "d" / "l.db")
    )
    for answer in answers:
        assert str(answer).startswith("LedgerOpenError: "), answer
        assert "permissions" in str(answer)
        assert "\n" not in str(answer)


def test_a_file_that_cannot_be_read_is_said_in_one_sentence(folder: Path) -> None:
    asyncio.run(written(folder / "l.db").close())
    (folder / "l.db").chmod(0o600)
    (answer,) = as_nobody(("read", folder / "l.db"))
    assert answer == f"LedgerOpenError: The file {folder / 'l.db'} cannot be read; change its permissions."


def test_a_ledger_in_a_folder_that_cannot_be_written_to_is_read(folder: Path) -> None:
    asyncio.run(written(folder / "l.db").close())
    assert as_nobody(("read", folder / "l.db")) == [1]
    assert [path.name for path in folder.iterdir()] == ["l.db"]


def test_a_ledger_that_somebody_else_writes_is_read(folder: Path) -> None:
    ledger = written(folder / "l.db")
    assert as_nobody(("read", folder / "l.db")) == [1]
    asyncio.run(ledger.close())


def test_rows_that_are_only_in_a_log_nobody_may_read_are_never_left_out_silently(folder: Path) -> None:
    ledger = written(folder / "from.db")
    shutil.copy(folder / "from.db", folder / "l.db")
    shutil.copy(folder / "from.db-wal", folder / "l.db-wal")
    asyncio.run(ledger.close())
    (answer,) = as_nobody(("read", folder / "l.db"))
    assert str(answer).startswith(f"LedgerOpenError: {folder / 'l.db'} has rows in its log")
    assert "copy both files" in str(answer)

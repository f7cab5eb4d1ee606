"""A row that was damaged, or is of a newer release, is refused by its number and tells nothing it holds."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path

import pytest

from footprint_core.errors import LedgerReadError
from footprint_observe.store.ledger import SqliteLedger
from footprint_observe.store.verify import heads
from tampering import real_file, tampered

RUN = "a" * 32


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real_file(tmp_path_factory.mktemp("whole") / "l.db")


def refused(path: Path) -> LedgerReadError:
    ledger = SqliteLedger(path)
    with pytest.raises(LedgerReadError) as caught:
        ledger.entries(RUN)
    asyncio.run(ledger.close())
    error: BaseException | None = caught.value
    while error is not None:
        assert "SECRET" not in repr(error)
        error = error.__cause__ or error.__context__
    return caught.value


def test_a_kind_of_a_newer_release_is_refused_by_the_number_of_its_row(whole: Path, tmp_path: Path) -> None:
    path = tampered(whole, tmp_path / "l.db", "UPDATE facts SET kind = 'SECRET' WHERE id = 3")
    assert str(refused(path)) == (
        "The row 3 is of a kind this release does not know; read the file with the release that wrote it."
    )


@pytest.mark.parametrize(
    "tamper",
    [
        "UPDATE facts SET extra = '{\"SECRET' WHERE id = 1",
        "UPDATE facts SET extra = '[\"SECRET\"]' WHERE id = 1",
        "UPDATE facts SET extra = NULL WHERE id = 1",
        "UPDATE facts SET redacted = '{\"SECRET\": 1}' WHERE id = 3",
        "UPDATE facts SET commitments = '[\"SECRET\"]' WHERE id = 3",
        'UPDATE facts SET commitments = \'{"SECRET.\\y":""}\' WHERE id = 3',
        "UPDATE facts SET outcome = 'SECRET' WHERE id = 3",
        "UPDATE vals SET json = '\"SECRET' WHERE fact_id = 3 AND field = 'before'",
        "UPDATE vals SET json = '{\"SECRET\": 1}' WHERE fact_id = 3 AND field = 'before'",
        "UPDATE vals SET json = '\"SECRET' WHERE fact_id = 3 AND field = 'before.zulu'",
    ],
)
def test_a_row_with_a_column_or_a_value_that_cannot_be_read_is_refused_by_its_number(
    whole: Path, tmp_path: Path, tamper: str
) -> None:
    error = refused(tampered(whole, tmp_path / "l.db", tamper))
    assert "cannot be read as it stands in the file; look at it with `footprint verify`." in str(error)


def test_a_text_that_is_no_utf_8_any_more_is_refused_and_not_quoted(whole: Path, tmp_path: Path) -> None:
    for tamper in (
        "UPDATE facts SET extra = CAST(x'534543524554ff' AS TEXT) WHERE id = 1",
        "UPDATE vals SET json = CAST(x'22534543524554ff22' AS TEXT) WHERE fact_id = 3 AND field = 'before'",
    ):
        assert "cannot be read to its end" in str(refused(tampered(whole, tmp_path / "l.db", tamper)))


def test_the_other_runs_of_the_file_are_read(whole: Path, tmp_path: Path) -> None:
    path = tampered(whole, tmp_path / "l.db", "UPDATE facts SET extra = '{' WHERE id = 1")
    ledger = SqliteLedger(path)
    assert ledger.entries("b" * 32)
    asyncio.run(ledger.close())


def test_the_standing_of_a_pause_that_was_damaged_is_refused(whole: Path, tmp_path: Path) -> None:
    path = tampered(whole, tmp_path / "l.db", "UPDATE vals SET json = 'SECRET' WHERE field = 'digest'")
    ledger = SqliteLedger(path)
    with pytest.raises(LedgerReadError, match="cannot be read as it stands"):
        asyncio.run(ledger.pause_standing(RUN, "p" * 32))
    asyncio.run(ledger.close())


def test_pages_that_are_damaged_are_told_as_such_by_every_question(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    shutil.copy(whole, path)
    connection = sqlite3.connect(path)
    roots = connection.execute("SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'facts' AND rootpage > 0")
    places = [root for (root,) in roots]
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    with path.open("r+b") as file:
        for place in places:
            file.seek((place - 1) * size)
            file.write(b"\xa5" * size)
    ledger = SqliteLedger(path)
    for question in (
        lambda: list(heads(path)),
        lambda: list(heads(path, RUN)),
        lambda: asyncio.run(ledger.kept_pause("p")),
        lambda: asyncio.run(ledger.pause_standing(RUN, "p")),
        lambda: asyncio.run(ledger.run_standing(RUN)),
    ):
        with pytest.raises(LedgerReadError, match="pages are damaged"):
            question()
    asyncio.run(ledger.close())

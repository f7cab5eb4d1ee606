"""Files of every schema that was released open, read back as they were written, verify, and go on."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from footprint_core.facts import SegmentEnded
from footprint_core.ledger import Batch, Entry
from footprint_observe import KeyRing, SqliteLedger
from footprint_observe.store.schema import VERSION
from footprint_observe.store.verify import Verified, verify
from independent import first_fault

HERE = Path(__file__).parent
LEDGERS = sorted(HERE.glob("ledger-*.db"))


def _writing() -> Any:
    spec = importlib.util.spec_from_file_location("golden_write", HERE / "write.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


golden = _writing()


@pytest.fixture(params=LEDGERS, ids=lambda path: path.stem)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a golden file, for opening one may change it."""
    return Path(shutil.copy(request.param, tmp_path / request.param.name))


def within(expected: Any, found: Any) -> bool:
    """Whether all that is expected is there; a later release may tell more."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return all(key in found and within(value, found[key]) for key, value in expected.items())
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(within, expected, found))
    return bool(expected == found) and isinstance(expected, bool) == isinstance(found, bool)


def test_there_is_a_golden_file_of_every_schema() -> None:
    assert [path.stem for path in LEDGERS] == [f"ledger-{n}" for n in range(1, VERSION + 1)]


def test_the_schema_of_a_new_file_is_the_one_that_was_released(tmp_path: Path) -> None:
    asyncio.run(SqliteLedger(tmp_path / "l.db").close())
    released = (HERE / f"schema-{VERSION}.sql").read_text(encoding="utf-8")
    assert golden.schema_of(tmp_path / "l.db") == released


def test_it_reads_back_as_it_was_written(kept: Path) -> None:
    expected = json.loads((HERE / f"{kept.stem}.json").read_text(encoding="utf-8"))
    ledger = SqliteLedger(kept)
    found = json.loads(json.dumps(golden.read_back(ledger)))
    asyncio.run(ledger.close())
    assert within(expected, found)
    # So that this test is one: values were masked, and values were cut out.
    texts = json.dumps(expected)
    assert "[redacted]" in texts
    assert '"..."' not in texts


def test_it_verifies_by_this_program_and_by_the_format_alone(kept: Path) -> None:
    asyncio.run(SqliteLedger(kept).close())
    found = verify(kept)
    assert isinstance(found, Verified)
    assert found.erased == 0
    assert found.rows == sum(
        len(rows) for rows in json.loads((HERE / f"{kept.stem}.json").read_text("utf-8")).values()
    )
    assert first_fault(kept) is None


def test_it_is_appended_to(kept: Path) -> None:
    ledger = SqliteLedger(kept)
    (run_id, *_) = golden.RUNS
    position = len(ledger.entries(run_id)) + 1
    fact = SegmentEnded(outcome="answered", iterations=1, input_tokens=1, output_tokens=1, duration_us=1)
    entry = Entry(position=position, time=1, fact=fact)
    assert ledger.append_inline(Batch(run_id=run_id, segment=1, entries=(entry,)))
    assert ledger.entries(run_id)[-1].fact == fact
    asyncio.run(ledger.close())
    assert isinstance(verify(kept), Verified)


def test_the_body_of_its_open_pause_is_read_with_its_key(kept: Path) -> None:
    ledger = SqliteLedger(kept, keys=KeyRing.of(golden.KEYS))
    pause = asyncio.run(ledger.kept_pause(golden.PAUSE))
    asyncio.run(ledger.close())
    assert pause is not None
    assert pause.checkpoint is not None
    assert pause.checkpoint["args"]["password"] == "correct horse"

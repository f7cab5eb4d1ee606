"""What a file holds of a scenario, folded again, agrees with what its facts say."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.play import play
from conformance.reading import OPEN, Case, read_directory
from file_ledger import select
from footprint_core.facts import Fact
from footprint_core.ledger import Marks, masked_fields
from footprint_observe import Redaction, SqliteLedger
from footprint_observe.query.replay import Replay, replay
from story import run
from unguarded import unguarded


class Everything:
    """Keeps no value, and puts something of another type where one was: an object, a number, a text."""

    def __init__(self) -> None:
        self.values = 0
        self._instead: Iterator[Any] = itertools.cycle([{"gone": True}, 5, "[redacted]", None, [], True])

    def redact(self, fact: Fact) -> tuple[Fact, Marks]:
        there = [name for name in masked_fields(fact) if getattr(fact, name) not in (msgspec.UNSET, ())]
        self.values += len(there)
        kept = msgspec.structs.replace(fact, **{name: next(self._instead) for name in there})
        return kept, tuple((name, "mask") for name in there)


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqliteLedger, Everything]]:
    """A ledger that keeps no value, for any number of scenarios."""
    redact = Everything()
    ledger = SqliteLedger(tmp_path_factory.mktemp("masked") / "l.db", redact=redact, durability="process")
    yield ledger, redact
    run(ledger.close())


def played(case: Case, ledger: SqliteLedger) -> list[Replay]:
    """What the replays of a scenario's runs find."""
    ((before,),) = select(ledger.path, "SELECT ifnull(max(id), 0) FROM facts")
    run(play(case.scenario(), ledger))
    runs = select(ledger.path, f"SELECT DISTINCT run_id FROM facts WHERE id > {before}")
    return [replay(ledger.path, run_id) for (run_id,) in runs]


def test_every_run_of_a_scenario_matches(case: Case, file_ledger: SqliteLedger) -> None:
    for found in played(case, file_ledger):
        assert found.matches, found.difference
        assert (found.redacted, found.erased) == (0, 0)


def test_it_matches_when_no_value_was_kept(case: Case, masked: tuple[SqliteLedger, Everything]) -> None:
    ledger, redact = masked
    before = redact.values
    redacted = 0
    for found in played(case, ledger):
        assert found.matches, found.difference
        redacted += found.redacted
    assert redacted == redact.values - before


def test_they_match_when_every_value_was_erased(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db", redact=Redaction.none(), durability="process")
    for case in read_directory(OPEN):
        run(play(case.scenario(), ledger))
    run(ledger.close())
    ((values,),) = select(ledger.path, "SELECT count(*) FROM vals")
    assert values > 1000
    with unguarded(ledger.path) as connection:
        connection.execute("DELETE FROM vals")
    erased = 0
    for (run_id,) in select(ledger.path, "SELECT DISTINCT run_id FROM facts"):
        found = replay(ledger.path, run_id)
        assert found.matches, found.difference
        erased += found.erased
    assert erased == values

"""A word is planted in every value, through every door: no byte that any recorder exports has it."""

from __future__ import annotations

import pytest

from facts_only.shipping import RECORDERS
from facts_only.sweep import Swept, leaks, swept
from footprint_observe.plugins import recorder_names
from planted import WORD
from planted_doors import DOORS
from planted_stories import STORIES


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """What every recorder exported of every conversation."""
    return swept(tmp_path_factory.mktemp("swept"), {**STORIES, **DOORS})


def test_every_recorder_that_is_installed_is_swept() -> None:
    assert {name.partition(",")[0] for name in RECORDERS} == {*recorder_names(), "queued"}


def test_a_word_planted_in_every_value_is_in_no_byte_of_anything_that_is_exported(everything: Swept) -> None:
    assert leaks(everything.held, WORD) == []


def test_through_every_door_the_word_went_in_and_of_every_conversation_each_recorder_told(
    everything: Swept,
) -> None:
    # Beside the system prompt, which every agent has; one conversation has a ledger of its own, and masks.
    few = [name for name, facts in everything.kept.items() if facts.count(WORD.encode()) < 2]
    assert few == ["redacted"]
    assert everything.untold == []


def test_what_the_program_declared_is_in_the_bytes_that_are_looked_through(everything: Swept) -> None:
    # So they are those of the runs, and nothing hides in a packing that nobody undid.
    without = {name for name, data in everything.held.items() if b"planted" not in data}
    assert without == {"log records", "notices", "warnings"}
    assert everything.held["log records"]

"""The mutants are drawn by the commit, and a change that breaks nothing is told."""

from __future__ import annotations

from laws.book import Mutant, mutants
from laws.mutate import drawn, survived


def test_one_commit_draws_the_same_mutants_and_another_commit_others() -> None:
    found = mutants()
    assert drawn(found, "a") == drawn(found, "a")
    assert drawn(found, "a") != drawn(found, "b")
    assert len({mutant.law for mutant in drawn(found, "a")}) == 20


def test_a_change_that_breaks_nothing_survives_and_one_that_does_not_fit_is_told() -> None:
    file, old = "footprint_core/moments.py", "Every moment, in the order one turn reaches them."
    test = ("tests/unit/test_outcomes.py",)
    harmless = Mutant(law="ACT-01", file=file, old=old, new="Every moment.", tests=test)
    misplaced = Mutant(law="ACT-01", file=file, old="no such line", new="", tests=test)
    assert "survived" in str(survived(harmless))
    assert "0 times" in str(survived(misplaced))

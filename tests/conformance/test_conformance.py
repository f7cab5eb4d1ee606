"""Every scenario of a directory comes out as it is expected."""

from __future__ import annotations

from collections import Counter

from conformance.compare import compare
from conformance.play import play
from conformance.played import Played
from conformance.reading import Case
from conformance.world import ReadableLedger
from story import run


def test_a_scenario_comes_out_as_expected(case: Case, played: Played, compared: Counter[str]) -> None:
    report = compare(case.expected, played(case))
    compared.update(report.compared)
    assert not report.differences, "\n".join(map(str, report.differences))


def test_a_scenario_comes_out_the_same_on_a_file(
    case: Case, played: Played, file_ledger: ReadableLedger
) -> None:
    assert run(play(case.scenario(), file_ledger)) == played(case)

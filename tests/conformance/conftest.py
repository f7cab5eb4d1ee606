"""Which scenarios are played, on which ledger, and how much was compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from conformance.ledgers import LedgerKind, open_ledger
from conformance.observed import Observed
from conformance.play import play
from conformance.played import Played
from conformance.reading import OPEN, Case, NoScenariosError, read_directory
from conformance.world import ReadableLedger
from story import run

COMPARED: Final = pytest.StashKey[Counter[str]]()
ALTERED: Final = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--scenarios", metavar="DIR", help="directory of the scenarios to play")
    parser.addoption("--ledger", choices=("memory", "sqlite"), help="what they are played on (memory)")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COMPARED] = Counter()
    config.stash[ALTERED] = Counter()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`case` is one of the chosen directory, `open_case` one of the open scenarios."""
    chosen = metafunc.config.getoption("--scenarios", default=None)
    for fixture, directory in (("case", OPEN if chosen is None else Path(chosen)), ("open_case", OPEN)):
        if fixture in metafunc.fixturenames:
            try:
                cases = read_directory(directory)
            except (NoScenariosError, ValueError) as error:
                raise pytest.UsageError(str(error)) from error
            metafunc.parametrize(fixture, cases, ids=[case.name for case in cases], scope="session")


@pytest.fixture(scope="session")
def ledger(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReadableLedger]:
    """The chosen ledger; every scenario has its own runs in it."""
    kind: LedgerKind = request.config.getoption("--ledger", default=None) or "memory"
    opened = open_ledger(kind, tmp_path_factory.mktemp("ledger"))
    yield opened
    run(opened.close())


@pytest.fixture(scope="session")
def file_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadableLedger]:
    """A ledger in a file."""
    opened = open_ledger("sqlite", tmp_path_factory.mktemp("ledger"))
    yield opened
    run(opened.close())


@pytest.fixture(scope="session")
def played(ledger: ReadableLedger) -> Played:
    """Plays each scenario once."""
    kept: dict[Path, Observed] = {}

    def observed(case: Case) -> Observed:
        if case.path not in kept:
            kept[case.path] = run(play(case.scenario(), ledger))
        return kept[case.path]

    return observed


@pytest.fixture(scope="session")
def compared(pytestconfig: pytest.Config) -> Counter[str]:
    """Items compared so far, by kind."""
    return pytestconfig.stash[COMPARED]


@pytest.fixture(scope="session")
def altered(pytestconfig: pytest.Config) -> Counter[str]:
    """Expected values altered so far, by kind."""
    return pytestconfig.stash[ALTERED]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stash = terminalreporter.config.stash
    for title, counts in (("compared", stash[COMPARED]), ("altered, and noticed", stash[ALTERED])):
        if counts:
            terminalreporter.section(f"conformance: items {title}")
            for kind, count in sorted(counts.items()):
                terminalreporter.write_line(f"{kind:<18}{count:>8}")

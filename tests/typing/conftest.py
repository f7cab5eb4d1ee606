"""One project for all of these tests; it is checked once as it is, and every change of it is undone."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from checkers import CHECKERS, Finding, project


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project(tmp_path_factory.mktemp("typed"))


@pytest.fixture(scope="session", params=["mypy", "pyright"])
def checker(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    pytest.importorskip(name, reason=f"{name} comes with the dev extra")
    return name


@pytest.fixture(scope="session")
def findings(root: Path) -> Callable[[str], list[Finding]]:
    """What a checker says about the project as it is."""

    @cache
    def of(checker: str) -> list[Finding]:
        return CHECKERS[checker](root, "footprint_core", "accepted", "refused")

    return of

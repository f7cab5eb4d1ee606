"""One folder for the projects that are checked, and each checker in turn where it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("projects")


@pytest.fixture(scope="session", params=["mypy", "pyright"])
def checker(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    pytest.importorskip(name, reason=f"{name} comes with the dev extra")
    return name

"""The viewers that tests look through, each started once."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from viewers import jaeger as finding
from viewers.jaeger_server import Jaeger, serving


@pytest.fixture(scope="session")
def jaeger(tmp_path_factory: pytest.TempPathFactory) -> Generator[Jaeger]:
    """A running Jaeger; without one the test is skipped."""
    try:
        program = finding.found()
    except finding.NoJaegerError as error:
        pytest.skip(str(error))
    if program is None:
        pytest.skip("no Jaeger here; `python3 tests/viewers/jaeger.py` builds it")
    with serving(program, tmp_path_factory.mktemp("jaeger") / "log") as running:
        yield running

"""The example keeps the contract. Run by `test_published.py`, where it is installed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from footprint_core import Recorder
from footprint_observe.plugins import recorder
from footprint_observe.testing import RecorderContract


class TestDenialLog(RecorderContract):
    @pytest.fixture(autouse=True)
    def somewhere(self, tmp_path: Path) -> Iterator[None]:
        self.path, self.pipe = tmp_path / "denials", tmp_path / "pipe"
        os.mkfifo(self.pipe)
        yield
        # Whoever still waits for a reader of the pipe gets one.
        os.close(os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK))

    def make(self) -> Recorder:
        made = recorder("denial_log")(self.path)
        assert isinstance(made, Recorder)
        return made

    def stuck(self) -> Recorder:
        made = recorder("denial_log")(self.pipe)
        assert isinstance(made, Recorder)
        return made

    def shipped(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""

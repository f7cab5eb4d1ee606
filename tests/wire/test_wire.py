"""What model providers and tool servers say on the wire, as kept beside this file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("*.json")), ids=lambda path: path.stem)
def test_a_wire_file_is_json(path: Path) -> None:
    assert json.loads(path.read_text(encoding="utf-8"))

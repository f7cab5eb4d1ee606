"""The README's tables say what the code does."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import readme_tables

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_table_of_moments_is_the_one_made_from_the_code() -> None:
    assert readme_tables.moments() in README


def test_the_table_of_verbs_is_the_one_made_from_the_code() -> None:
    assert readme_tables.verbs() in README

"""No complaint is left out, and what `complaints.md` names is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TEXT = (HERE.parent / "complaints.md").read_text()

RULES = (1, 2, 4, 5, 6, 8, 9, 10, 11, 12, 13, 15, 16, 18, 19, 21, 22, 24, 25, 26, 28, 29, 30, 32, 33)
PEOPLE = (
    *(35, 36, 38, 39, 42, 43, 45, 46, 48, 49, 51, 52, 54, 56, 57, 59),
    *(60, 62, 63, 65, 67, 68, 70, 71, 73, 74, 76, 77, 79),
)
TELEMETRY = (80, 82, 83, 85, 86, 88, 89, 91, 92)
WINDOW = (94, 95, 97, 98, 100)
IDS = [f"C{number:03}" for number in (*RULES, *PEOPLE, *TELEMETRY, *WINDOW)]
DECIDED_OTHERWISE = ("C002", "C005", "C022", "C045", "C051", "C052", "C059", "C060", "C080")
"""Entries that a law overrules, as `complaints.md` has to say."""

NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def _lines(id: str) -> list[str]:
    """The lines of the text that are about an entry."""
    return [line for line in TEXT.splitlines() if re.match(rf"(- \*\*|\| )[C\d, ]*{id}\b", line)]


def _tests() -> set[str]:
    return {name for file in HERE.glob("test_*.py") for name in functions(file) if name.startswith("test_c")}


@pytest.mark.parametrize("id", IDS)
def test_an_entry_has_a_test_or_a_line_that_names_one(id: str) -> None:
    own = any(name.startswith(f"test_{id.lower()}_") for name in _tests())
    assert own or any("::" in line for line in _lines(id))
    assert _lines(id), "every entry is in the text"


@pytest.mark.parametrize("id", DECIDED_OTHERWISE)
def test_where_a_law_decides_otherwise_the_law_and_its_test_are_named(id: str) -> None:
    (line,) = [line for line in _lines(id) if line.startswith("- **")]
    assert re.search(r"\b[A-Z]+-\d\d\b", line)
    assert "::" in line


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda part: part)
def test_a_test_that_is_named_exists(path: str, name: str) -> None:
    assert name in functions(ROOT / path)


def test_no_test_and_no_line_is_about_an_entry_there_is_not() -> None:
    tested = {name[5:9].upper() for name in _tests()}
    written = set(re.findall(r"\bC\d{3}\b", TEXT))
    assert tested | written <= set(IDS)
    assert len(IDS) == len(set(IDS)) == 68
    assert NAMED

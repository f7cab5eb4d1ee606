"""The laws as data: which there are, what each says, and the tests that go red when it is broken.

A group is one TOML file in `manifest/`. A law's table has `says` (in a few words) and either `tests`
(`path::function`) or `later` (the work it belongs to).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

GROUPS: dict[str, int] = {
    "ACT": 37,
    "OUT": 32,
    "CHAIN": 44,
    "ROW": 27,
    "REDACT": 15,
    "PAUSE": 39,
    "CHECK": 9,
    "EVENT": 24,
    "WATCH": 17,
    "WIN": 24,
    "PERM": 10,
    "TOOL": 12,
    "CRED": 5,
    "SCHEMA": 9,
    "BUDGET": 6,
    "STREAM": 7,
    "MCP": 14,
    "ERR": 8,
}
"""How many laws each group has; they are numbered from 01."""


class Law(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One law."""

    says: str
    tests: tuple[str, ...] = ()
    later: str | None = None


class Mutant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A one-line change of the source that breaks a law, and the tests that must go red."""

    law: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def ids() -> list[str]:
    """Every law's id."""
    return [f"{group}-{number:02}" for group, count in GROUPS.items() for number in range(1, count + 1)]


def manifest() -> dict[str, Law]:
    """Every law of the manifest."""
    found: dict[str, Any] = {}
    for file in sorted((HERE / "manifest").glob("*.toml")):
        with file.open("rb") as opened:
            found.update(tomllib.load(opened))
    return msgspec.convert(found, dict[str, Law])


def mutants() -> tuple[Mutant, ...]:
    """Every mutant."""
    with (HERE / "mutants.toml").open("rb") as opened:
        return msgspec.convert(tomllib.load(opened)["mutant"], tuple[Mutant, ...])

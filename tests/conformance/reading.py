"""Scenario files: what is played and what is expected, told apart before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import msgspec

from conformance.scenario import Scenario
from conformance.values import Json

OPEN: Final = Path(__file__).parent / "open"
"""The scenarios that are kept here."""

FORMAT: Final = "act-watch-conformance/1"

_ABOUT = ("format", "name", "area", "description", "contradictsDocs")
_EXPECTED = ("expect", "ours")


class NoScenariosError(Exception):
    """A directory has no scenario, so that nothing would be compared."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario file.

    Attributes:
        path: The file.
        name: What the file calls the scenario; the file's own name when it does not say.
        told: What may be played, not looked through yet.
        expected: What has to come of it; where the product has its own answer, that one.
    """

    path: Path
    name: str
    told: dict[str, Json]
    expected: Json

    def scenario(self) -> Scenario:
        """What may be played.

        Raises:
            msgspec.ValidationError: The file says something that is not known here.
        """
        return msgspec.convert(self.told, Scenario)


def read_case(path: Path) -> Case:
    """One file.

    Raises:
        ValueError: It is no scenario of the format that is known.
    """
    content: Json = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path.name} is no scenario of the format {FORMAT}.")
    ours = content.get("ours")
    return Case(
        path=path,
        name=content.get("name") or path.stem,
        told={key: value for key, value in content.items() if key not in _ABOUT + _EXPECTED},
        expected=content.get("expect") if ours is None else ours["expect"],
    )


def read_directory(directory: Path) -> list[Case]:
    """Every scenario of a directory.

    Raises:
        NoScenariosError: There is none.
        ValueError: A file is no scenario, or two have one name.
    """
    cases = [read_case(path) for path in sorted(directory.glob("*.json"))]
    if not cases:
        raise NoScenariosError(f"There is no scenario in {directory}.")
    names = [case.name for case in cases]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"Several files are called {', '.join(sorted(twice))}.")
    return cases

"""The comparison notices every value that is expected, and nothing but values."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from conformance.altering import Place, places
from conformance.compare import Difference, compare, of_step, of_whole
from conformance.observed import Observed
from conformance.play import play
from conformance.played import Played
from conformance.reading import OPEN, Case, NoScenariosError, read_case, read_directory
from conformance.values import Json, is_list, is_object
from footprint_core import MemoryLedger
from story import run

HERE = Path(__file__).parent


def test_a_scenario_with_one_value_altered_is_red(open_case: Case, played: Played) -> None:
    expected = copy.deepcopy(open_case.expected)
    choice = random.Random(open_case.name)
    by_kind: dict[str, list[Place]] = {}
    for place in places(expected):
        by_kind.setdefault(place.kind, []).append(place)
    for kind, found in by_kind.items():
        with choice.choice(found).altered():
            noticed = compare(expected, played(open_case)).differences
        assert kind in {one.kind for one in noticed}


def test_every_expected_value_counts(open_case: Case, played: Played, altered: Counter[str]) -> None:
    expected = copy.deepcopy(open_case.expected)
    observed = played(open_case)
    for place in places(expected):
        with place.altered():
            assert _differences(place, expected, observed), place
        altered[place.kind] += 1


def test_a_scenario_passes_whatever_its_file_is_called_and_however_its_keys_are_ordered(
    open_case: Case, tmp_path: Path
) -> None:
    content = json.loads(open_case.path.read_text(encoding="utf-8"))
    renamed = tmp_path / "0.json"
    renamed.write_text(json.dumps(_shuffled(content, random.Random(open_case.name))), encoding="utf-8")
    case = read_case(renamed)
    assert case.name == open_case.name
    assert not compare(case.expected, run(play(case.scenario(), MemoryLedger()))).differences


def test_what_is_expected_has_no_part_in_what_is_played(
    open_case: Case, tmp_path: Path, played: Played
) -> None:
    content = json.loads(open_case.path.read_text(encoding="utf-8"))
    garbage = tmp_path / "garbage.json"
    garbage.write_text(json.dumps({**content, "expect": "nonsense", "ours": {"expect": 7}}), encoding="utf-8")
    assert run(play(read_case(garbage).scenario(), MemoryLedger())) == played(open_case)


def test_no_code_names_a_scenario() -> None:
    names = [case.name for case in read_directory(OPEN)]
    for path in HERE.rglob("*.py"):
        code = path.read_text(encoding="utf-8")
        assert not [name for name in names if name in code], path.name


def test_a_directory_without_scenarios_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoScenariosError):
        read_directory(tmp_path)
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(HERE / "test_conformance.py"),
        "--scenarios",
        str(tmp_path),
    ]
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=HERE.parents[1], check=False, timeout=60
    )
    assert ended.returncode != pytest.ExitCode.OK, ended.stdout
    assert "no scenario" in ended.stdout + ended.stderr


def _differences(place: Place, expected: Json, observed: Observed) -> list[Difference]:
    if place.step is None:
        return list(of_whole(place.kind, expected, observed))
    return list(of_step(place.step, place.kind, expected, observed))


def _shuffled(value: Json, order: random.Random) -> Json:
    if is_object(value):
        keys = list(value)
        order.shuffle(keys)
        return {key: _shuffled(value[key], order) for key in keys}
    return [_shuffled(part, order) for part in value] if is_list(value) else value

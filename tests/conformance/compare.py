"""Compares what is expected of a scenario with what was observed, kind by kind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import msgspec

from conformance.matching import ABSENT, differences
from conformance.observed import Observed
from conformance.prepare import prepared
from conformance.values import Json, is_list


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Something that did not come as expected; `step` is None for the scenario as a whole."""

    step: int | None
    kind: str
    where: str
    expected: Json
    actual: Json

    def __str__(self) -> str:
        place = "scenario" if self.step is None else f"step {self.step}"
        return (
            f"{place}, {self.kind}{self.where}\n"
            f"    expected {_shown(self.expected)}\n"
            f"    but came {_shown(self.actual)}"
        )


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison found, and how many items of each kind it compared."""

    differences: tuple[Difference, ...]
    compared: Counter[str]


def compare(expected: Json, observed: Observed) -> Report:
    """Compare all that is expected with all that was observed."""
    found: list[Difference] = []
    compared: Counter[str] = Counter()
    for kind in expected.keys() - {"steps"}:
        compared[kind] += _items(expected[kind])
        found += of_whole(kind, expected, observed)
    steps = expected["steps"]
    found += _found(None, "steps", len(steps), len(observed.steps))
    for number, (one, other) in enumerate(zip(steps, observed.steps, strict=False)):
        # What came and was not expected differs as much as what was expected and did not come.
        for kind in sorted(one.keys() | other.keys()):
            wanted, came = prepared(kind, one, other, observed.remote)
            compared[kind] += _items(wanted)
            found += _found(number, kind, wanted, came)
    return Report(differences=tuple(found), compared=compared)


def of_whole(kind: str, expected: Json, observed: Observed) -> Iterator[Difference]:
    """The differences of one kind of the scenario as a whole."""
    return _found(None, kind, expected[kind], observed.whole.get(kind, ABSENT))


def of_step(number: int, kind: str, expected: Json, observed: Observed) -> Iterator[Difference]:
    """The differences of one kind of a step."""
    wanted, came = prepared(kind, expected["steps"][number], observed.steps[number], observed.remote)
    return _found(number, kind, wanted, came)


def _found(step: int | None, kind: str, expected: Json, actual: Json) -> Iterator[Difference]:
    for where, wanted, came in differences(expected, actual):
        yield Difference(step=step, kind=kind, where=where, expected=wanted, actual=came)


def _items(expected: Json) -> int:
    return len(expected) if is_list(expected) else int(expected is not ABSENT)


def _shown(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=repr)
    return text if len(text) <= 400 else f"{text[:400]}... ({len(text)} characters)"

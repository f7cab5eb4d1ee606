"""The lock is locked: whatever is added or dropped at one place only does not pass, and is named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from checkers import CHECKERS, Finding, changed


class Mutation(NamedTuple):
    """A change of one file, and who names the culprit: checkers in `places`, or the import itself."""

    file: str
    old: str
    new: str
    culprit: str
    places: tuple[str, ...] = ()
    at_import: bool = False


MOMENTS = "footprint_core/moments.py"
ACT = "footprint_core/act.py"
FIVE_KEYS = "accepted/five_keys.py"

MUTATIONS = {
    "a sixth moment": Mutation(
        MOMENTS,
        'LoopMoment: TypeAlias = Literal["input", ',
        'LoopMoment: TypeAlias = Literal["before-model", "input", ',
        "before-model",
        (MOMENTS, ACT, FIVE_KEYS),
        at_import=True,
    ),
    "a moment without its place": Mutation(
        MOMENTS,
        'LoopMoment: TypeAlias = Literal["input", "before-tool", "after-tool", "window", "output"]',
        'LoopMoment: TypeAlias = Literal["input", "before-tool", "after-tool", "output"]',
        "window",
        (FIVE_KEYS,),
        at_import=True,
    ),
    "a sixth key": Mutation(
        MOMENTS,
        'ActKey: TypeAlias = Literal["input", ',
        'ActKey: TypeAlias = Literal["before_model", "input", ',
        "before_model",
        (FIVE_KEYS,),
        at_import=True,
    ),
    "an option dropped": Mutation(
        ACT,
        "    after_tool: ResultRules\n",
        "",
        "after_tool",
        (FIVE_KEYS,),
        at_import=True,
    ),
    "an option added": Mutation(
        ACT,
        "    after_tool: ResultRules\n",
        "    after_tool: ResultRules\n    before_model: CallRules\n",
        "before_model",
        at_import=True,
    ),
    "a parameter dropped": Mutation(
        ACT,
        "    before_tool: CallRules = None,\n",
        "",
        "before_tool",
        (ACT,),
        at_import=True,
    ),
    "a parameter added": Mutation(
        ACT,
        "    before_tool: CallRules = None,\n",
        "    before_tool: CallRules = None,\n    before_model: CallRules = None,\n",
        "before_model",
        at_import=True,
    ),
    "a field dropped": Mutation(
        ACT,
        "    after_tool: tuple[Link, ...]\n",
        "",
        "after_tool",
        (ACT,),
        at_import=True,
    ),
    "a field added": Mutation(
        ACT,
        "    after_tool: tuple[Link, ...]\n",
        "    after_tool: tuple[Link, ...]\n    before_model: tuple[Link, ...]\n",
        "before_model",
        (ACT,),
        at_import=True,
    ),
    "an arm for a result": Mutation(
        "footprint_core/outcomes.py",
        "ToolOutcome: TypeAlias = Allow[ToolArgs] | Deny | Ask\n",
        "@final\nclass Result(msgspec.Struct, frozen=True, kw_only=True):\n    value: object\n\n\n"
        "ToolOutcome: TypeAlias = Allow[ToolArgs] | Deny | Ask | Result\n",
        "Result",
        ("accepted/outcome_unions.py",),
    ),
    "a fact nobody folds": Mutation(
        "footprint_core/facts/__init__.py",
        "Fact: TypeAlias = (\n",
        "import msgspec\nfrom typing import ClassVar\n\n\n"
        'class RunForgotten(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="forgotten"):\n'
        "    values: ClassVar[tuple[str, ...]] = ()\n\n\n"
        "Fact: TypeAlias = (\n    RunForgotten |\n",
        "RunForgotten",
        ("footprint_core/state.py", "footprint_core/projection/__init__.py"),
    ),
    "an event nobody expects": Mutation(
        "footprint_core/events/__init__.py",
        "Event: TypeAlias = (\n",
        "from typing import ClassVar\nfrom footprint_core.events.base import EventBase\n\n\n"
        'class RunForgotten(EventBase, frozen=True, kw_only=True, tag_field="type", tag="forgotten"):\n'
        '    type: ClassVar[str] = "forgotten"\n\n\n'
        "Event: TypeAlias = (\n    RunForgotten |\n",
        "RunForgotten",
        ("accepted/every_event.py",),
    ),
}


def test_the_product_passes_as_it_is(checker: str, findings: Callable[[str], list[Finding]]) -> None:
    assert [one for one in findings(checker) if one.file.startswith("footprint_core/")] == []


@pytest.mark.parametrize("name", [name for name, mutation in MUTATIONS.items() if mutation.places])
def test_what_is_changed_at_one_place_only_is_named_by_the_checkers(
    name: str, checker: str, root: Path
) -> None:
    mutation = MUTATIONS[name]
    with changed(root, mutation.file, mutation.old, mutation.new):
        findings = CHECKERS[checker](root, *mutation.places)
    named = {one.file for one in findings if mutation.culprit in one.message}
    assert named >= set(mutation.places), findings


def _imported(root: Path) -> subprocess.CompletedProcess[str]:
    # -B: a compiled file that is as old as a changed one would be believed.
    return subprocess.run(
        [sys.executable, "-B", "-c", "import footprint_core; print(footprint_core.__file__)"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_copy_is_what_is_imported(root: Path) -> None:
    done = _imported(root)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == root / "footprint_core" / "__init__.py"


@pytest.mark.parametrize("name", [name for name, mutation in MUTATIONS.items() if mutation.at_import])
def test_what_is_changed_at_one_place_only_cannot_be_imported(name: str, root: Path) -> None:
    mutation = MUTATIONS[name]
    with changed(root, mutation.file, mutation.old, mutation.new):
        done = _imported(root)
    assert done.returncode == 1
    assert mutation.culprit in done.stderr.splitlines()[-1]

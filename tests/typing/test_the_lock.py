"""The lock is locked: whatever is added or dropped at one place only does not pass, and is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from checkers import Change, Finding, Project, check, folder, home, installed, lay_out


class Mutation(NamedTuple):
    """A change of one file, and who names the culprit: the checkers in `places`, or the import."""

    change: Change
    culprit: str
    places: tuple[str, ...] = ()
    at_import: bool = False


MOMENTS = "footprint_core/moments.py"
ACT = "footprint_core/act.py"
FIVE_KEYS = "accepted/five_keys.py"

MUTATIONS = {
    "a sixth moment": Mutation(
        Change(
            MOMENTS,
            'LoopMoment: TypeAlias = Literal["input", ',
            'LoopMoment: TypeAlias = Literal["before-model", "input", ',
        ),
        "before-model",
        (MOMENTS, ACT, "footprint_core/seams.py", "footprint_core/spec.py", FIVE_KEYS),
        at_import=True,
    ),
    "a moment without its place": Mutation(
        Change(
            MOMENTS,
            'LoopMoment: TypeAlias = Literal["input", "before-tool", "after-tool", "window", "output"]',
            'LoopMoment: TypeAlias = Literal["input", "before-tool", "after-tool", "output"]',
        ),
        "window",
        (FIVE_KEYS,),
        at_import=True,
    ),
    "a sixth key": Mutation(
        Change(
            MOMENTS,
            'ActKey: TypeAlias = Literal["input", ',
            'ActKey: TypeAlias = Literal["before_model", "input", ',
        ),
        "before_model",
        (FIVE_KEYS,),
        at_import=True,
    ),
    "an option dropped": Mutation(
        Change(
            ACT,
            "    after_tool: ResultRules\n",
            "",
        ),
        "after_tool",
        (FIVE_KEYS,),
        at_import=True,
    ),
    "an option added": Mutation(
        Change(
            ACT,
            "    after_tool: ResultRules\n",
            "    after_tool: ResultRules\n    before_model: CallRules\n",
        ),
        "before_model",
        ("footprint_core/builder.py",),
        at_import=True,
    ),
    "a parameter dropped": Mutation(
        Change(
            ACT,
            "    before_tool: CallRules = None,\n",
            "",
        ),
        "before_tool",
        (ACT,),
        at_import=True,
    ),
    "a parameter added": Mutation(
        Change(
            ACT,
            "    before_tool: CallRules = None,\n",
            "    before_tool: CallRules = None,\n    before_model: CallRules = None,\n",
        ),
        "before_model",
        at_import=True,
    ),
    "a field dropped": Mutation(
        Change(
            ACT,
            "    after_tool: tuple[Link, ...]\n",
            "",
        ),
        "after_tool",
        (ACT,),
        at_import=True,
    ),
    "a field added": Mutation(
        Change(
            ACT,
            "    after_tool: tuple[Link, ...]\n",
            "    after_tool: tuple[Link, ...]\n    before_model: tuple[Link, ...]\n",
        ),
        "before_model",
        (ACT,),
        at_import=True,
    ),
    "an arm for a result": Mutation(
        Change(
            "footprint_core/outcomes.py",
            "ToolOutcome: TypeAlias = Allow[ToolArgs] | Deny | Ask\n",
            "@final\nclass Result(msgspec.Struct, frozen=True, kw_only=True):\n    value: object\n\n\n"
            "ToolOutcome: TypeAlias = Allow[ToolArgs] | Deny | Ask | Result\n",
        ),
        "Result",
        ("footprint_core/chain/judge.py", "accepted/outcome_unions.py"),
    ),
    "a fact nobody folds": Mutation(
        Change(
            "footprint_core/facts/__init__.py",
            "Fact: TypeAlias = (\n",
            "import msgspec\nfrom typing import ClassVar\n\n\n"
            "class RunForgotten(msgspec.Struct, frozen=True, kw_only=True):\n"
            "    values: ClassVar[tuple[str, ...]] = ()\n\n\n"
            "Fact: TypeAlias = (\n    RunForgotten |\n",
        ),
        "RunForgotten",
        ("footprint_core/state.py", "footprint_core/projection/__init__.py"),
    ),
    "a pause nobody shows": Mutation(
        Change(
            "footprint_core/facts/words.py",
            'PauseKind: TypeAlias = Literal["ask", ',
            'PauseKind: TypeAlias = Literal["vote", "ask", ',
        ),
        "vote",
        ("footprint_core/loop/show_pause.py",),
    ),
    "an outcome nobody handles": Mutation(
        Change(
            "footprint_core/pause/results.py",
            "Outcome: TypeAlias = Answer | AskPause | CheckInPause | HumanPause\n",
            "class VotePause(msgspec.Struct, frozen=True, kw_only=True):\n    question: str\n\n\n"
            "Outcome: TypeAlias = Answer | AskPause | CheckInPause | HumanPause | VotePause\n",
        ),
        "VotePause",
        ("accepted/people.py",),
    ),
    "an event nobody expects": Mutation(
        Change(
            "footprint_core/events/__init__.py",
            "Event: TypeAlias = (\n",
            "from typing import ClassVar\nfrom footprint_core.events.base import EventBase\n\n\n"
            "class RunForgotten(EventBase, frozen=True, kw_only=True):\n"
            '    type: ClassVar[str] = "forgotten"\n\n\n'
            "Event: TypeAlias = (\n    RunForgotten |\n",
        ),
        "RunForgotten",
        ("accepted/every_event.py",),
    ),
}


AS_IT_IS = "as it is"
EVERY_PLACE = tuple(sorted({place for mutation in MUTATIONS.values() for place in mutation.places}))
PROJECTS = {
    AS_IT_IS: Project(EVERY_PLACE),
    **{name: Project(mutation.places, mutation.change) for name, mutation in MUTATIONS.items()},
}
CHECKED = {name: project for name, project in PROJECTS.items() if project.paths}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return home(tmp_path_factory)


@pytest.fixture(scope="module", params=["mypy", "pyright"])
def checker(request: pytest.FixtureRequest) -> str:
    return installed(request.param)


@pytest.fixture(scope="module")
def said(checker: str, root: Path) -> dict[str, list[Finding]]:
    return check(checker, root, CHECKED)


def test_the_product_passes_as_it_is(said: dict[str, list[Finding]]) -> None:
    assert said[AS_IT_IS] == []


@pytest.mark.parametrize("name", [name for name in CHECKED if name != AS_IT_IS])
def test_what_is_changed_at_one_place_only_is_named_by_the_checkers(
    name: str, said: dict[str, list[Finding]]
) -> None:
    mutation = MUTATIONS[name]
    named = {one.file for one in said[name] if mutation.culprit in one.message}
    assert named >= set(mutation.places), said[name]


def _imported(at: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "import footprint_core; print(footprint_core.__file__)"],
        cwd=at,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_copy_is_what_is_imported(root: Path) -> None:
    lay_out(root, PROJECTS)
    at = folder(root, AS_IT_IS)
    done = _imported(at)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == at / "footprint_core" / "__init__.py"


@pytest.mark.parametrize("name", [name for name, mutation in MUTATIONS.items() if mutation.at_import])
def test_what_is_changed_at_one_place_only_cannot_be_imported(name: str, root: Path) -> None:
    lay_out(root, PROJECTS)
    done = _imported(folder(root, name))
    assert done.returncode == 1
    assert MUTATIONS[name].culprit in done.stderr.splitlines()[-1]

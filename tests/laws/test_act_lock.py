"""Five moments, a key for each, and nothing of either that the other does not know."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any, Unpack, get_args, get_type_hints

import pytest

import footprint_core
import footprint_observe
import recorders
from footprint_core import (
    ACT_KEYS,
    LOOP_MOMENTS,
    ActKey,
    ActOptions,
    AgentBuilder,
    LoopMoment,
    UnknownMomentError,
    act_key_for,
    allow,
    sliding_window,
)
from footprint_core.facts import RuleRef, RunConfigured
from ruled import Played, answers, play, rule_at

MOMENTS: tuple[LoopMoment, ...] = ("input", "before-tool", "after-tool", "window", "output")
KEYS: tuple[ActKey, ...] = ("input", "before_tool", "after_tool", "window", "output")


def test_there_are_five_moments_in_the_order_a_turn_reaches_them() -> None:
    assert LOOP_MOMENTS == MOMENTS
    assert get_args(LoopMoment) == MOMENTS


def _lists(tree: ast.AST) -> Iterator[set[object]]:
    """The words of everything that is written as a list: a list, a tuple, a set, a Literal, a dict's keys."""
    for node in ast.walk(tree):
        match node:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                yield {part.value for part in parts if isinstance(part, ast.Constant)}
            case ast.Dict(keys=parts):
                yield {part.value for part in parts if isinstance(part, ast.Constant)}
            case _:
                pass


def test_the_moments_are_listed_in_one_place() -> None:
    roots = [Path(next(iter(one.__path__))) for one in (footprint_core, footprint_observe, recorders)]
    sources = {
        str(file.relative_to(root)): file.read_text(encoding="utf-8")
        for root in roots
        for file in sorted(root.rglob("*.py"))
    }
    found = [
        file
        for file, source in sources.items()
        if "window" in source and "output" in source
        for words in _lists(ast.parse(source))
        if words >= {*MOMENTS} or words >= {*KEYS}
    ]
    # The second list is the one of the keys.
    assert found == ["moments.py", "moments.py"]


def _posture(played: Played) -> dict[LoopMoment, tuple[RuleRef, ...]]:
    (configured,) = (fact for fact in played.facts if isinstance(fact, RunConfigured))
    return configured.rules


def test_the_posture_of_a_run_names_every_moment_in_this_order() -> None:
    assert tuple(_posture(play())) == MOMENTS


def test_there_are_five_keys_and_they_are_those_of_the_moments() -> None:
    assert ACT_KEYS == KEYS
    assert tuple(map(act_key_for, LOOP_MOMENTS)) == ACT_KEYS
    assert get_args(ActKey) == KEYS


@pytest.mark.parametrize("moment", LOOP_MOMENTS)
def test_a_key_is_its_moment_with_another_stroke(moment: LoopMoment) -> None:
    assert act_key_for(moment) == moment.replace("-", "_")


@pytest.mark.parametrize(
    "word", ["before_tool", "after_tool", "model", "Input", " input", "", None, 0, ("input",)]
)
def test_a_word_that_is_no_moment_has_no_key(word: Any) -> None:
    with pytest.raises(UnknownMomentError) as caught:
        act_key_for(word)
    assert all(moment in str(caught.value) for moment in MOMENTS)


def _import_anew(patch: pytest.MonkeyPatch, changes: dict[str, tuple[str, str]]) -> None:
    """Import the moments and the keys from changed source, as `python -OO` does: without asserts."""
    for name in ("moments", "act"):
        file = Path(footprint_core.__file__ or "").with_name(f"{name}.py")
        source = file.read_text(encoding="utf-8")
        for old, (where, new) in changes.items():
            if where == name:
                assert source.count(old) == 1, old
                source = source.replace(old, new)
        module = ModuleType(f"footprint_core.{name}")
        patch.setitem(sys.modules, module.__name__, module)
        exec(compile(source, str(file), "exec", optimize=2), module.__dict__)


SIXTH_ARM = '        case "input":\n            return "input"\n'
DIFFERENT: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "a moment without a key": (
        "before_model",
        {
            'LoopMoment: TypeAlias = Literal["input", ': (
                "moments",
                'LoopMoment: TypeAlias = Literal["before-model", "input", ',
            ),
            SIXTH_ARM: (
                "moments",
                f'        case "before-model":\n            return "before_model"\n{SIXTH_ARM}',
            ),
        },
    ),
    "a moment nobody spells as a key": (
        "before-model",
        {
            'LoopMoment: TypeAlias = Literal["input", ': (
                "moments",
                'LoopMoment: TypeAlias = Literal["before-model", "input", ',
            )
        },
    ),
    "a key without a moment": (
        "before_model",
        {
            'ActKey: TypeAlias = Literal["input", ': (
                "moments",
                'ActKey: TypeAlias = Literal["before_model", "input", ',
            )
        },
    ),
    "a moment dropped": (
        "window",
        {
            'LoopMoment: TypeAlias = Literal["input", "before-tool", "after-tool", "window", ': (
                "moments",
                'LoopMoment: TypeAlias = Literal["input", "before-tool", "after-tool", ',
            )
        },
    ),
    "a key dropped": (
        "window",
        {
            'ActKey: TypeAlias = Literal["input", "before_tool", "after_tool", "window", ': (
                "moments",
                'ActKey: TypeAlias = Literal["input", "before_tool", "after_tool", ',
            )
        },
    ),
    "an option added": (
        "route",
        {"    input: MessageRules\n": ("act", "    input: MessageRules\n    route: CallRules\n")},
    ),
    "an option dropped": ("input", {"    input: MessageRules\n": ("act", "")}),
    "a keyword added": (
        "route",
        {
            "    input: MessageRules = None,\n": (
                "act",
                "    input: MessageRules = None,\n    route: CallRules = None,\n",
            )
        },
    ),
    "a keyword dropped": ("output", {"    output: MessageRules = None,\n": ("act", "")}),
}


@pytest.mark.parametrize("different", DIFFERENT)
def test_a_moment_without_a_key_and_a_key_without_a_moment_cannot_be_imported(
    different: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    culprit, changes = DIFFERENT[different]
    with pytest.raises(Exception, match=culprit):
        _import_anew(monkeypatch, changes)


def test_unchanged_they_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    _import_anew(monkeypatch, {})
    assert sys.modules["footprint_core.act"].ACT_KEYS == ACT_KEYS


def test_act_takes_exactly_the_options() -> None:
    assert get_type_hints(AgentBuilder.act, include_extras=True)["options"] == Unpack[ActOptions]
    assert ActOptions.__optional_keys__ == set(ACT_KEYS)
    assert not ActOptions.__required_keys__


@pytest.mark.parametrize(
    "name", ["LOOP_MOMENTS", "ACT_KEYS", "act_key_for", "LoopMoment", "ActKey", "ActOptions"]
)
def test_the_words_of_act_are_exported(name: str) -> None:
    assert name in footprint_core.__all__
    assert getattr(footprint_core, name) is not None


GIVEN: dict[str, Any] = {
    "input": [rule_at("input", answers(allow()), "i")],
    "before_tool": [rule_at("before-tool", answers(allow()), "b")],
    "after_tool": [rule_at("after-tool", answers(allow()), "a")],
    "window": sliding_window(keep_recent_turns=9),
    "output": [rule_at("output", answers(allow()), "o")],
}


@pytest.mark.parametrize("keys", [keys for count in range(6) for keys in combinations(KEYS, count)])
def test_any_of_the_five_keys_may_be_left_out(keys: tuple[str, ...]) -> None:
    posture = _posture(play({key: GIVEN[key] for key in keys}))
    # A rule about one message stands, as a pass-through, at the other one too.
    named = {key: [ref.name for ref in posture[moment]] for key, moment in zip(KEYS, MOMENTS, strict=True)}
    messages = [name for key, name in (("input", "i"), ("output", "o")) if key in keys]
    assert named == {
        "input": messages,
        "before_tool": ["b"] if "before_tool" in keys else [],
        "after_tool": ["a"] if "after_tool" in keys else [],
        "window": ["sliding-window"] if "window" in keys else [],
        "output": messages,
    }

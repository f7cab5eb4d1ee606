"""The version of a rule stands in its rows: what the rule says, or a hash of its hooks' code."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from footprint_core import (
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    allow,
    before_tool,
    deny,
    on_message,
    sliding_window,
)
from footprint_core.chain.links import link
from footprint_core.events import AgentConfigured
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run

HASH = re.compile(r"[0-9a-f]{12}")


def version(hook: Callable[..., object], **stated: Any) -> str | None:
    """The version of a rule whose one hook is this."""
    odd: Any = hook
    return link(before_tool("rule", **stated)(odd)).version


def _made(source: str) -> Any:
    """The function `rule` of a source text."""
    space: dict[str, Any] = {}
    exec(source, space)
    return space["rule"]


def pay(amount: int) -> str:
    return f"paid {amount}"


PAYS = [reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")]


def test_a_rule_that_states_no_version_carries_a_hash_of_its_code_in_rows_and_posture() -> None:
    @before_tool("bare")
    def bare(_: ToolCallContext) -> ToolOutcome:
        return allow()

    stated = on_message("stated", version="2026-07")(lambda _: allow())
    seen = Seen()
    builder, _ = describe(
        PAYS,
        pay,
        act={"input": [stated], "before_tool": [bare], "window": sliding_window(keep_recent_turns=9)},
        watch=[seen],
    )
    rows = answered(run(builder.build().run("go"))).decisions
    found = {row.middleware: row.version for row in rows}
    assert found == {"bare": version(bare.on_tool_call), "stated": "2026-07"}
    assert HASH.fullmatch(str(found["bare"]))
    # A link that only passes through says its version too.
    assert [row.version for row in rows if row.moment == "output"] == ["2026-07"]
    rules = seen.of(AgentConfigured)[0].rules
    assert {ref.name: ref.version for refs in rules.values() for ref in refs} == {
        **found,
        "sliding-window": None,
    }


def test_a_version_is_read_once() -> None:
    class Rule:
        name = "rule"
        version = 7

        def on_tool_call(self, call: ToolCallContext) -> ToolOutcome:
            return allow()

    rule = Rule()
    builder, _ = describe(PAYS, pay, act={"before_tool": [rule]})
    agent = builder.build()
    rule.version = 8
    assert answered(run(agent.run("go"))).decisions[0].version == "7"


RULE = """
def rule(call, limit=100, *, tiers=("gold", 2.5, None)):
    "Refuse what is too much."
    known = [name for name in (call.name,) if name in {"alpha", "beta", "gamma", "delta", "epsilon"}]
    try:
        return sorted(known, key=lambda name: (len(name), name))[:limit]
    except (TypeError, ValueError):
        return None
"""


def test_it_is_the_same_in_every_process_wherever_the_code_stands(tmp_path: Path) -> None:
    program = "from footprint_core.chain.links import link; from rules import rule; print(link(rule).version)"
    found: set[str] = set()
    for seed, lead in (("1", ""), ("2", "\n# moved down\n\n"), ("77", "import os\n")):
        folder = tmp_path / f"at-{seed}"
        folder.mkdir()
        made = f"{lead}from footprint_core import before_tool\n{RULE}\nrule = before_tool('rule')(rule)\n"
        (folder / "rules.py").write_text(made, encoding="utf-8")
        # In front of the path that this process finds the package by.
        path = os.pathsep.join([str(folder), *filter(None, sys.path)])
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, env=env
        )
        found.add(done.stdout.strip())
    assert found == {version(_made(RULE))}
    assert HASH.fullmatch(found.pop())


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("limit=100", "limit=101"),
        ("2.5", "2.0"),
        ("None)", "False)"),
        ('"epsilon"', '"zeta"'),
        ("len(name)", "hash(name)"),
        ("name in {", "name not in {"),
        ("ValueError", "KeyError"),
        ("return None", "raise"),
        ("(len(name), name)", "(name, len(name))"),
    ],
)
def test_it_changes_when_the_code_does(was: str, becomes: str) -> None:
    assert was in RULE
    assert version(_made(RULE)) != version(_made(RULE.replace(was, becomes)))


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("def rule", "# why it is so\n\n\ndef rule"),
        ("return None", "return   None  # nothing"),
        ("limit=100", "limit: int = 100"),
        ("def rule(", "def other("),
    ],
)
def test_it_does_not_change_with_what_is_no_code(was: str, becomes: str) -> None:
    moved = RULE.replace(was, becomes) + ("\nrule = other" if "other" in becomes else "")
    assert version(_made(RULE)) == version(_made(moved))


def test_it_does_not_change_while_the_code_runs() -> None:
    def hook(context: Any) -> Any:
        total = 0
        for number in range(100):
            total += number * 2
        return total

    before = version(hook)
    for _ in range(200):
        hook(None)
    assert version(hook) == before


def test_a_default_that_is_no_plain_value_counts_by_its_place_only() -> None:
    def made(given: Any) -> Any:
        def hook(context: Any, given: Any = given) -> Any:
            return given

        return hook

    assert version(made(object())) == version(made(object())) == version(made([1]))
    assert version(made(1)) != version(made(2))
    assert version(made(True)) != version(made(1))
    assert version(made(1 << 60000)) != version(made(1 << 60001))
    assert version(made(frozenset("ab"))) == version(made(frozenset("ba")))


class Ceiling:
    """A rule with two hooks."""

    name = "ceiling"

    def on_tool_call(self, call: ToolCallContext) -> ToolOutcome:
        return allow()

    def on_tool_result(self, call: ToolResultContext) -> ToolResultOutcome:
        return allow()


def test_all_hooks_of_a_rule_count() -> None:
    class Other(Ceiling):
        def on_tool_result(self, call: ToolResultContext) -> ToolResultOutcome:
            return deny("no")

    class Same(Ceiling):
        pass

    assert link(Ceiling()).version == link(Same()).version
    assert link(Ceiling()).version != link(Other()).version


def test_code_is_found_behind_methods_partials_callables_and_decorators() -> None:
    def hook(context: Any) -> Any:
        return allow()

    class Calls:
        def __call__(self, context: Any) -> Any:
            return allow()

        def method(self, context: Any) -> Any:
            return deny("no")

    @functools.wraps(hook)
    def wrapping(context: Any) -> Any:
        return hook(context) or deny("nothing")

    plain = version(hook)
    assert version(functools.partial(hook)) == plain
    assert version(functools.lru_cache(hook)) == plain
    assert version(Calls().method) == version(Calls.method)
    assert version(Calls()) == version(Calls.__call__)
    assert version(wrapping) not in {plain, None}
    wrapped: Any = wrapping
    wrapped.__wrapped__ = wrapping
    assert version(wrapping) not in {plain, None}


def test_a_rule_whose_code_cannot_be_had_has_no_version() -> None:
    assert version(len) is None
    assert version(dict) is None
    half: Any = type("Half", (Ceiling,), {"on_tool_result": len})()
    assert link(half).version is None
    builder, _ = describe(PAYS, pay, act={"before_tool": [before_tool("odd")(len)]})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert "version" not in answered(run(builder.build().run("go"))).decisions[0].to_dict()

"""What no rule can reach: the model's reply before it is recorded, the tool's run, the schema."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

import footprint_core
from footprint_core import (
    AgentBuilder,
    MessageRule,
    ToolCallRule,
    ToolResultRule,
    UnknownActKeyError,
    allow,
)
from footprint_core.facts import ModelReplied, OutputJudged, ToolFinished
from footprint_core.providers import reply
from ruled import PAYS, RESULT, Played, paying, rule_at
from story import answered


class Eager:
    """A rule that would take any hook there is: whatever is looked up on it can be called."""

    name = "eager"
    version = timeout = None

    def __init__(self) -> None:
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def hook(*_: Any, **__: Any) -> Any:
            self.called.append(name)
            return allow()

        return hook


def test_only_the_three_hooks_of_a_rule_are_ever_called() -> None:
    rule: Any = Eager()
    builder, model = paying()
    played = Played(builder.act(input=[rule], output=[rule]).tool_middleware(rule), model).go()
    assert rule.called == ["on_message", "on_tool_call", "on_tool_result", "on_message"]
    assert (played.ran, len(model.requests)) == ([5], len(PAYS))


def test_a_rule_protocol_has_its_one_hook() -> None:
    for protocol, hook in (
        (ToolCallRule, "on_tool_call"),
        (ToolResultRule, "on_tool_result"),
        (MessageRule, "on_message"),
    ):
        public = {name for name in vars(protocol) if not name.startswith("_")}
        assert public == {"name", hook}


def test_no_door_of_the_builder_takes_a_rule_for_the_model_or_the_tool() -> None:
    doors = {name for name, _ in inspect.getmembers(AgentBuilder, inspect.isfunction) if name[0] != "_"}
    assert doors == {
        "act",
        "build",
        "credentials",
        "ledger",
        "message_middleware",
        "output_schema",
        "permission",
        "spec",
        "system",
        "tool",
        "tool_middleware",
        "watch",
        "window",
    }


class Meddles:
    """Replaces whatever it is shown."""

    name = "meddles"

    def on_message(self, _: Any) -> Any:
        return allow("meddled", why="it can")

    def on_tool_call(self, _: Any) -> Any:
        return allow({"amount": 7}, why="it can")

    def on_tool_result(self, _: Any) -> Any:
        return allow("meddled", why="it can")


def test_the_models_reply_and_the_tools_result_are_recorded_as_they_came() -> None:
    rule = Meddles()
    builder, model = paying()
    played = Played(builder.act(input=[rule], output=[rule]).tool_middleware(rule), model).go()
    replied = [fact for fact in played.facts if isinstance(fact, ModelReplied)]
    assert [(fact.text, fact.calls) for fact in replied] == [(one.text, one.tool_calls) for one in PAYS]
    finished = [fact for fact in played.facts if isinstance(fact, ToolFinished)]
    # The tool was run, by the args a rule made; its own result is on record, not what the model reads.
    assert [fact.result for fact in finished] == [{**RESULT, "paid": 7}]
    assert (played.ran, played.read) == ([7], "meddled")


@pytest.mark.parametrize("key", ["output_schema", "schema", "model", "before_model", "tool", "llm"])
def test_neither_model_nor_tool_nor_schema_has_a_key(key: str) -> None:
    options: Any = {key: []}
    with pytest.raises(UnknownActKeyError, match=key):
        paying()[0].act(**options)


def test_a_schema_is_declared_and_judges_behind_the_output_rules() -> None:
    def mend(_: Any) -> Any:
        return allow(json.dumps({"total": 5}), why="as it was asked for")

    builder, model = paying([*PAYS[:1], reply(text="five")])
    schema = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
    builder.act(output=[rule_at("output", mend, "mend")]).output_schema(schema)
    played = Played(builder, model).go()
    assert played.outcome is not None
    assert (answered(played.outcome).value, answered(played.outcome).schema_met) == ({"total": 5}, True)
    (judged,) = (fact for fact in played.facts if isinstance(fact, OutputJudged))
    assert judged.outcome == "passed"
    # It files no decision row, and stands under no moment of the posture.
    assert [row["middleware"] for row in played.rows] == ["mend", "mend"]
    assert played.facts.index(judged) > max(
        index for index, fact in enumerate(played.facts) if getattr(fact, "middleware", None) == "mend"
    )


def test_what_makes_a_rule_is_made_for_a_tool_or_a_message() -> None:
    hooks = {name for name in dir(footprint_core) if name.startswith(("on_", "before_", "after_"))}
    assert hooks == {"on_message", "before_tool", "after_tool"}

"""Rules decide about single calls, in a fixed order, in every kind of step of a turn."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from footprint_core import (
    AssistantMessage,
    Decision,
    MemoryLedger,
    MessageContext,
    ToolCallContext,
    ToolResultContext,
    after_tool,
    allow,
    before_tool,
    deny,
    on_message,
)
from footprint_core.events import ModelCallEnded, ModelCallStarted
from footprint_core.facts import CallTaken, ModelAsked
from footprint_core.providers import Completed, call, reply
from story import Seen, answered, describe, run


def _calls(*numbers: int) -> Completed:
    return reply(text="working", calls=[call(f"c{n}", "act", {"n": n}) for n in numbers])


class Steps(msgspec.Struct, kw_only=True):
    """A turn: what the model says, the texts that would be its answer, and the calls that are taken up."""

    said: list[Completed]
    finals: list[str]
    taken: int
    options: dict[str, Any] = {}
    schema: bool = False


STEPS = {
    "an answer": Steps(said=[reply(text="a")], finals=["a"], taken=0),
    "iterations": Steps(said=[_calls(1), _calls(2), reply(text="a")], finals=["a"], taken=2),
    "a batch": Steps(said=[_calls(1, 2, 3), reply(text="a")], finals=["a"], taken=3),
    "a batch at once": Steps(
        said=[_calls(1, 2, 3), reply(text="a")], finals=["a"], taken=3, options={"parallel_tools": True}
    ),
    "a tool that raises": Steps(said=[_calls(0), reply(text="a")], finals=["a"], taken=1),
    "wrapped up": Steps(
        said=[_calls(1), _calls(2), reply(text="a")], finals=["a"], taken=1, options={"max_iterations": 2}
    ),
    "cut short": Steps(
        said=[_calls(1), _calls(2)],
        finals=["working"],
        taken=1,
        options={"max_iterations": 2, "wrap_up": False},
    ),
    "asked for its shape again": Steps(
        said=[_calls(1), reply(text="no json"), reply(text="{}")],
        finals=["no json", "{}"],
        taken=1,
        schema=True,
    ),
}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_c029_every_kind_of_step_meets_its_rules_and_is_told(steps: Steps, streaming: bool) -> None:
    def act(n: int) -> int:
        return 1 // n

    seen, ledger = Seen(), MemoryLedger()
    finals: list[str] = []

    def look(message: MessageContext) -> Any:
        finals.append(message.content)
        return allow()

    builder, model = describe(
        steps.said,
        act,
        ledger=ledger,
        watch=[seen],
        act={
            "before_tool": [before_tool("b")(lambda _: allow())],
            "after_tool": [after_tool("a")(lambda _: allow())],
            "output": [on_message("o")(look)],
        },
        **steps.options,
    )
    model.streaming = streaming
    if steps.schema:
        builder.output_schema({"type": "object"}, retries=1)
    outcome = answered(run(builder.build().run("go")))
    model.assert_used()
    facts = [entry.fact for entry in ledger.entries(outcome.run_id)]
    asked = sum(isinstance(fact, ModelAsked) for fact in facts)
    assert asked == len(model.requests) == len(seen.of(ModelCallStarted)) == len(seen.of(ModelCallEnded))
    assert finals == steps.finals
    assert sum(isinstance(fact, CallTaken) for fact in facts) == steps.taken
    for moment in ("before-tool", "after-tool"):
        assert len([row for row in outcome.decisions if row.moment == moment]) == steps.taken
    assert len([row for row in outcome.decisions if row.moment == "output"]) == len(steps.finals)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
def test_c032_a_rule_before_a_tool_is_asked_before_its_body_and_one_behind_it_after(
    parallel: bool, is_async: bool
) -> None:
    order: list[str] = []

    def noting(word: str) -> Any:
        def note(context: ToolCallContext) -> Any:
            order.append(f"{word} {context.tool_call_id}")
            return allow()

        async def awaited(context: ToolCallContext) -> Any:
            return note(context)

        return awaited if is_async else note

    def act(n: int) -> int:
        order.append(f"body c{n}")
        return n

    builder, _ = describe(
        [_calls(1, 2), reply(text="done")],
        act,
        act={
            "before_tool": [before_tool("b")(noting("before"))],
            "after_tool": [after_tool("a")(noting("after"))],
        },
        parallel_tools=parallel,
    )
    answered(run(builder.build().run("go")))
    for one in ("c1", "c2"):
        assert [step for step in order if step.endswith(one)] == [
            f"before {one}",
            f"body {one}",
            f"after {one}",
        ]
    assert [step for step in order if step.startswith("after")] == ["after c1", "after c2"]
    assert len(order) == 6


def test_c016_a_rule_decides_about_a_single_call_and_its_siblings_go_on() -> None:
    ran: list[int] = []

    def act(n: int) -> int:
        ran.append(n)
        return n

    def not_two(asked: ToolCallContext) -> Any:
        return deny("not two") if asked.args["n"] == 2 else allow()

    def no_three(ended: ToolResultContext) -> Any:
        return deny("no three") if ended.result == 3 else allow()

    builder, model = describe(
        [_calls(1, 2, 3), reply(text="done")],
        act,
        act={"before_tool": [before_tool("b")(not_two)], "after_tool": [after_tool("a")(no_three)]},
    )
    answered(run(builder.build().run("go")))
    assert ran == [1, 3]
    assert [message.text for message in model.requests[1].messages[2:]] == ["1", "not two", "no three"]


@pytest.mark.parametrize("parallel", [False, True])
def test_c033_a_rule_is_asked_about_every_call_and_sees_the_batch_it_came_in(parallel: bool) -> None:
    ran: list[int] = []

    def act(n: int) -> int:
        ran.append(n)
        return n

    def at_most_two_in_a_batch(asked: ToolCallContext) -> Any:
        batch = next(m for m in reversed(asked.history) if isinstance(m, AssistantMessage))
        place = [one.id for one in batch.calls].index(asked.tool_call_id)
        return allow(why=f"{place + 1} of {len(batch.calls)}") if place < 2 else deny("two are enough")

    builder, _ = describe(
        [_calls(1, 2, 3), _calls(4), reply(text="done")],
        act,
        act={"before_tool": [before_tool("b")(at_most_two_in_a_batch)]},
        parallel_tools=parallel,
    )
    rows: tuple[Decision, ...] = answered(run(builder.build().run("go"))).decisions
    assert [row.why for row in rows] == ["1 of 3", "2 of 3", "two are enough", "1 of 1"]
    assert sorted(ran) == [1, 2, 4]

"""The row of a decision: one for each, in the order they were made, with the keys it has and no others."""

from __future__ import annotations

import re
from typing import Any

import pytest

from footprint_core import (
    LOOP_MOMENTS,
    Decision,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    MessageOutcome,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    before_tool,
    deny,
    on_message,
)
from footprint_core.mcp import mock_mcp_client
from footprint_core.providers import call, reply
from story import answered, describe, run

TWO_CALLS = [
    reply(calls=[call("c1", "pay", {"amount": 1}), call("c2", "pay", {"amount": 2})]),
    reply(text="done"),
]
ONE_CALL = [reply(calls=[call("c1", "pay", {"amount": 1})]), reply(text="done")]


def pay(amount: int) -> dict[str, int]:
    """Pay."""
    return {"paid": amount}


class Everywhere:
    """A rule with every hook, which remembers when it was asked."""

    def __init__(self, name: str, asked: list[tuple[str, str]]) -> None:
        self.name = name
        self._asked = asked

    def on_message(self, message: MessageContext, /) -> MessageOutcome:
        self._asked.append((self.name, message.phase))
        return allow()

    def on_tool_call(self, call: ToolCallContext, /) -> ToolOutcome:
        self._asked.append((self.name, "before-tool"))
        return allow()

    def on_tool_result(self, call: ToolResultContext, /) -> ToolResultOutcome:
        self._asked.append((self.name, "after-tool"))
        return allow()


def messages(name: str, *, input: Any = None, output: Any = None) -> Any:
    """A message rule that answers so."""

    @on_message(name)
    def rule(message: MessageContext) -> MessageOutcome:
        answer = input if message.phase == "input" else output
        return allow() if answer is None else answer

    return rule


def before(name: str, answer: Any) -> Any:
    @before_tool(name)
    def rule(call: ToolCallContext) -> ToolOutcome:
        return answer  # type: ignore[no-any-return]

    return rule


def after(name: str, answer: Any) -> Any:
    @after_tool(name)
    def rule(call: ToolResultContext) -> ToolResultOutcome:
        return answer  # type: ignore[no-any-return]

    return rule


def rows_of(replies: Any, act: Any, *tools: Any) -> list[Decision]:
    """The rows of one run, however it ended."""
    ledger = MemoryLedger()
    builder, _ = describe(replies, *(tools or (pay,)), act=act, ledger=ledger)
    agent = builder.build()

    async def go() -> None:
        try:
            await agent.run("hello there")
        except MessageDeniedError:
            return

    run(go())
    assert agent.last_run_id is not None
    return list(ledger.decisions(agent.last_run_id))


def test_n_hooks_asked_are_n_rows_in_the_order_they_were_asked() -> None:
    asked: list[tuple[str, str]] = []
    rules = [Everywhere("a", asked), Everywhere("b", asked)]
    builder, _ = describe(TWO_CALLS, pay)
    agent = builder.tool_middleware(*rules).message_middleware(*rules).build()
    rows = answered(run(agent.run("hello"))).decisions
    one_call = [("a", "before-tool"), ("b", "before-tool"), ("b", "after-tool"), ("a", "after-tool")]
    assert asked == [("a", "input"), ("b", "input"), *one_call, *one_call, ("a", "output"), ("b", "output")]
    assert [(row.middleware, row.moment) for row in rows] == asked
    assert [row.tool_call_id for row in rows] == [None] * 2 + ["c1"] * 4 + ["c2"] * 4 + [None] * 2
    assert [row.position for row in rows] == sorted({row.position for row in rows})


ANSWERS: list[tuple[str, Any, bool]] = [
    ("input", {"input": [messages("m", input=allow("hi", why="short"))]}, True),
    ("input", {"input": [messages("m", input=deny("no"))]}, False),
    ("before-tool", {"before_tool": [before("m", allow())]}, False),
    ("before-tool", {"before_tool": [before("m", allow(why="fine"))]}, False),
    ("before-tool", {"before_tool": [before("m", allow({"amount": 9}, why="more"))]}, True),
    ("before-tool", {"before_tool": [before("m", allow({"amount": 1}, why="equal"))]}, False),
    ("before-tool", {"before_tool": [before("m", deny("no"))]}, False),
    ("before-tool", {"before_tool": [before("m", ask("sure?"))]}, False),
    ("after-tool", {"after_tool": [after("m", allow([], why="empty"))]}, True),
    ("after-tool", {"after_tool": [after("m", allow(None, why="nothing"))]}, True),
    ("after-tool", {"after_tool": [after("m", deny("no"))]}, True),
    ("output", {"output": [messages("m", output=allow("bye", why="short"))]}, True),
    ("output", {"output": [messages("m", output=allow("", why="silent"))]}, True),
    ("output", {"output": [messages("m", output=deny("no"))]}, False),
]


@pytest.mark.parametrize(("moment", "act", "changed"), ANSWERS)
def test_every_row_says_who_where_when_and_what(moment: str, act: Any, changed: bool) -> None:
    (row,) = [row for row in rows_of(ONE_CALL, act) if row.moment == moment]
    out = row.to_dict()
    assert out["middleware"] == "m"
    assert out["moment"] in LOOP_MOMENTS
    assert out["at"] == ("tool" if moment.endswith("-tool") else "message")
    assert type(out["iteration"]) is int
    assert out["outcome"] in {"allow", "deny", "ask"}
    assert out["changed"] is changed
    assert type(out["position"]) is int
    assert re.fullmatch("[0-9a-f]{32}", out["run_id"])
    assert out["segment"] == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", out["recorded_at"])


@pytest.mark.parametrize(("moment", "act", "changed"), ANSWERS)
def test_before_and_after_are_there_exactly_when_something_changed(
    moment: str, act: Any, changed: bool
) -> None:
    rows = [row.to_dict() for row in rows_of(ONE_CALL, act)]
    assert [row["changed"] for row in rows if row["moment"] == moment] == [changed]
    for row in rows:
        assert ("before" in row, "after" in row) == (row["changed"], row["changed"])


def test_rows_about_messages_have_a_phase_and_rows_about_tools_have_a_call() -> None:
    asked: list[tuple[str, str]] = []
    rule = Everywhere("a", asked)
    builder, _ = describe(ONE_CALL, pay)
    agent = builder.tool_middleware(rule).message_middleware(rule).build()
    rows = [row.to_dict() for row in answered(run(agent.run("hello"))).decisions]
    assert [row["moment"] for row in rows] == ["input", "before-tool", "after-tool", "output"]
    for row in rows:
        tool_fields = {"tool_name", "tool_call_id", "tool_source"} & row.keys()
        if row["at"] == "message":
            assert row["phase"] == row["moment"]
            assert not tool_fields
        else:
            assert "phase" not in row
            assert (row["tool_name"], row["tool_call_id"]) == ("pay", "c1")


def test_the_source_of_a_tool_stands_in_its_rows_when_it_has_one() -> None:
    served = mock_mcp_client("billing", [pay]).tools_now()
    act: Any = {"before_tool": [before("b", allow())], "after_tool": [after("a", allow())]}
    assert [row.to_dict()["tool_source"] for row in rows_of(ONE_CALL, act, *served)] == ["billing"] * 2
    own = rows_of(ONE_CALL, act, pay)
    assert len(own) == 2
    assert all("tool_source" not in row.to_dict() for row in own)


def test_iteration_is_0_at_input_and_from_1_in_the_loop() -> None:
    asked: list[tuple[str, str]] = []
    rule = Everywhere("a", asked)
    replies = [
        reply(calls=[call("c1", "pay", {"amount": 1})]),
        reply(calls=[call("c2", "pay", {"amount": 2})]),
        reply(text="done"),
    ]
    builder, _ = describe(replies, pay)
    agent = builder.tool_middleware(rule).message_middleware(rule).build()
    rows = answered(run(agent.run("hello"))).decisions
    assert [(row.moment, row.iteration) for row in rows] == [
        ("input", 0),
        ("before-tool", 1),
        ("after-tool", 1),
        ("before-tool", 2),
        ("after-tool", 2),
        ("output", 3),
    ]


@pytest.mark.parametrize(
    ("act", "why"),
    [
        ({"before_tool": [before("m", allow())]}, None),
        ({"before_tool": [before("m", allow(why="harmless"))]}, "harmless"),
        ({"before_tool": [before("m", allow({"amount": 9}, why="more"))]}, "more"),
        ({"before_tool": [before("m", deny("too much"))]}, "too much"),
        ({"before_tool": [before("m", ask("sure?"))]}, "sure?"),
        ({"after_tool": [after("m", deny("withheld"))]}, "withheld"),
        ({"after_tool": [after("m", allow(None, why="gone"))]}, "gone"),
        ({"input": [messages("m", input=allow("hi", why="short"))]}, "short"),
        ({"input": [messages("m", input=deny("rude"))]}, "rude"),
        ({"output": [messages("m", output=deny("secret"))]}, "secret"),
    ],
)
def test_why_is_the_reason_or_the_question_and_absent_for_a_bare_allow(act: Any, why: str | None) -> None:
    bucket = next(iter(act))
    (row,) = [row for row in rows_of(ONE_CALL, act) if row.moment == bucket.replace("_", "-")]
    assert row.to_dict().get("why") == why
    assert ("why" in row.to_dict()) == (why is not None)


@pytest.mark.parametrize(
    "act",
    [
        {"before_tool": [before("m", deny("no"))]},
        {"before_tool": [before("m", ask("sure?"))]},
        {"input": [messages("m", input=deny("no"))]},
        {"output": [messages("m", output=deny("no"))]},
    ],
)
def test_refused_content_is_not_copied_into_the_row(act: Any) -> None:
    rows = [row for row in rows_of([*ONE_CALL[:1], reply(text="the answer")], act) if row.outcome != "allow"]
    (row,) = rows
    assert row.changed is False
    assert not {"before", "after"} & row.to_dict().keys()
    assert not any(held in str(row.to_dict()) for held in ("hello there", "the answer", "amount"))


def test_the_row_of_a_link_that_only_passes_through_has_no_duration() -> None:
    act: Any = {"input": [messages("front")], "output": [messages("back")]}
    rows = rows_of([reply(text="done")], act)
    timed = {(row.middleware, row.moment): row.duration_us for row in rows}
    assert list(timed) == [("front", "input"), ("back", "input"), ("front", "output"), ("back", "output")]
    assert timed["front", "input"] is not None
    assert timed["back", "output"] is not None
    guarded = [row for row in rows if row.duration_us is None]
    assert [(row.middleware, row.moment) for row in guarded] == [("back", "input"), ("front", "output")]
    assert not any({"duration", "why"} & row.to_dict().keys() for row in guarded)

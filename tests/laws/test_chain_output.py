"""The output moment: when its chain runs, over which text, and what the answer then is everywhere."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import (
    Answer,
    AskPause,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    ToolCallContext,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    on_message,
)
from footprint_core.events import RouteDecided
from footprint_core.facts import OutputJudged, SegmentEnded
from footprint_core.providers import Completed, call, reply
from story import Seen, answered, describe, run

CALLS = reply(text="let me look", calls=[call("c1", "look", {})])
WORD = {"type": "object", "required": ["word"], "properties": {"word": {"type": "string"}}}


async def look() -> str:
    """Look."""
    return "seen"


class Speaks:
    """A rule that keeps every answer it is asked about, and may change or refuse one."""

    name = "speaks"

    def __init__(self, said: Any = None) -> None:
        self.asked: list[str] = []
        self._said = said

    def on_message(self, message: MessageContext) -> Any:
        if message.phase == "input":
            return allow()
        self.asked.append(message.content)
        if callable(self._said):
            return self._said(message.content)
        return allow() if self._said is None else self._said


def speaking(rule: Speaks, replies: list[Completed], *tools: Any, **options: Any) -> Any:
    builder, model = describe(replies, *(tools or (look,)), **options)
    return builder.message_middleware(rule), model


def _at_output(answer: Answer) -> list[tuple[int, str, bool]]:
    return [(row.iteration, row.outcome, row.changed) for row in answer.decisions if row.moment == "output"]


def loud(text: str) -> Any:
    return allow(text.upper(), why="louder")


def test_the_output_chain_runs_over_the_final_answer_and_over_no_turn_whose_calls_are_dispatched() -> None:
    rule = Speaks(loud)
    builder, _ = speaking(rule, [CALLS, CALLS, reply(text="found")])
    out = answered(run(builder.build().run("go")))
    assert rule.asked == ["found"]
    assert out.text == "FOUND"
    assert _at_output(out) == [(3, "allow", True)]


@pytest.mark.parametrize("resumed", [False, True])
def test_an_answer_behind_a_pause_has_been_through_the_chain_too(resumed: bool) -> None:
    rule = Speaks(loud)
    builder, _ = speaking(rule, [CALLS, reply(text="found")])
    agent = builder.tool_middleware(*_asking(resumed)).build()

    async def story() -> Answer:
        outcome = await agent.run("go")
        if isinstance(outcome, AskPause):
            assert rule.asked == []
            outcome = await agent.resume(outcome.checkpoint, check_in_approved(by="dana"))
        return answered(outcome)

    assert run(story()).text == "FOUND"
    assert rule.asked == ["found"]


def _asking(asks: bool) -> list[Any]:
    def hook(_: ToolCallContext) -> Any:
        return ask("may I?")

    return [before_tool("asks")(hook)] if asks else []


@pytest.mark.parametrize(
    ("wrap_up", "last", "text", "stopped"),
    [
        (True, reply(text="in short"), "IN SHORT", True),
        (True, reply(text="still looking", calls=CALLS.tool_calls), "STILL LOOKING", True),
        (False, None, "LET ME LOOK", True),
    ],
)
def test_every_text_that_is_returned_has_been_through_the_chain_also_when_the_budget_is_spent(
    wrap_up: bool, last: Completed | None, text: str, stopped: bool
) -> None:
    rule = Speaks(loud)
    said = [CALLS, CALLS, *([] if last is None else [last])]
    builder, model = speaking(rule, said, max_iterations=2, wrap_up=wrap_up)
    out = answered(run(builder.build().run("go")))
    assert out.text == text
    assert rule.asked == [text.lower()]
    assert (out.stopped_early is not None) is stopped
    assert len(model.requests) == len(said)
    assert _at_output(out) == [(len(said), "allow", True)]


def test_a_refused_wrap_up_is_not_released() -> None:
    rule = Speaks(deny("not that"))
    builder, _ = speaking(rule, [CALLS, reply(text="in short")], max_iterations=1)
    with pytest.raises(MessageDeniedError):
        run(builder.build().run("go"))
    assert rule.asked == ["in short"]


@pytest.mark.parametrize("made", ["", "WE say hi", "größer"])
def test_after_a_transform_answer_conversation_and_ledger_hold_the_same_text(made: str) -> None:
    ledger = MemoryLedger()
    rules = [Speaks(lambda text: allow(f"{text}?", why="unsure"))]
    builder, model = speaking(rules[0], [reply(text="Bluebird says hi"), reply(text="bye")], ledger=ledger)
    last = on_message("last")(lambda m: allow(made, why="name") if "Bluebird" in m.content else allow())
    agent = builder.message_middleware(last).build()

    async def story() -> Answer:
        first = answered(await agent.run("one"))
        await agent.follow_up("two")
        return first

    out = run(story())
    assert out.text == made
    assert [message.text for message in model.requests[1].messages] == ["one", made, "two"]
    ends = [entry.fact for entry in ledger.entries(out.run_id) if isinstance(entry.fact, SegmentEnded)]
    assert [end.text for end in ends] == [made]
    after = [row.after for row in out.decisions if row.moment == "output"]
    assert after == ["Bluebird says hi?", made]


def test_each_attempt_goes_through_the_chain_again_and_files_a_group_of_rows_of_its_iteration() -> None:
    seen = Seen()
    first, second = Speaks(allow(why="looked")), Speaks()
    second.name = "second"
    texts = ("one", '{"word":2}', '{"word":"yes"}')
    said = [reply(text=text) for text in texts]
    builder, model = speaking(first, [said[0], CALLS, *said[1:]], watch=[seen])
    builder.message_middleware(second).output_schema(WORD, retries=2)
    out = answered(run(builder.build().run("go")))
    assert out.text == '{"word":"yes"}'
    assert first.asked == second.asked == [*texts]
    rows = [(row.iteration, row.middleware) for row in out.decisions if row.moment == "output"]
    assert rows == [(i, name) for i in (1, 3, 4) for name in ("speaks", "second")]
    assert len(model.requests) == 4


def test_a_wrap_up_and_a_retry_are_attempts_of_their_own() -> None:
    rule = Speaks()
    builder, _ = speaking(rule, [reply(text="one"), CALLS, reply(text="in short")], max_iterations=2)
    out = answered(run(builder.output_schema(WORD, retries=5).build().run("go")))
    assert rule.asked == ["one", "in short"]
    assert [iteration for iteration, _, _ in _at_output(out)] == [1, 3]


def test_a_refused_answer_is_neither_judged_by_the_schema_nor_asked_for_again() -> None:
    judged: list[Any] = []

    class Shape:
        instruction = "Answer in JSON."

        def check(self, value: Any) -> object:
            judged.append(value)
            raise ValueError("never good enough")

    seen, ledger = Seen(), MemoryLedger()
    rule = Speaks(deny("not that"))
    builder, model = speaking(rule, [reply(text='{"a":1}'), reply(text="{}")], watch=[seen], ledger=ledger)
    agent = builder.output_schema(Shape(), retries=3).build()
    with pytest.raises(MessageDeniedError) as refused:
        run(agent.run("go"))
    assert refused.value.phase == "output"
    assert judged == []
    assert len(model.requests) == 1
    facts = [entry.fact for entry in ledger.entries(agent.last_run_id)]
    assert not [fact for fact in facts if isinstance(fact, OutputJudged)]
    assert not [type for type in seen.types if type.startswith("agent.output_")]


def _order(seen: Seen) -> list[str]:
    """The order of routes and output decisions."""
    order: list[str] = []
    for event in seen.events:
        if isinstance(event, RouteDecided):
            order.append(event.chosen)
        elif getattr(event, "moment", None) == "output":
            order.append("decided")
    return order


@pytest.mark.parametrize("said", [None, deny("no")])
def test_without_a_schema_the_route_is_told_before_the_output_decisions(said: Any) -> None:
    seen = Seen()
    builder, _ = speaking(Speaks(said), [CALLS, reply(text="done")], watch=[seen])
    agent = builder.build()
    if said is None:
        run(agent.run("go"))
    else:
        with pytest.raises(MessageDeniedError):
            run(agent.run("go"))
    assert _order(seen) == ["tool-calls", "final", "decided"]


@pytest.mark.parametrize(
    ("texts", "retries", "routes"),
    [
        (['{"word":"yes"}'], 1, ["decided", "final"]),
        (["no", '{"word":"yes"}'], 1, ["decided", "output-retry", "decided", "final"]),
        (["no", "no"], 1, ["decided", "output-retry", "decided", "final"]),
        (["no"], 0, ["decided", "final"]),
    ],
)
def test_with_a_schema_the_route_follows_the_decisions_and_is_the_one_really_taken(
    texts: list[str], retries: int, routes: list[str]
) -> None:
    seen = Seen()
    replies = [CALLS, *[reply(text=text) for text in texts]]
    builder, model = speaking(Speaks(), replies, watch=[seen])
    run(builder.output_schema(WORD, retries=retries).build().run("go"))
    assert _order(seen) == ["tool-calls", *routes]
    assert len(model.requests) == len(replies)


def test_with_a_schema_a_refused_answer_and_a_wrap_up_are_told_as_what_they_were() -> None:
    seen = Seen()
    builder, _ = speaking(Speaks(deny("no")), [CALLS, reply(text="no")], watch=[seen], max_iterations=1)
    with pytest.raises(MessageDeniedError):
        run(builder.output_schema(WORD, retries=2).build().run("go"))
    assert _order(seen) == ["wrap-up", "decided", "final"]

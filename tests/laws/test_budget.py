"""The budget of a turn: what counts, what happens when it ends, and that a pause does not refill it."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import (
    Agent,
    Answer,
    AskPause,
    AssistantMessage,
    BuilderError,
    MessageContext,
    MessageOutcome,
    ToolCallContext,
    ToolMessage,
    ToolOutcome,
    UserMessage,
    allow,
    ask,
    before_tool,
    check_in_approved,
    on_message,
    sliding_window,
)
from footprint_core.events import BudgetSpent, IterationStarted, TurnEnded
from footprint_core.facts import EarlyStop, Usage
from footprint_core.providers import Completed, Scripted, call, reply
from story import Seen, answered, describe, run

YES = check_in_approved(by="dana")


class Steps:
    """A tool that counts how often it ran."""

    def __init__(self) -> None:
        self.ran: list[int] = []

    def tool(self) -> Any:
        def step(n: int) -> int:
            """Step."""
            self.ran.append(n)
            return n

        return step


def wants(n: int, *more: int, text: str = "", usage: Usage | None = None) -> Completed:
    """A reply that asks for steps."""
    calls = [call(f"c{i}", "step", {"n": i}) for i in (n, *more)]
    return reply(text=text, calls=calls, usage=usage or Usage(input=10, output=5))


def agent_of(*replies: Completed, **options: Any) -> tuple[Agent, Scripted, Steps]:
    steps = Steps()
    builder, model = describe(replies, steps.tool(), **options)
    return builder.build(), model, steps


def test_ten_model_calls_are_the_budget_of_a_turn_unless_it_is_said() -> None:
    agent, model, steps = agent_of(*map(wants, range(20)), wrap_up=False)
    answer = answered(run(agent.run("go")))
    assert len(model.requests) == 10
    assert steps.ran == list(range(9))
    assert answer.stopped_early is not None
    assert answer.stopped_early.iteration == 10


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_every_turn_has_a_budget_of_its_own(limit: int) -> None:
    agent, model, steps = agent_of(*map(wants, range(20)), max_iterations=limit, wrap_up=False)

    async def go() -> None:
        answered(await agent.run("go"))
        assert len(model.requests) == limit
        answered(await agent.follow_up("and on"))

    run(go())
    assert len(model.requests) == 2 * limit
    assert len(steps.ran) == 2 * (limit - 1)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "3", None])
def test_a_budget_below_one_model_call_is_refused(limit: Any) -> None:
    with pytest.raises(BuilderError, match="max_iterations"):
        Agent.create(provider=Scripted([]), model="m", name="tested", max_iterations=limit)


def test_a_turn_whose_budget_ends_is_closed_by_one_more_call_without_tools() -> None:
    seen = Seen()
    replies = [wants(1), wants(2, 3, text="let me see"), reply(text="so far"), reply(text="never asked for")]
    agent, model, steps = agent_of(*replies, max_iterations=2, watch=[seen])
    answer = answered(run(agent.run("go")))
    assert answer.text == "so far"
    assert steps.ran == [1]
    assert [bool(request.tools) for request in model.requests] == [True, True, False]
    sent = model.requests[2].messages[:]
    assert [type(message) for message in sent] == [UserMessage, AssistantMessage, ToolMessage, UserMessage]
    # The turn whose calls nobody answers is not sent; the instruction is nobody's request.
    assert sent[:3] == model.requests[1].messages[:]
    kinds = [message.kind for message in sent if isinstance(message, UserMessage)]
    assert kinds == ["request", "instruction"]
    assert [event.iteration for event in seen.of(IterationStarted)] == [1, 2, 3]
    (exhausted,) = seen.of(BudgetSpent)
    assert (exhausted.iteration, exhausted.limit, exhausted.pending_tool_calls) == (2, 2, 2)
    assert exhausted.action == "wrapped-up"


def test_the_instruction_never_becomes_the_request_a_window_keeps() -> None:
    replies = [wants(1), wants(2), reply(text="so far")]
    window: Any = {"window": sliding_window(keep_recent_turns=1)}
    agent, model, _ = agent_of(*replies, max_iterations=2, act=window, keep_last_tool_results=0)
    assert answered(run(agent.run("the request"))).text == "so far"
    texts = [message.text for message in model.requests[2].messages if isinstance(message, UserMessage)]
    assert texts[0] == "the request"


@pytest.mark.parametrize("again", [wants(8, 9, text="one more?"), wants(8)])
def test_a_turn_is_closed_like_that_at_most_once(again: Completed) -> None:
    seen = Seen()
    agent, model, steps = agent_of(wants(1), again, reply(text="no"), max_iterations=1, watch=[seen])
    answer = answered(run(agent.run("go")))
    assert answer.text == again.text
    assert len(model.requests) == 2
    assert steps.ran == []
    assert len(seen.of(BudgetSpent)) == 1
    early = EarlyStop(reason="max-iterations", iteration=1, pending_tool_calls=1, wrapped_up=True)
    assert answer.stopped_early == early


def test_a_closed_turn_is_not_asked_again_for_its_shape() -> None:
    steps = Steps()
    builder, model = describe([wants(1), reply(text="no number")], steps.tool(), max_iterations=1)
    answer = answered(run(builder.output_schema(int, retries=3).build().run("go")))
    assert (len(model.requests), answer.schema_met) == (2, False)


@pytest.mark.parametrize("text", ["as far as I came", ""])
def test_without_closing_the_turn_ends_on_the_last_text_and_raises_nothing(text: str) -> None:
    seen = Seen()
    replies = [wants(1, text="first"), wants(2, 3, text=text), reply(text="never asked for")]
    agent, model, steps = agent_of(*replies, max_iterations=2, wrap_up=False, watch=[seen])
    answer = answered(run(agent.run("go")))
    assert (answer.text, steps.ran, len(model.requests)) == (text, [1], 2)
    assert [event.action for event in seen.of(BudgetSpent)] == ["cut-short"]
    (end,) = seen.of(TurnEnded)
    assert end.outcome == "answered"


@pytest.mark.parametrize("wrap_up", [True, False])
def test_the_answer_and_the_end_of_the_turn_say_why_it_stopped(wrap_up: bool) -> None:
    seen = Seen()
    replies = [wants(1), wants(2, 3, 4), *([reply(text="so far")] if wrap_up else [])]
    agent, _, _ = agent_of(*replies, max_iterations=2, wrap_up=wrap_up, watch=[seen])
    answer = answered(run(agent.run("go")))
    early = EarlyStop(reason="max-iterations", iteration=2, pending_tool_calls=3, wrapped_up=wrap_up)
    assert answer.stopped_early == early
    (end,) = seen.of(TurnEnded)
    assert end.stopped_early == early
    assert end.iteration_count == (3 if wrap_up else 2)


def test_a_turn_that_was_not_stopped_says_nothing_about_it() -> None:
    seen = Seen()
    agent, _, _ = agent_of(wants(1), reply(text="done"), max_iterations=2, watch=[seen])
    assert answered(run(agent.run("go"))).stopped_early is None
    assert seen.of(TurnEnded)[0].stopped_early is None
    assert not seen.of(BudgetSpent)


@on_message("loud")
def loud(message: MessageContext) -> MessageOutcome:
    return allow(message.content.upper(), why="loud") if message.phase == "output" else allow()


@pytest.mark.parametrize("wrap_up", [True, False])
def test_the_text_of_a_stopped_turn_goes_through_the_output_rules(wrap_up: bool) -> None:
    replies = [wants(1, text="so far"), *([reply(text="so far")] if wrap_up else [])]
    agent, _, _ = agent_of(*replies, max_iterations=1, wrap_up=wrap_up, act={"output": [loud]})
    assert answered(run(agent.run("go"))).text == "SO FAR"


@before_tool("four-eyes")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    return ask("Really?") if call.args["n"] == 1 else allow()


async def through(agent: Agent) -> Answer:
    pause = await agent.run("go")
    assert isinstance(pause, AskPause)
    return answered(await agent.resume(pause.checkpoint, YES))


def test_a_pause_and_its_resume_spend_one_budget() -> None:
    replies = [wants(0), wants(1), wants(2), wants(3), wants(4)]
    options: Any = {"max_iterations": 3, "wrap_up": False, "act": {"before_tool": [four_eyes]}}
    agent, model, steps = agent_of(*replies, **options)
    answer = run(through(agent))
    assert len(model.requests) == 3
    assert steps.ran == [0, 1]
    assert answer.stopped_early == EarlyStop(reason="max-iterations", iteration=3, pending_tool_calls=1)


def test_a_pause_at_the_last_model_call_leaves_the_closing_one() -> None:
    replies = [wants(1), wants(2), reply(text="so far")]
    agent, model, steps = agent_of(*replies, max_iterations=2, act={"before_tool": [four_eyes]})
    answer = run(through(agent))
    assert (answer.text, steps.ran, len(model.requests)) == ("so far", [1], 3)
    assert answer.stopped_early is not None
    assert answer.stopped_early.wrapped_up


def test_the_tokens_at_the_end_of_a_turn_are_those_of_the_whole_run() -> None:
    seen = Seen()
    replies = [
        wants(0, usage=Usage(input=100, output=1)),
        wants(1, usage=Usage(input=200, output=20)),
        reply(text="done", usage=Usage(input=400, output=300)),
        reply(text="again", usage=Usage(input=7, output=8)),
    ]
    agent, _, _ = agent_of(*replies, watch=[seen], act={"before_tool": [four_eyes]})

    async def go() -> None:
        await through(agent)
        answered(await agent.follow_up("and on"))

    run(go())
    totals = [(e.outcome, e.total_input_tokens, e.total_output_tokens) for e in seen.of(TurnEnded)]
    assert totals == [("paused", 300, 21), ("answered", 700, 321), ("answered", 7, 8)]

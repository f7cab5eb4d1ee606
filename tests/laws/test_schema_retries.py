"""An answer without the declared shape is asked for again, while retries and the budget last."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from footprint_core import (
    Answer,
    AskPause,
    AssistantMessage,
    BuilderError,
    MemoryLedger,
    MessageContext,
    MessageOutcome,
    OutputSchemaError,
    RunError,
    ToolCallContext,
    ToolOutcome,
    UserMessage,
    allow,
    ask,
    before_tool,
    check_in_approved,
    on_message,
    tool,
)
from footprint_core.events import (
    IterationStarted,
    OutputRetried,
    OutputUnmet,
    RouteDecided,
    TurnEnded,
)
from footprint_core.facts import OutputJudged
from footprint_core.providers import Completed, Scripted, call, reply
from story import Seen, answered, describe, run

CANARY = "validator-canary"


class Ten:
    """A schema that takes the number ten, and says what it thinks of others."""

    instruction = ""

    def check(self, value: Any, /) -> object:
        if value != 10:
            raise ValueError(f"{CANARY}: ten is expected")
        return value


class Asked:
    """An agent that has to answer ten."""

    def __init__(self, *said: Completed | str, retries: int = 0, rules: Any = (), **options: Any) -> None:
        self.seen, self.ledger = Seen(), MemoryLedger()
        replies = [one if isinstance(one, Completed) else reply(text=one) for one in said]
        builder, self.model = describe(replies, tap, watch=[self.seen], ledger=self.ledger, **options)
        self.builder = builder.output_schema(Ten(), retries=retries).act(output=list(rules))
        self.agent = self.builder.build()

    def go(self) -> Answer:
        return answered(run(self.agent.run("go")))

    @property
    def attempts(self) -> list[OutputJudged]:
        run_id = self.agent.last_run_id
        assert run_id is not None
        return [e.fact for e in self.ledger.entries(run_id) if isinstance(e.fact, OutputJudged)]


@tool(name="tap", inline=True)
def tap() -> str:
    """Tap."""
    return "tapped"


def sent(model: Scripted) -> list[tuple[str, str]]:
    """The last request, as kinds and texts."""
    return [(m.kind if isinstance(m, UserMessage) else m.role, m.text) for m in model.requests[-1].messages]


def test_the_answer_and_a_correction_that_quotes_the_validator_are_put_into_the_conversation() -> None:
    asked = Asked("9", "no json", "10", retries=2)
    assert asked.go().value == 10
    request, first, correction, second, another = sent(asked.model)
    assert (request, first, second) == (("request", "go"), ("assistant", "9"), ("assistant", "no json"))
    assert correction[0] == another[0] == "instruction"
    assert f"{CANARY}: ten is expected" in correction[1]
    assert CANARY not in another[1]
    assert "JSON" in another[1]
    texts = [getattr(attempt, "correction", None) for attempt in asked.attempts]
    assert texts[:2] == [correction[1], another[1]]
    # Each costs one iteration, in which tools are offered as before.
    assert [e.iteration for e in asked.seen.of(IterationStarted)] == [1, 2, 3]
    assert {len(request.tools) for request in asked.model.requests} == {1}
    assert [e.chosen for e in asked.seen.of(RouteDecided)] == ["output-retry", "output-retry", "final"]


def test_what_is_put_back_is_the_text_as_the_output_rules_left_it() -> None:
    @on_message("mask")
    def mask(message: MessageContext) -> MessageOutcome:
        masked = message.content.replace("hunter2", "***")
        return allow(masked, why="masked") if message.phase == "output" else allow()

    asked = Asked('"hunter2"', "10", retries=1, rules=[mask])
    assert asked.go().value == 10
    assert sent(asked.model)[1] == ("assistant", '"***"')
    assert "hunter2" not in repr(asked.model.requests[-1].messages[:])
    assert asked.attempts[0].text == '"***"'


@pytest.mark.parametrize("retries", [0, 1, 2, 3])
def test_with_the_retries_spent_the_answer_is_returned_as_it_is_and_told_once(retries: int) -> None:
    asked = Asked(*["9"] * 5, retries=retries)
    answer = asked.go()
    assert (answer.text, answer.schema_met, answer.value) == ("9", False, None)
    assert answer.schema_stage == "schema-validate"
    assert len(asked.model.requests) == retries + 1
    assert [a.outcome for a in asked.attempts] == ["retried"] * retries + ["exhausted"]
    (unmet,) = asked.seen.of(OutputUnmet)
    assert (unmet.attempts, unmet.iteration, unmet.stage) == (retries + 1, retries + 1, "schema-validate")
    assert unmet.broken_by is None
    assert [e.outcome for e in asked.seen.of(TurnEnded)] == ["answered"]


def test_the_answer_that_does_not_match_belongs_to_the_conversation() -> None:
    asked = Asked("9", "10")

    async def story() -> None:
        answered(await asked.agent.run("go"))
        assert answered(await asked.agent.follow_up("again")).value == 10

    run(story())
    assert sent(asked.model) == [("request", "go"), ("assistant", "9"), ("request", "again")]


@pytest.mark.parametrize("retries", [-1, True, False, 1.0, "2", None, [1]])
def test_retries_are_a_whole_number_of_at_least_none(retries: Any) -> None:
    builder, _ = describe([])
    with pytest.raises(BuilderError, match="retries"):
        builder.output_schema(Ten(), retries=retries)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_retry_needs_an_iteration_of_the_budget(limit: int) -> None:
    asked = Asked(*["9"] * 9, retries=9, max_iterations=limit)
    answer = asked.go()
    assert (answer.schema_met, answer.stopped_early) == (False, None)
    assert len(asked.model.requests) == limit
    assert [a.outcome for a in asked.attempts] == ["retried"] * (limit - 1) + ["exhausted"]
    assert len(asked.seen.of(OutputUnmet)) == 1


def test_tools_and_retries_spend_one_budget() -> None:
    taps = [reply(calls=[call(f"c{n}", "tap", {})]) for n in range(2)]
    asked = Asked(taps[0], "9", taps[1], "9", "10", retries=9, max_iterations=4)
    assert asked.go().schema_met is False
    assert len(asked.model.requests) == 4
    assert [(a.attempt, a.iteration, a.outcome) for a in asked.attempts] == [
        (1, 2, "retried"),
        (2, 4, "exhausted"),
    ]


def test_a_retry_is_told_by_numbers_and_the_validators_text_is_in_the_ledger_only() -> None:
    asked = Asked("9", "no json", "8", retries=2)
    asked.go()
    told = [(e.attempt, e.retries_remaining, e.iteration, e.stage) for e in asked.seen.of(OutputRetried)]
    assert told == [(1, 1, 1, "schema-validate"), (2, 0, 2, "json-parse")]
    filed = [getattr(attempt, "error", None) for attempt in asked.attempts]
    assert filed[0] == filed[2] == f"{CANARY}: ten is expected"
    events = b"".join(map(msgspec.json.encode, asked.seen.events)).decode() + repr(asked.seen.events)
    assert CANARY not in events
    types = [e.type for e in asked.seen.events]
    first = types.index("agent.output_schema_retry")
    assert types[first - 1 : first + 2] == [
        "agent.route_decided",
        "agent.output_schema_retry",
        "agent.iteration_end",
    ]


def test_run_typed_gives_the_value_and_raises_when_the_answer_does_not_match() -> None:
    asked = Asked("9", "10", retries=1)
    assert answered(run(asked.agent.run_typed("go"))).value == 10
    for said, stage in (("9", "schema-validate"), ("nine", "json-parse")):
        asked = Asked(*[said] * 2, retries=1)
        with pytest.raises(OutputSchemaError) as caught:
            run(asked.agent.run_typed("go"))
        assert caught.value.stage == stage
        assert isinstance(caught.value, RunError)
        assert (caught.value.run_id, caught.value.segment) == (asked.agent.last_run_id, 1)
        assert CANARY not in str(caught.value)
        assert [a.outcome for a in asked.attempts] == ["retried", "exhausted"]
        assert asked.seen.types[-1] == "agent.turn_end"


def test_run_typed_raises_for_an_answer_a_rule_broke_and_not_without_a_schema() -> None:
    @on_message("breaks")
    def breaks(message: MessageContext) -> MessageOutcome:
        return allow("broken", why="changed") if message.phase == "output" else allow()

    with pytest.raises(OutputSchemaError) as caught:
        run(Asked("10", rules=[breaks]).agent.run_typed("go"))
    assert caught.value.stage == "json-parse"
    builder, _ = describe([reply(text="anything")])
    answer = answered(run(builder.build().run_typed("go")))
    assert (answer.text, answer.value, answer.schema_met) == ("anything", None, None)


@before_tool("four-eyes")
def four_eyes(asked: ToolCallContext) -> ToolOutcome:
    return ask("Really?")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_attempts_survive_a_pause_and_the_resumed_answer_has_its_value(elsewhere: bool) -> None:
    taps = reply(calls=[call("c1", "tap", {})])
    asked = Asked("9", taps, "8", "10", retries=2)
    agent = asked.builder.tool_middleware(four_eyes).build()
    other = asked.builder.build()

    async def story() -> Answer:
        pause = await agent.run("go")
        assert isinstance(pause, AskPause)
        checkpoint = json.loads(json.dumps(pause.checkpoint))
        going_on = other if elsewhere else agent
        return answered(await going_on.resume(checkpoint, check_in_approved(by="dana")))

    answer = run(story())
    assert (answer.text, answer.value, answer.schema_met) == ("10", 10, True)
    entries = asked.ledger.entries(answer.run_id)
    attempts = [e.fact for e in entries if isinstance(e.fact, OutputJudged)]
    assert [(a.attempt, a.outcome) for a in attempts] == [(1, "retried"), (2, "retried"), (3, "passed")]
    assert AssistantMessage(text="9") in asked.model.requests[-1].messages

"""An answer is judged by its schema behind the output rules: it has the shape or it has not."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import (
    Answer,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    MessageOutcome,
    allow,
    ask,
    deny,
    on_message,
)
from footprint_core.events import DecisionFiled, OutputRetried, OutputUnmet, RouteDecided
from footprint_core.facts import OutputJudged
from footprint_core.providers import Completed, reply
from story import Seen, answered, describe, run


class Checks:
    """A schema that takes whole numbers above ten, and keeps what it was shown."""

    instruction = "Answer with a number above ten."

    def __init__(self, story: list[str] | None = None) -> None:
        self.story = [] if story is None else story

    def check(self, value: Any, /) -> object:
        self.story.append(f"check {value!r}")
        if type(value) is not int:
            raise ValueError("it is no number")
        if value <= 10:
            raise ValueError("it is too small")
        return value


class Judged:
    """One turn under a schema, and what was filed and told of it."""

    def __init__(self, *said: str, rules: Any = (), retries: int = 0, **options: Any) -> None:
        self.story: list[str] = []
        self.seen, self.ledger = Seen(), MemoryLedger()
        replies: list[Completed] = [reply(text=text) for text in said]
        builder, self.model = describe(replies, watch=[self.seen], ledger=self.ledger, **options)
        builder.output_schema(Checks(self.story), retries=retries).act(output=list(rules))
        self.agent = builder.build()

    def go(self) -> Answer:
        return answered(run(self.agent.run("how many?")))

    @property
    def attempts(self) -> list[OutputJudged]:
        run_id = self.agent.last_run_id
        assert run_id is not None
        return [e.fact for e in self.ledger.entries(run_id) if isinstance(e.fact, OutputJudged)]


def says(text: str, name: str = "rule") -> Any:
    """A rule that makes the answer another one."""

    @on_message(name)
    def rule(message: MessageContext) -> MessageOutcome:
        return allow(text, why="changed") if message.phase == "output" else allow()

    return rule


def test_the_schema_judges_what_the_rules_left_and_behind_all_of_them() -> None:
    story: list[str] = []

    @on_message("third")
    def third(message: MessageContext) -> MessageOutcome:
        story.append(f"rule {message.content}")
        return allow()

    # Added by a door, so it is asked last.
    seen = Seen()
    builder, _ = describe([reply(text="1")], watch=[seen])
    builder.output_schema(Checks(story)).act(output=[says("20", "first"), says("30", "second")])
    answer = answered(run(builder.message_middleware(third).build().run("how many?")))
    assert story == ["rule how many?", "rule 30", "check 30"]
    assert (answer.text, answer.value, answer.schema_met, answer.schema_stage) == ("30", 30, True, None)
    types = [e.type for e in seen.events if isinstance(e, DecisionFiled | RouteDecided)]
    # Three rows at each message moment; the route is known behind the schema.
    assert types == ["middleware.decision"] * 6 + ["agent.route_decided"]


@pytest.mark.parametrize("outcome", [allow(), allow(why="it is fine as it is")])
def test_no_rule_decides_about_the_shape(outcome: Any) -> None:
    approves = on_message("approves")(lambda _: outcome)
    judged = Judged("5", rules=[approves])
    answer = judged.go()
    assert (answer.text, answer.schema_met, answer.value) == ("5", False, None)
    assert judged.story == ["check 5"]
    # What the schema found is no row: the rows are the rules' own.
    assert [(row.middleware, row.outcome) for row in answer.decisions] == [("approves", "allow")] * 2


@pytest.mark.parametrize("wrong", [deny("no numbers today"), ask("Really?"), None])
@pytest.mark.parametrize("said", ["5", "50", "no number"])
def test_an_answer_the_rules_refused_is_not_judged_and_not_asked_for_again(wrong: Any, said: str) -> None:
    refuses = on_message("refuses")(lambda message: allow() if message.phase == "input" else wrong)
    judged = Judged(said, "50", rules=[refuses], retries=3)
    with pytest.raises(MessageDeniedError):
        run(judged.agent.run("how many?"))
    assert (judged.story, judged.attempts) == ([], [])
    assert len(judged.model.requests) == 1
    assert not judged.seen.of(OutputRetried)
    assert not judged.seen.of(OutputUnmet)
    assert [e.chosen for e in judged.seen.of(RouteDecided)] == ["final"]


def test_each_judgement_files_an_attempt_with_its_number_its_stage_and_its_error() -> None:
    judged = Judged("no json", "5", '"text"', "50", retries=3)
    answer = judged.go()
    assert (answer.text, answer.value, answer.schema_met) == ("50", 50, True)
    assert [(a.attempt, a.iteration, a.outcome, a.stage, a.broken_by) for a in judged.attempts] == [
        (1, 1, "retried", "json-parse", None),
        (2, 2, "retried", "schema-validate", None),
        (3, 3, "retried", "schema-validate", None),
        (4, 4, "passed", None, None),
    ]
    first, *rest = [getattr(a, "error", None) for a in judged.attempts][:3]
    assert "JSON" in str(first)
    assert rest == ["it is too small", "it is no number"]
    # The attempts are entries of a kind of their own.
    assert answer.decisions == ()
    # Text that is no JSON is not shown to the schema.
    assert judged.story == ["check 5", "check 'text'", "check 50"]


def test_an_attempt_that_passed_holds_no_error_and_nothing_that_was_put_back() -> None:
    judged = Judged("50")
    judged.go()
    (attempt,) = judged.attempts
    told = {name for name in ("text", "correction", "error") if isinstance(getattr(attempt, name), str)}
    assert told == set()
    assert not judged.seen.of(OutputRetried)
    assert not judged.seen.of(OutputUnmet)


def test_a_follow_up_is_judged_anew() -> None:
    judged = Judged("50", "5", "60", retries=1)

    async def story() -> list[Any]:
        first = answered(await judged.agent.run("how many?"))
        return [first.value, answered(await judged.agent.follow_up("and now?")).value]

    assert run(story()) == [50, 60]
    assert [(a.attempt, a.iteration, a.outcome) for a in judged.attempts] == [
        (1, 1, "retried"),
        (2, 2, "passed"),
    ]


BREAKING: dict[str, tuple[list[Any], str | None]] = {
    "one rule": ([says("5", "breaks")], "breaks"),
    "the last that changed it": ([says("4", "first"), says("5", "last")], "last"),
    "not one that passed it on": ([says("5", "breaks"), on_message("passes")(lambda _: allow())], "breaks"),
    "not one that gave the same": ([says("5", "breaks"), says("5", "same")], "breaks"),
    "into no JSON": ([says("five", "breaks")], "breaks"),
}


@pytest.mark.parametrize(("rules", "broken_by"), BREAKING.values(), ids=BREAKING)
def test_an_answer_a_rule_broke_is_not_asked_for_again_and_the_attempt_names_the_rule(
    rules: list[Any], broken_by: str
) -> None:
    judged = Judged("50", "60", rules=rules, retries=3)
    answer = judged.go()
    assert len(judged.model.requests) == 1
    assert (answer.schema_met, answer.value) == (False, None)
    (attempt,) = judged.attempts
    assert (attempt.attempt, attempt.outcome, attempt.broken_by) == (1, "exhausted", broken_by)
    (unmet,) = judged.seen.of(OutputUnmet)
    assert (unmet.broken_by, unmet.attempts, unmet.stage) == (broken_by, 1, attempt.stage)
    assert not judged.seen.of(OutputRetried)


def test_an_answer_that_was_wrong_before_a_rule_changed_it_is_asked_for_again() -> None:
    once: list[int] = []

    @on_message("worse")
    def worse(message: MessageContext) -> MessageOutcome:
        if message.phase == "input" or once:
            return allow()
        once.append(1)
        return allow("4", why="worse")

    judged = Judged("5", "50", rules=[worse], retries=1)
    assert judged.go().value == 50
    assert [(a.outcome, a.broken_by) for a in judged.attempts] == [("retried", None), ("passed", None)]


@pytest.mark.parametrize("said", ["5", "fifty", '"50"'])
def test_an_answer_a_rule_repaired_has_passed(said: str) -> None:
    judged = Judged(said, "60", rules=[says("50", "repairs")], retries=3)
    answer = judged.go()
    assert (answer.text, answer.value, answer.schema_met) == ("50", 50, True)
    assert len(judged.model.requests) == 1
    assert [(a.attempt, a.outcome, a.broken_by, a.stage) for a in judged.attempts] == [
        (1, "passed", None, None)
    ]
    assert not judged.seen.of(OutputUnmet)

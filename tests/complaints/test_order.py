"""The first answer that is no allow wins; who watches is told of everything whoever acts."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import Any, Literal, TypeAlias, cast

import pytest

from footprint_core import (
    ActOptions,
    AskPause,
    MemoryLedger,
    MessageDeniedError,
    Permission,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    on_message,
    tool,
)
from footprint_core.events import DecisionFiled
from footprint_core.providers import call, reply
from ruled import RULED, RuledMoment, act_at, play, rule_at
from story import Seen, answered, describe, run

Word: TypeAlias = Literal["allow", "allow-and-change", "deny", "ask", "raise", "nothing"]
WORDS: tuple[Word, ...] = ("allow", "allow-and-change", "deny", "ask", "raise", "nothing")
OPEN = {"allow", "allow-and-change"}


def _said(word: Word, place: int) -> Any:
    def hook(asked: Any) -> Any:
        match word:
            case "allow":
                return allow()
            case "allow-and-change":
                return allow({"amount": asked.args["amount"] + 1}, why="one more")
            case "deny":
                return deny(f"refused by {place}")
            case "ask":
                return ask(f"asked by {place}")
            case "raise":
                raise LookupError(f"raised by {place}")
            case "nothing":
                return None

    return before_tool(f"rule-{place}")(hook)


def _turn(words: tuple[Word, ...]) -> tuple[Any, list[int]]:
    paid: list[int] = []

    def pay(amount: int) -> int:
        paid.append(amount)
        return amount

    builder, _ = describe(
        [reply(calls=[call("c1", "pay", {"amount": 0})]), reply(text="done")],
        pay,
        act={"before_tool": [_said(word, place) for place, word in enumerate(words)]},
    )
    return run(builder.build().run("go")), paid


@pytest.mark.parametrize("words", list(product(WORDS, repeat=3)), ids="-".join)
def test_c028_no_later_rule_undoes_what_an_earlier_one_refused_or_asked(words: tuple[Word, ...]) -> None:
    outcome, paid = _turn(words)
    closed = next((place for place, word in enumerate(words) if word not in OPEN), None)
    rows = outcome.decisions
    if closed is None:
        assert paid == [words.count("allow-and-change")]
        assert [row.outcome for row in rows] == ["allow"] * 3
        return
    assert paid == []
    # The rules behind it were not asked, and have nothing on record that could count.
    assert [row.middleware for row in rows] == [f"rule-{place}" for place in range(closed + 1)]
    assert rows[-1].outcome == ("ask" if words[closed] == "ask" else "deny")
    assert isinstance(outcome, AskPause) == (words[closed] == "ask")


@pytest.mark.parametrize("behind", ["deny", "raise", "nothing"])
def test_c028_an_approved_question_opens_no_gate_behind_it(behind: Word) -> None:
    paid: list[int] = []

    def pay(amount: int) -> int:
        paid.append(amount)
        return amount

    builder, _ = describe(
        [reply(calls=[call("c1", "pay", {"amount": 0})]), reply(text="done")],
        pay,
        act={"before_tool": [_said("ask", 0), _said(behind, 1)]},
    )
    agent = builder.build()

    async def story() -> Any:
        paused = await agent.run("go")
        assert isinstance(paused, AskPause)
        return answered(await agent.resume(paused.checkpoint, check_in_approved(by="dana")))

    rows = run(story()).decisions
    assert paid == []
    assert [row.outcome for row in rows] == ["ask", "allow", "deny"]


class _Checker:
    """A permission checker that denies, or raises."""

    name = "policy"

    def __init__(self, *, raises: bool) -> None:
        self.raises = raises

    def check(self, _: Any, /) -> Permission:
        if self.raises:
            raise OSError("the policy is not to be had")
        return Permission(result="deny", rationale="not your role")


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("word", WORDS)
def test_c028_no_rule_overrides_a_permission_that_was_denied(word: Word, raises: bool) -> None:
    paid: list[int] = []

    def pay(amount: int) -> int:
        paid.append(amount)
        return amount

    builder, model = describe(
        [reply(calls=[call("c1", "pay", {"amount": 0})]), reply(text="done")],
        pay,
        act={"before_tool": [_said(word, 0)]},
    )
    outcome = answered(run(builder.permission(_Checker(raises=raises)).build().run("go")))
    assert (paid, outcome.decisions) == ([], ())
    assert "ermi" in model.requests[1].messages[-1].text


ENDS = [lambda _: deny("no"), lambda _: allow(why="seen"), lambda _: 1 / 0, lambda _: None]


@pytest.mark.parametrize("answers", ENDS, ids=["deny", "allow", "raise", "nothing"])
@pytest.mark.parametrize("moment", RULED)
def test_c021_whatever_a_rule_does_every_watcher_is_told_the_same(moment: RuledMoment, answers: Any) -> None:
    first, second = Seen("first"), Seen("second")
    builder, _ = describe(
        [reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")],
        _pay,
        watch=[first, second],
        act=_act(moment, rule_at(moment, answers)),
    )
    agent = builder.build()
    with suppress(MessageDeniedError):
        run(agent.run("go"))
    assert first.events == second.events
    assert first.types[0] == "agent.run_configured"
    assert first.types[-1] == "agent.turn_end"
    told = [(event.moment, event.middleware) for event in first.of(DecisionFiled)]
    assert (moment, "rule") in told


@tool(name="pay")
async def _pay(amount: int) -> int:
    return amount


def _act(moment: RuledMoment, *rules: Any) -> ActOptions:
    return cast("ActOptions", act_at(moment, *rules))


def test_c025_every_rule_at_every_moment_leaves_one_row_and_one_event_also_when_it_lets_pass() -> None:
    asked: list[tuple[str, str]] = []

    def passing(name: str) -> Any:
        def hook(context: Any) -> Any:
            asked.append((name, getattr(context, "phase", "") or type(context).__name__))
            return allow()

        return hook

    seen, ledger = Seen(), MemoryLedger()
    builder, _ = describe(
        [reply(calls=[call(f"c{i}", "pay", {"amount": i}) for i in range(3)]), reply(text="done")],
        _pay,
        watch=[seen],
        ledger=ledger,
        act={
            "input": [on_message(f"m{i}")(passing(f"m{i}")) for i in range(2)],
            "before_tool": [before_tool(f"b{i}")(passing(f"b{i}")) for i in range(3)],
            "after_tool": [after_tool(f"a{i}")(passing(f"a{i}")) for i in range(2)],
        },
    )
    rows = answered(run(builder.build().run("go"))).decisions
    assert len(asked) == 2 + 3 * (3 + 2)
    # The two that were named for input only pass through at output, with a row each.
    assert len(rows) == len(asked) + 2
    assert all((row.outcome, row.changed, row.why) == ("allow", False, None) for row in rows)
    assert [(e.middleware, e.moment, e.row) for e in seen.of(DecisionFiled)] == [
        (row.middleware, row.moment, row.position) for row in rows
    ]


@pytest.mark.parametrize("raised", [RuntimeError("it broke"), KeyError(), TimeoutError("too late")], ids=repr)
@pytest.mark.parametrize("moment", RULED)
def test_c022_a_rule_that_raises_refuses_with_its_text_and_never_lets_pass(
    moment: RuledMoment, raised: Exception
) -> None:
    def hook(_: Any) -> Any:
        raise raised

    played = play(act_at(moment, rule_at(moment, hook)))
    text = played.refusal(moment)
    assert "rule" in text
    assert (str(raised) or type(raised).__name__) in text
    assert played.acted(moment) is False
    rows = played.ledger.decisions(played.agent.last_run_id or "")
    (row,) = [row for row in rows if row.moment == moment]
    assert (row.outcome, row.answer, row.why) == ("deny", "raised", text)
    assert row.error_class == type(raised).__name__

"""A rule that raises is a denial; what is no error of its own is none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from footprint_core import Answer, allow, ask, ask_human, deny, pause_here
from footprint_core.facts import SegmentEnded
from footprint_core.pause.signal import PauseSignal
from ruled import RESULT, RULED, Hook, Played, RuledMoment, act_at, answers, play, rule_at

CANARY = "hunter2"


class Mute(Exception):  # noqa: N818 - named for what it does
    """Has no text."""


class Broken(Exception):  # noqa: N818 - the same
    """Cannot say its text."""

    def __str__(self) -> str:
        raise RuntimeError(CANARY)


def _row(played: Played, moment: RuledMoment) -> dict[str, Any]:
    (row,) = (row for row in played.rows if row["moment"] == moment)
    return row


def _later(hook: Hook) -> Hook:
    async def later(context: Any) -> Any:
        await asyncio.sleep(0)
        return hook(context)

    return later


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such tier"), "no such tier"),
        (KeyError("tier"), "tier"),
        (AssertionError("2 is not 3"), "2 is not 3"),
        (RecursionError("too deep"), "too deep"),
        (TimeoutError("the lookup took too long"), "the lookup took too long"),
        (StopAsyncIteration("done"), "done"),
        (ExceptionGroup("two at once", [ValueError("one")]), "two at once"),
        (Mute(), "Mute"),
        (KeyError(), "KeyError"),
        (ValueError(""), "ValueError"),
        (Broken(), "Broken"),
    ],
    ids=lambda value: repr(value) if isinstance(value, str) else type(value).__name__,
)
def test_a_rule_that_raises_is_a_denial_with_its_text_or_type_and_its_name(
    moment: RuledMoment, later: bool, error: Exception, said: str
) -> None:
    hook = answers(error)
    played = play(act_at(moment, rule_at(moment, _later(hook) if later else hook, "the-rule")))
    assert not played.acted(moment)
    assert said in played.refusal(moment)
    assert "the-rule" in played.refusal(moment)
    assert CANARY not in played.refusal(moment)
    row = _row(played, moment)
    assert (row["outcome"], row["why"]) == ("deny", played.refusal(moment))
    assert row["error_class"] == type(error).__name__
    assert row["changed"] is (moment == "after-tool")
    assert row.get("before") == (RESULT if moment == "after-tool" else None)


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize("error", [StopIteration("stops"), StopIteration()])
def test_a_plain_rule_that_stops_an_iteration_is_a_rule_that_raised(
    moment: RuledMoment, error: Exception
) -> None:
    played = play(act_at(moment, rule_at(moment, answers(error), "the-rule")))
    assert not played.acted(moment)
    assert "the-rule" in played.refusal(moment)
    assert "tops" in played.refusal(moment) or "StopIteration" in played.refusal(moment)


VERBS: dict[str, Hook] = {
    "a replacement without a reason": lambda _: _untyped(allow)("x"),
    "a replacement with a blank reason": lambda _: allow("x", why="  "),
    "a denial without a reason": lambda _: deny(""),
    "a denial with a blank reason": lambda _: deny(" \n"),
    "a question without words": lambda _: ask(""),
    "a question with blank words": lambda _: ask("  "),
    "a decision by its truth": lambda _: _untyped(bool)(deny("no")),
    "a verb called wrongly": lambda _: _untyped(deny)(),
}


def _untyped(verb: Any) -> Any:
    return verb


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize("verb", VERBS)
def test_what_a_verb_raises_inside_a_rule_is_a_rule_that_raised(moment: RuledMoment, verb: str) -> None:
    played = play(act_at(moment, rule_at(moment, VERBS[verb], "the-rule")))
    assert not played.acted(moment)
    assert "the-rule" in played.refusal(moment)
    row = _row(played, moment)
    assert (row["outcome"], row["why"]) == ("deny", played.refusal(moment))
    assert row["error_class"] in {"OutcomeError", "TypeError"}


class Interrupt(BaseException):
    """No error: something outside wants to stop."""


STOPS = [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit, Interrupt]


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("later", [False, True])
def test_what_is_no_exception_is_no_denial_and_nothing_acts(
    moment: RuledMoment, stop: type[BaseException], later: bool
) -> None:
    hook = answers(stop())
    rules = [
        rule_at(moment, answers(allow()), "first"),
        rule_at(moment, _later(hook) if later else hook, "stopped"),
        rule_at(moment, answers(allow()), "last"),
    ]
    played = play(act_at(moment, *(rules[::-1] if moment == "after-tool" else rules)), stop)
    assert type(played.error) is stop
    assert not played.acted(moment)
    assert [row["middleware"] for row in played.rows if row["moment"] == moment] == ["first"]
    assert all(row["outcome"] == "allow" for row in played.rows)
    assert len(played.model.requests) == {"input": 0, "before-tool": 1, "after-tool": 1, "output": 2}[moment]
    assert [fact.outcome for fact in played.facts if isinstance(fact, SegmentEnded)] == [
        "failed" if stop in {Interrupt, GeneratorExit} else "cancelled"
    ]


@pytest.mark.parametrize("moment", RULED)
def test_a_turn_cancelled_while_a_rule_is_asked_is_cancelled(moment: RuledMoment) -> None:
    async def waits(_: Any) -> Any:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()

    played = play(act_at(moment, rule_at(moment, waits)), asyncio.CancelledError)
    assert isinstance(played.error, asyncio.CancelledError)
    assert not played.acted(moment)
    assert not [row for row in played.rows if row["moment"] == moment]


PAUSES: dict[str, Hook] = {
    "pause_here": lambda _: pause_here({"secret": CANARY, "kind": "ask"}),
    "ask_human": lambda _: ask_human(f"is {CANARY} fine?", amount=CANARY),
    "the signal": answers(PauseSignal({"secret": CANARY})),
}


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize("pause", PAUSES)
@pytest.mark.parametrize("later", [False, True])
def test_a_rule_that_pauses_is_a_denial_that_names_it(moment: RuledMoment, pause: str, later: bool) -> None:
    hook = PAUSES[pause]
    played = play(act_at(moment, rule_at(moment, _later(hook) if later else hook, "the-rule")))
    assert played.outcome is None or isinstance(played.outcome, Answer)
    assert not played.acted(moment)
    assert "the-rule" in played.refusal(moment)
    assert "pause.request" not in played.seen.types
    row = _row(played, moment)
    assert (row["outcome"], row["why"]) == ("deny", played.refusal(moment))
    assert CANARY not in f"{played.requests} {played.rows} {played.events} {played.facts} {played.error!r}"

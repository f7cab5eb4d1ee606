"""What comes back and is no outcome: a denial that names the rule and the type, and nothing that came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from footprint_core import UNCHANGED, Allow, Answer, Ask, Deny, allow, ask, deny, plain
from ruled import RESULT, RULED, Played, RuledMoment, act_at, answers, play, rule_at

CANARY = "hunter2"


class Talks:
    """Says its secret wherever anybody looks."""

    secret = CANARY
    reason = question = why = value = kind = CANARY

    def __repr__(self) -> str:
        return CANARY

    __str__ = __repr__

    def __format__(self, _: str) -> str:
        return CANARY


LIES: Any = type("Lies", (), {"__class__": property(lambda _: Allow), "value": UNCHANGED, "why": None})
"""Says that it is an outcome."""


def _below(arm: type) -> Any:
    """A class below an arm; a checker refuses it, and Python does not."""
    return msgspec.defstruct("Below", [], bases=(arm,), frozen=True, kw_only=True)


def _words() -> Any:
    yield CANARY


MALFORMED: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "a yes": lambda: True,
    "a no": lambda: False,
    "a number": lambda: 1,
    "a text": lambda: "allow",
    "another text": lambda: CANARY,
    "bytes": CANARY.encode,
    "a dict like an outcome": lambda: {"kind": "allow"},
    "a dict like a result": lambda: {"kind": "result", "value": CANARY},
    "a dict with a key": lambda: {CANARY: 1},
    "a list of an outcome": lambda: [allow()],
    "a tuple of an outcome": lambda: (allow(), CANARY),
    "an unknown object": Talks,
    "one that says it is an outcome": LIES,
    "a subclass of allow": _below(Allow),
    "a subclass of allow with a value": lambda: _below(Allow)(value=CANARY, why=CANARY),
    "a subclass of deny": lambda: _below(Deny)(reason=CANARY),
    "a subclass of ask": lambda: _below(Ask)(question=CANARY, detail=CANARY),
    "the class of an outcome": lambda: Allow,
    "the verb": lambda: allow,
    "the mark of no value": lambda: UNCHANGED,
    "an error that was not raised": lambda: ValueError(CANARY),
    "a generator": _words,
    "not implemented": lambda: NotImplemented,
}


def _told(played: Played) -> bytes:
    """Everything anybody can read of a turn: requests, events, entries, and what the caller got."""
    facts = [msgspec.to_builtins(fact) for fact in played.facts]
    rows = [row.to_dict() for row in played.ledger.decisions(played.agent.last_run_id or "")]
    said = f"{played.error!r} {played.error} {getattr(played.error, '__dict__', '')} {played.outcome}"
    return b"".join([*played.requests, plain.encode([facts, rows, played.events, said])])


def _row(played: Played, moment: RuledMoment) -> dict[str, Any]:
    (row,) = (row for row in played.rows if row["moment"] == moment)
    return row


def _ruled(moment: RuledMoment, answer: object) -> Played:
    return play(act_at(moment, rule_at(moment, lambda _: answer, "the-rule")))


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize("malformed", MALFORMED)
def test_what_is_no_outcome_is_a_denial_naming_the_rule_and_the_type(
    moment: RuledMoment, malformed: str
) -> None:
    answer = MALFORMED[malformed]()
    played = _ruled(moment, answer)
    assert not played.acted(moment)
    assert "the-rule" in played.refusal(moment)
    assert type(answer).__name__ in played.refusal(moment)
    assert moment in played.refusal(moment)
    assert CANARY.encode() not in _told(played)


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize("malformed", MALFORMED)
def test_its_row_has_the_shape_of_any_denial(moment: RuledMoment, malformed: str) -> None:
    played = _ruled(moment, MALFORMED[malformed]())
    row, denied = _row(played, moment), _row(_ruled(moment, deny("no")), moment)
    said = {"why": played.refusal(moment)}
    if moment == "after-tool":
        said["after"] = played.refusal(moment)
    assert row == {**denied, **said}
    assert (row["outcome"], row["changed"]) == ("deny", moment == "after-tool")
    assert row.get("before") == (RESULT if moment == "after-tool" else None)
    (decision,) = (
        one for one in played.ledger.decisions(played.agent.last_run_id or "") if one.moment == moment
    )
    assert decision.answer == "malformed"


@pytest.mark.parametrize("moment", ["input", "output"])
@pytest.mark.parametrize("detail", [None, {CANARY: CANARY}])
def test_a_question_about_a_message_is_a_denial(moment: RuledMoment, detail: Any) -> None:
    played = _ruled(moment, ask(f"is {CANARY} fine?", detail=detail))
    assert not played.acted(moment)
    assert "Ask" in played.refusal(moment)
    assert "the-rule" in played.refusal(moment)
    assert len(played.model.requests) == {"input": 0, "output": 2}[moment]
    assert _row(played, moment)["outcome"] == "deny"
    assert "pause.request" not in played.seen.types
    assert CANARY.encode() not in _told(played)


def test_a_question_about_a_result_withholds_it_and_pauses_nothing() -> None:
    played = _ruled("after-tool", ask(f"was {CANARY} fine?", detail=CANARY))
    assert isinstance(played.outcome, Answer)
    assert not played.acted("after-tool")
    assert played.ran == [5]
    assert "Ask" in played.read
    assert "the-rule" in played.read
    row = _row(played, "after-tool")
    assert (row["outcome"], row["changed"], row["before"], row["after"]) == (
        "deny",
        True,
        RESULT,
        played.read,
    )
    assert "pause.request" not in played.seen.types
    assert CANARY.encode() not in _told(played)


NO_JSON: dict[str, Callable[[], Any]] = {
    "an object": Talks,
    "an object within": lambda: {"who": [{"is": Talks()}]},
    "a function": lambda: {"call": print},
    "a number that is none": lambda: {"limit": float("nan")},
    "an endless number": lambda: [float("inf")],
    "a type": lambda: Talks,
    "an error": lambda: {"error": ValueError(CANARY)},
}


@pytest.mark.parametrize("what", NO_JSON)
@pytest.mark.parametrize("made", [ask, lambda question, *, detail: Ask(question=question, detail=detail)])
def test_a_question_whose_detail_json_cannot_hold_is_a_denial_and_no_pause(what: str, made: Any) -> None:
    played = _ruled("before-tool", made(f"is {CANARY} fine?", detail=NO_JSON[what]()))
    assert isinstance(played.outcome, Answer)
    assert played.ran == []
    assert "the-rule" in played.read
    assert _row(played, "before-tool")["outcome"] == "deny"
    assert "pause.request" not in played.seen.types
    assert CANARY.encode() not in _told(played)


def test_a_question_whose_detail_holds_itself_is_a_denial_and_no_pause() -> None:
    endless: list[Any] = []
    endless.append(endless)
    played = _ruled("before-tool", ask("fine?", detail=endless))
    assert (played.ran, isinstance(played.outcome, Answer)) == ([], True)


WORDLESS: dict[str, Any] = {
    "a denial without a reason": Deny(reason=""),
    "a denial with a blank reason": Deny(reason=" \n"),
    "a denial whose reason is no text": Deny(reason=Talks()),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    "a replacement without a reason": Allow[Any](value=CANARY),
    "a replacement with a blank reason": Allow[Any](value=CANARY, why=" "),
    "a reason that is no text": Allow[Any](why=Talks()),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    "a replacement whose reason is no text": Allow[Any](value=CANARY, why=Talks()),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize("wordless", WORDLESS)
def test_an_arm_made_without_its_verb_and_its_words_is_a_denial(moment: RuledMoment, wordless: str) -> None:
    played = _ruled(moment, WORDLESS[wordless])
    assert not played.acted(moment)
    assert "the-rule" in played.refusal(moment)
    assert _row(played, moment)["outcome"] == "deny"
    assert CANARY.encode() not in _told(played)


@pytest.mark.parametrize("asked", [Ask(question=""), Ask(question=" "), Ask(question=Talks(), detail=CANARY)])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def test_a_question_without_words_is_a_denial_and_no_pause(asked: Ask) -> None:
    played = _ruled("before-tool", asked)
    assert (played.ran, isinstance(played.outcome, Answer)) == ([], True)
    assert "the-rule" in played.read
    assert CANARY.encode() not in _told(played)


def test_the_outcomes_that_are_legal_are_no_denials() -> None:
    for moment in RULED:
        assert play(act_at(moment, rule_at(moment, answers(allow(why="fine"))))).acted(moment)

"""What each strategy leaves in the place of a value."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from footprint_core import plain
from footprint_core.facts import Decided, Fact, ModelReplied, ToolFinished, ToolIntended
from footprint_core.ledger import REDACTED, Marks
from footprint_core.messages import ToolCall
from footprint_observe import Detector, KeyRing, Redaction, Rule
from footprint_observe.redaction.opened import Opened, opened_fields
from footprint_observe.redaction.personal import EMAIL
from footprint_observe.redaction.rules import Strategy

RING = KeyRing.of({"k1": b"A" * 32})
OTHER = KeyRing.of({"k1": b"B" * 32})
VALUES: list[Any] = [
    "Ada Lovelace",
    "x",
    "",
    7,
    1234567890,
    1.5,
    True,
    None,
    ["a", 1],
    {"a": {"b": None}},
    "é\U0001f600",
]


def policy(strategy: Strategy, *, path: str = "args.v", keys: KeyRing | None = RING) -> Redaction:
    return Redaction.of(rules=[Rule(path=path, strategy=strategy)], keys=keys, credentials=False)


def intended(args: Any) -> ToolIntended:
    return ToolIntended(iteration=1, call_id="c", tool_name="t", args=args)


def kept(value: Any, of: Redaction) -> tuple[Any, Marks]:
    """What is kept of the args `{"v": value, "n": 1}`, and the marks."""
    fact, marks = of.redact(intended({"v": value, "n": 1}))
    assert isinstance(fact, ToolIntended)
    assert fact.args["n"] == 1
    return fact.args.get("v", "dropped"), marks


@pytest.mark.parametrize("value", VALUES)
def test_mask_leaves_the_mask_whatever_it_was(value: Any) -> None:
    assert kept(value, policy("mask")) == (REDACTED, (("args.v", "mask"),))


@pytest.mark.parametrize("value", VALUES)
def test_drop_takes_the_key_too(value: Any) -> None:
    assert kept(value, policy("drop")) == ("dropped", (("args.v", "drop"),))


def test_drop_masks_what_has_a_place_that_stays() -> None:
    fact, marks = policy("drop", path="args").redact(intended({"v": 1}))
    assert isinstance(fact, ToolIntended)
    assert (fact.args, marks) == (REDACTED, (("args", "drop"),))
    fact, marks = policy("drop", path="args.v.1").redact(intended({"v": ["a", "b", "c"]}))
    assert isinstance(fact, ToolIntended)
    assert (fact.args, marks) == ({"v": ["a", REDACTED, "c"]}, (("args.v.1", "drop"),))


def test_drop_cuts_a_match_out_of_its_text() -> None:
    dropping = Redaction.of(rules=[Rule(detector=EMAIL, strategy="drop"), Rule(key="pwd", strategy="drop")])
    text, marks = kept("write to a@example.org, pwd=hunter2!", dropping)
    assert text == "write to , pwd=!"
    assert marks == (("args.v", "drop"),)


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("4111 1111 1111 1111", f"{REDACTED}1111"),
        ("12345678", f"{REDACTED}5678"),
        (1234567890, f"{REDACTED}7890"),
        ("1234567", REDACTED),
        (1234567, REDACTED),
        ("", REDACTED),
        (True, REDACTED),
        (None, REDACTED),
        (["12345678"], REDACTED),
        ({"a": "12345678"}, REDACTED),
    ],
)
def test_partial_leaves_the_last_four_of_what_is_long_enough(value: Any, left: str) -> None:
    assert kept(value, policy("partial")) == (left, (("args.v", "partial"),))


@pytest.mark.parametrize("value", VALUES)
def test_a_pseudonym_is_the_same_for_equal_values_and_says_nothing_of_them(value: Any) -> None:
    one, marks = kept(value, policy("pseudonym"))
    assert marks == (("args.v", "pseudonym"),)
    assert one.startswith("pseudonym:k1:")
    assert len(one) == len("pseudonym:k1:") + 28
    assert one == kept(value, policy("pseudonym"))[0]
    assert one == kept([value], policy("pseudonym", path="args.v.0"))[0][0]
    assert one != kept(value, policy("pseudonym", keys=OTHER))[0]
    assert one != kept([value], policy("pseudonym"))[0]


@pytest.mark.parametrize(
    ("one", "two", "equal"),
    [
        (1, 1.0, True),
        (100.0, 100, True),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, True),
        ("1", 1, False),
        (True, 1, False),
        ("Dana", "dana", False),
        ([1, 2], [2, 1], False),
        (None, "null", False),
    ],
)
def test_pseudonyms_are_equal_where_the_values_are_equal_as_json(one: Any, two: Any, equal: bool) -> None:
    assert plain.same(one, two) is equal
    assert (kept(one, policy("pseudonym"))[0] == kept(two, policy("pseudonym"))[0]) is equal


def test_a_match_in_a_text_has_the_pseudonym_of_the_whole_text() -> None:
    by_look = Redaction.of(rules=[Rule(detector=EMAIL, strategy="pseudonym")], keys=RING)
    alone = kept("a@example.org", by_look)[0]
    assert alone == kept("a@example.org", policy("pseudonym"))[0]
    assert kept("to a@example.org, a@example.org", by_look)[0] == f"to {alone}, {alone}"


@pytest.mark.parametrize("value", VALUES)
def test_what_was_sealed_is_opened_with_its_key(value: Any) -> None:
    fact, marks = policy("seal").redact(intended({"v": value}))
    assert isinstance(fact, ToolIntended)
    assert marks == (("args.v", "seal"),)
    assert fact.args["v"].startswith("sealed:k1:")
    assert opened_fields(fact, RING) == (Opened(path="args.v", value=value),)
    assert "'k1' does not open" in str(opened_fields(fact, OTHER)[0].refusal)
    assert "no key 'k1', only k2" in str(opened_fields(fact, KeyRing.of({"k2": b"A" * 32}))[0].refusal)


SEALING = Redaction.of(
    rules=[Rule(path="**.v", strategy="seal"), Rule(detector=EMAIL, strategy="seal")], keys=RING
)


def test_everything_that_was_sealed_in_a_row_is_opened_wherever_it_stands() -> None:
    args = {
        "a": [{"v": 1}, "write to a@example.org and b@example.org"],
        "json": json.dumps({"v": [2], "n": 1}),
        "prose": 'see {"v": 3} and c@example.org',
        "d@example.org": {"v": 4},
    }
    fact, _ = SEALING.redact(intended(args))
    found = opened_fields(fact, RING)
    assert sorted(plain.encode(one.value).decode() for one in found) == [
        '"a@example.org"', '"b@example.org"', '"c@example.org"', '"d@example.org"', "1", "3", "4", "[2]",
    ]  # fmt: skip
    assert {one.path for one in found} >= {
        "args.a.0.v",
        "args.a.1",
        "args.json.v",
        "args.prose.v",
        "args.prose",
    }


def test_the_arguments_of_a_reply_are_sealed_and_opened_where_they_stand() -> None:
    call = ToolCall(id="c", name="t", args_json='{"v": "secret"}')
    reply = ModelReplied(iteration=1, call_count=1, stop_reason="tool_use", duration_us=1, calls=(call,))
    fact, marks = SEALING.redact(reply)
    assert marks == (("calls.0.args.v", "seal"),)
    assert opened_fields(fact, RING) == (Opened(path="calls.0.args.v", value="secret"),)


def moved(fact: Fact) -> list[Fact]:
    """The sealed value of args.v at other places."""
    assert isinstance(fact, ToolIntended)
    sealed = fact.args["v"]
    return [
        intended({"w": sealed}),
        intended({"v": {"v": sealed}}),
        intended([sealed]),
        ToolFinished(
            iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result={"v": sealed}
        ),
        Decided(middleware="m", moment="before-tool", iteration=1, outcome="allow", after={"v": sealed}),
    ]


def test_a_sealed_value_does_not_open_at_another_place() -> None:
    fact, _ = policy("seal").redact(intended({"v": "secret"}))
    for other in moved(fact):
        ((one),) = opened_fields(other, RING)
        assert one.value is None
        assert "damaged or moved" in str(one.refusal)


def test_a_sealed_value_that_was_damaged_does_not_open() -> None:
    fact, _ = policy("seal").redact(intended({"v": "secret"}))
    assert isinstance(fact, ToolIntended)
    sealed = fact.args["v"]
    flipped = sealed[:-1] + ("A" if sealed[-1] != "A" else "B")
    for broken in (flipped, sealed[:-4], sealed.replace("k1", "k2")):
        # What does not open keeps nothing else from it.
        both = opened_fields(intended({"a": broken, "v": sealed}), RING)
        assert [one.value for one in both] == [None, "secret"]
        assert both[0].refusal
        assert opened_fields(intended({"a": broken, "v": sealed}), RING, "args.v") == both[1:]


@pytest.mark.parametrize("strategy", ["pseudonym", "seal"])
def test_a_text_copied_from_another_row_is_a_value_like_any_other(strategy: Strategy) -> None:
    copied, _ = kept("of another customer", policy(strategy))
    again, _ = kept(copied, policy(strategy))
    assert again != copied
    if strategy == "seal":
        assert [one.value for one in opened_fields(intended({"v": again}), RING)] == [copied]


def test_what_was_sealed_under_a_key_in_a_text_is_sealed_once() -> None:
    of = Redaction.of(rules=[Rule(key="ssn", strategy="seal")], keys=RING)
    fact, _ = of.redact(intended({"v": "ssn=123-45-6789"}))
    assert [one.value for one in opened_fields(fact, RING)] == ["123-45-6789"]


@pytest.mark.parametrize("strategy", ["mask", "drop", "partial"])
@pytest.mark.parametrize("value", ["Ada Lovelace", "x", 1234567890, {"a": 1}])
def test_what_was_redacted_once_is_not_redacted_again(strategy: Strategy, value: Any) -> None:
    of = policy(strategy)
    once, _ = of.redact(intended({"v": value, "n": 1}))
    again, _ = of.redact(once)
    assert again == once


@pytest.mark.parametrize(
    "forged", ["pseudonym:k1:" + "A" * 28, "sealed:k1:" + "A" * 60, "sealed:k1:" + "A" * 41]
)
@pytest.mark.parametrize("strategy", ["pseudonym", "seal"])
def test_a_value_that_only_looks_redacted_is_redacted(forged: str, strategy: Strategy) -> None:
    assert kept(forged, policy(strategy))[0] != forged


def test_keep_leaves_a_value_and_all_in_it_to_no_later_rule() -> None:
    of = Redaction.of(
        rules=[Rule(path="args.v.deep.pin"), Rule(path="args.v", strategy="keep"), Rule(path="**.pin")]
    )
    value = {"password": "hunter2", "pin": 1, "deep": {"pin": 2, "t": "ghp_" + "A1b2" * 9}}
    left, marks = kept(value, of)
    assert left == {**value, "deep": {**value["deep"], "pin": REDACTED}}  # type: ignore[dict-item]
    assert marks == (("args.v.deep.pin", "mask"),)


def test_keep_exempts_what_a_detector_finds_from_later_ones() -> None:
    test_cards = Detector(name="test-card", pattern=r"\b4111 ?1111 ?1111 ?1111\b")
    of = Redaction.of(rules=[Rule(detector=test_cards, strategy="keep")], personal=True)
    text = "test 4111 1111 1111 1111, real 4012 8888 8888 1881"
    assert kept(text, of)[0] == f"test 4111 1111 1111 1111, real {REDACTED}"
    assert kept(4111111111111111, of) == (4111111111111111, ())


def test_keep_by_its_key_leaves_a_value_to_nobody() -> None:
    of = Redaction.of(rules=[Rule(key="reset token", strategy="keep")])
    value = {"reset_token": "abc", "token": "def"}
    assert kept(value, of)[0] == {"reset_token": "abc", "token": REDACTED}
    assert kept("reset_token=abc, token=def", of)[0] == f"reset_token=abc, token={REDACTED}"


def test_all_calls_of_a_reply_stay_calls() -> None:
    call = ToolCall(id="c", name="t", args_json='{"v": 1}')
    reply = ModelReplied(iteration=1, call_count=1, stop_reason="tool_use", duration_us=1, calls=(call,))
    ways: list[tuple[Strategy, str]] = [("mask", "mask"), ("drop", "drop"), ("seal", "mask")]
    for strategy, method in ways:
        fact, marks = policy(strategy, path="calls").redact(reply)
        assert isinstance(fact, ModelReplied)
        assert (fact.calls, marks) == ((), (("calls", method),))
    sealed, _ = policy("seal", path="args").redact(reply)
    assert isinstance(sealed, ModelReplied)
    assert sealed.calls[0].args.startswith("sealed:k1:")
    assert opened_fields(sealed, RING) == (Opened(path="calls.0.args", value={"v": 1}),)
    msgspec.json.encode(sealed)

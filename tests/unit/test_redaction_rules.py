"""The order of a policy, and that a policy is a value."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from footprint_core.facts import ToolIntended
from footprint_core.ledger import REDACTED
from footprint_observe import Detector, KeyRing, Redaction, Rule
from footprint_observe.redaction.personal import EMAIL

RING = KeyRing.of({"k1": b"\x41" * 32})
WORD = Detector(name="word", pattern="wombat")


def kept(args: Any, policy: Redaction) -> Any:
    fact, _ = policy.redact(ToolIntended(iteration=1, call_id="c", tool_name="t", args=args))
    assert isinstance(fact, ToolIntended)
    return fact.args


def test_the_first_rule_that_matches_wins() -> None:
    first, second = Rule(path="**.ssn", strategy="drop"), Rule(path="args.a.ssn", strategy="partial")
    args = {"a": {"ssn": "123-45-6789"}}
    assert kept(args, Redaction.of(rules=[first, second])) == {"a": {}}
    assert kept(args, Redaction.of(rules=[second, first])) == {"a": {"ssn": f"{REDACTED}6789"}}


def test_rules_come_before_fields_and_fields_before_detectors() -> None:
    args = {"ssn": "wombat-1234", "b": "a wombat"}
    policy = Redaction.of(rules=[Rule(key="ssn", strategy="partial")], fields=["**.ssn"], detectors=[WORD])
    assert kept(args, policy) == {"ssn": f"{REDACTED}1234", "b": f"a {REDACTED}"}
    assert kept(args, Redaction.of(fields=["**.ssn"], detectors=[WORD]))["ssn"] == REDACTED


def test_a_rule_of_ones_own_comes_before_what_is_included() -> None:
    args = {"token": "abcdefgh", "to": "a@example.org"}
    policy = Redaction.of(
        rules=[Rule(key="token", strategy="partial"), Rule(detector=EMAIL, strategy="drop")], personal=True
    )
    assert kept(args, policy) == {"token": f"{REDACTED}efgh", "to": ""}


def test_an_outer_value_is_decided_before_what_is_in_it() -> None:
    policy = Redaction.of(
        rules=[Rule(path="args.a.ssn", strategy="keep"), Rule(path="args.a", strategy="drop")]
    )
    assert kept({"a": {"ssn": 1}}, policy) == {}


def test_a_path_or_a_key_decides_before_a_detector_that_comes_first() -> None:
    policy = Redaction.of(rules=[Rule(detector=EMAIL, strategy="drop"), Rule(key="to")])
    assert kept({"to": "a@example.org", "b": "a@example.org"}, policy) == {"to": REDACTED, "b": ""}


def test_where_matches_overlap_the_first_detector_has_what_it_found() -> None:
    inner, outer = Detector(name="inner", pattern="bat"), Detector(name="outer", pattern="wombats")
    first = Redaction.of(rules=[Rule(detector=inner, strategy="drop"), Rule(detector=outer)])
    assert kept("x wombats y", first) == f"x {REDACTED}{REDACTED} y".replace(
        f"{REDACTED}{REDACTED}", REDACTED * 2
    )
    second = Redaction.of(rules=[Rule(detector=outer), Rule(detector=inner, strategy="drop")])
    assert kept("x wombats y", second) == f"x {REDACTED} y"


@pytest.mark.parametrize(
    "key", ["birthDate", "customer-birth-date", "BIRTHDATE", "birth_date_2", "x.birth.date"]
)
def test_a_key_is_met_by_its_words(key: str) -> None:
    policy = Redaction.of(rules=[Rule(key="birth date")])
    assert kept({key: "1815-12-10", "n": 1}, policy) == {key: REDACTED, "n": 1}
    assert kept([f"{key}=1815-12-10"], policy) == [f"{key}={REDACTED}"]


@pytest.mark.parametrize("key", ["birth", "date_of_birth", "birthdates", "rebirth date"])
def test_other_keys_are_left_alone(key: str) -> None:
    args = {key: "1815-12-10"}
    assert kept(args, Redaction.of(rules=[Rule(key="birth date")])) is args


def test_policies_that_say_the_same_are_equal() -> None:
    def made() -> Redaction:
        return Redaction.of(
            rules=[Rule(path="**.ssn", strategy="seal"), Rule(detector=EMAIL)],
            fields=["before.n"],
            detectors=[Detector(name="word", pattern="wombat")],
            erasable=["args.card"],
            keys=KeyRing.of({"k1": b"A" * 32}),
        )

    assert made() == made()
    assert hash(made()) == hash(made())
    assert Redaction.standard() == Redaction.of()
    assert Redaction.personal() == Redaction.of(personal=True)
    assert Redaction.of(fields=["args"]) == Redaction.of(rules=[Rule(path="args")])
    assert Redaction.standard() != Redaction.personal() != Redaction.none()
    assert Redaction.of(rules=[Rule(path="args")]) != Redaction.of(rules=[Rule(path="args", strategy="drop")])


def test_a_policy_cannot_be_changed_and_shows_no_key() -> None:
    policy: Any = Redaction.of(rules=[Rule(path="**.ssn", strategy="seal")], keys=RING, erasable=["args.a.b"])
    with pytest.raises(FrozenInstanceError):
        policy.rules = ()
    shown = repr(policy)
    assert "AAAA" not in shown
    assert "KeyRing(ids=('k1',))" in shown
    assert "args.a.b" in shown
    assert "'**.ssn'" in shown
    with pytest.raises(Exception, match="not pickled or copied"):
        copy.deepcopy(policy)


def test_an_empty_policy_keeps_everything() -> None:
    args = {"password": "hunter2", "to": "a@example.org"}
    assert kept(args, Redaction.of(credentials=False)) is args
    assert Redaction.of(credentials=False) == Redaction.none()


def test_erasable_paths_are_steps_for_a_store_to_read() -> None:
    policy = Redaction.of(erasable=["args.card", "before.**.ssn"])
    assert policy.erasable == (("args", "card"), ("before", "**", "ssn"))
    assert kept({"card": 1}, policy) == {"card": 1}

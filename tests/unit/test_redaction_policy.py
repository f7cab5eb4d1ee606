"""The standard policy on decoded values: what goes, what stays, and what the row says about it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from footprint_core.facts import (
    CallTaken,
    Decided,
    MessageTaken,
    ModelReplied,
    PauseOpened,
    RunConfigured,
    ToolIntended,
)
from footprint_core.ledger import REDACTED, Redactor
from footprint_core.messages import ToolCall
from footprint_observe.redaction.detect import Detector
from footprint_observe.redaction.policy import Redaction

KEY = "sk-ant-api03-abcDEF123_xyz-789"
STANDARD: Redactor = Redaction.standard()


def intended(args: Any) -> ToolIntended:
    return ToolIntended(iteration=1, call_id="c", tool_name="t", args=args)


def kept(args: Any) -> tuple[Any, dict[str, str]]:
    """The args as they are kept, and the marks."""
    fact, marks = STANDARD.redact(intended(args))
    assert isinstance(fact, ToolIntended)
    return fact.args, dict(marks)


def test_a_fact_in_which_nothing_matched_is_the_same_object() -> None:
    clean: dict[str, Any] = {"max_tokens": 5, "nested": [{"token_count": 1}]}
    every: list[Any] = [None, "", "text", 1, [], {}, clean, msgspec.UNSET]
    for args in every:
        fact = intended(args)
        assert STANDARD.redact(fact) == (fact, ())
        assert STANDARD.redact(fact)[0] is fact


def test_nothing_is_changed_in_place_and_what_matched_nothing_is_shared() -> None:
    clean = {"deep": [1, 2]}
    args = {"clean": clean, "password": "x"}
    new, _ = kept(args)
    assert args == {"clean": clean, "password": "x"}
    assert new == {"clean": clean, "password": REDACTED}
    assert new["clean"] is clean


@pytest.mark.parametrize("value", ["x", "", 7, 1.5, ["a"], {"a": 1}, []])
def test_what_stands_under_the_key_of_a_credential_is_masked_whatever_it_is(value: Any) -> None:
    assert kept({"apiKey": value, "n": 1}) == ({"apiKey": REDACTED, "n": 1}, {"args.apiKey": "mask"})


def test_no_credential_is_no_credential() -> None:
    assert kept({"password": None}) == ({"password": None}, {})


def test_a_path_says_where_and_never_what() -> None:
    _, marks = kept({"a": [{"token": "t"}, {"b": f"use {KEY}"}], KEY: {"secret": "s"}})
    assert marks == {
        "args.a.0.token": "mask",
        "args.a.1.b": "mask",
        "args": "mask",
        f"args.{REDACTED}.secret": "mask",
    }


def test_only_the_match_goes_from_a_text() -> None:
    assert kept(f"call it with {KEY}, please") == (f"call it with {REDACTED}, please", {"args": "mask"})


def test_keys_that_were_masked_stay_as_many_as_they_were() -> None:
    other = KEY.replace("789", "790")
    args, _ = kept({KEY: 1, other: 2, REDACTED: 3})
    assert sorted(args.values()) == [1, 2, 3]
    assert not any("sk-" in key for key in args)


def test_json_inside_a_text_is_looked_through_and_written_back() -> None:
    inner = json.dumps({"password": "hunter2", "n": 1.0, "deeper": json.dumps([{"token": "t1"}, "é"])})
    args, marks = kept({"body": inner})
    body = json.loads(args["body"])
    assert body["password"] == REDACTED
    assert json.loads(body["deeper"]) == [{"token": REDACTED}, "é"]
    assert marks == {"args.body.password": "mask", "args.body.deeper.0.token": "mask"}


@pytest.mark.parametrize(
    "text",
    [
        '  {"n": 1.0,  "a": "key"}',
        '{"max_tokens": 12}',
        "[not json password",
        "{password}",
        "{",
        "[]",
        '{"a": 1}trailing token',
    ],
)
def test_json_without_a_credential_stays_as_it_was_written(text: str) -> None:
    args = {"body": text}
    fact = intended(args)
    assert STANDARD.redact(fact)[0] is fact


def test_an_escape_does_not_hide_a_key() -> None:
    args, _ = kept({"body": r'{"pass\u0077ord": "hunter2"}'})
    assert "hunter2" not in args["body"]


def test_an_object_that_has_a_key_twice_is_masked_whole() -> None:
    args, marks = kept({"body": '{"a": {"password": "hunter2"}, "a": 1}'})
    assert args == {"body": REDACTED}
    assert marks == {"args.body": "mask"}


def test_a_lone_surrogate_in_nested_json_still_can_be_written() -> None:
    args, _ = kept({"body": r'{"password": "x", "s": "\ud800"}'})
    assert json.loads(args["body"]) == {"password": REDACTED, "s": "\ud800"}
    msgspec.json.encode(args)


@pytest.mark.parametrize("depth", [100, 400, 100_000])
def test_json_too_deep_to_look_through_is_not_kept(depth: int) -> None:
    args, marks = kept({"body": "[" * depth + '{"password": "hunter2"}' + "]" * depth})
    assert "hunter2" not in json.dumps(args)
    assert marks


def test_nested_texts_too_deep_to_look_through_are_not_kept() -> None:
    text: Any = {"password": "hunter2"}
    for _ in range(12):
        text = json.dumps([text])
    args, marks = kept(text)
    assert "hunter2" not in args
    assert marks


def replied(*calls: ToolCall) -> ModelReplied:
    return ModelReplied(
        iteration=1, call_count=len(calls), stop_reason="tool_use", duration_us=1, text="ok", calls=calls
    )


def test_the_arguments_of_the_calls_a_model_asked_for_are_looked_through() -> None:
    clean = ToolCall(id="call-1", name="look", args_json='{"b": 1.0, "a": 2}')
    fact, marks = STANDARD.redact(
        replied(clean, ToolCall(id="call-2", name="x", args_json='{"password":"p"}'))
    )
    assert isinstance(fact, ModelReplied)
    assert fact.calls[0] is clean
    assert fact.calls[1] == ToolCall(id="call-2", name="x", args_json='{"password":"[redacted]"}')
    assert marks == (("calls.1.args.password", "mask"),)


def test_arguments_a_model_broke_off_are_masked_whole_when_a_key_could_be_in_them() -> None:
    calls = (
        ToolCall(id="a", name="x", args_json='{"password": "hunter2'),
        ToolCall(id="b", name="x", args_json='{"order": "W1'),
        ToolCall(id="c", name="x", args_json='{"token": 1, "token": 2}'),
    )
    fact, marks = STANDARD.redact(replied(*calls))
    assert isinstance(fact, ModelReplied)
    assert [call.args_json for call in fact.calls] == [f'"{REDACTED}"', '{"order": "W1', f'"{REDACTED}"']
    assert fact.calls[0].args == REDACTED
    assert dict(marks) == {"calls.0.args": "mask", "calls.2.args": "mask"}


def test_calls_without_a_credential_are_the_same_fact() -> None:
    fact = replied(ToolCall(id="call-1", name="look", args_json='{"token_count": 1}'))
    assert STANDARD.redact(fact)[0] is fact


def test_the_salt_and_the_digest_of_a_pause_survive() -> None:
    fact = PauseOpened(
        pause_id="p", pause_kind="ask", iteration=1, call_id="c", tool_name="t", salt=KEY, digest=KEY
    )
    assert STANDARD.redact(fact)[0] is fact


def test_why_loses_the_match_and_keeps_the_sentence() -> None:
    fact = Decided(
        middleware="m",
        moment="before-tool",
        iteration=1,
        outcome="deny",
        why=f"the key {KEY} is not for this",
        decided_by="dana@ops",
        detail={"api_key": 1},
    )
    new, marks = STANDARD.redact(fact)
    assert isinstance(new, Decided)
    assert new.why == f"the key {REDACTED} is not for this"
    assert new.decided_by == "dana@ops"
    assert dict(marks) == {"why": "mask", "detail.api_key": "mask"}
    assert (new.middleware, new.outcome, new.changed) == (fact.middleware, fact.outcome, fact.changed)


def test_identity_and_system_are_values_too() -> None:
    fact = RunConfigured(
        agent_id="a",
        agent_name="n",
        provider="p",
        model="m",
        rules={},
        tools=(),
        turn_index=1,
        identity={"user": "dana", "session_token": "t"},
        system=f"Use {KEY}.",
    )
    new, marks = STANDARD.redact(fact)
    assert isinstance(new, RunConfigured)
    assert new.identity == {"user": "dana", "session_token": REDACTED}
    assert new.system == f"Use {REDACTED}."
    assert len(marks) == 2


def raising(text: str) -> bool:
    raise RuntimeError(text)


BROKEN = Redaction.of(detectors=[Detector(name="broken", pattern="hunter2", check=raising)])


@pytest.mark.parametrize("args", [{"a": "it is hunter2"}, "hunter2", ["x", {"hunter2": 1}], '["hunter2"]'])
def test_a_rule_that_raises_masks_the_whole_value_and_the_row_says_so(args: Any) -> None:
    fact, marks = BROKEN.redact(intended(args))
    assert isinstance(fact, ToolIntended)
    assert fact.args == REDACTED
    assert ("args", "failed") in marks


def test_calls_that_could_not_be_looked_through_stay_calls() -> None:
    fact, marks = BROKEN.redact(replied(ToolCall(id="c", name="t", args_json='{"a":"it is hunter2"}')))
    assert isinstance(fact, ModelReplied)
    assert fact.calls == ()
    assert marks == (("calls", "failed"),)


def test_a_detector_is_asked_only_about_what_it_matches() -> None:
    fact = intended({"a": "nothing of the kind"})
    assert BROKEN.redact(fact)[0] is fact


def test_detectors_can_be_added() -> None:
    word = Detector(name="word", pattern="wombat")
    message = MessageTaken(turn_index=1, message_chars=1, text="a wombat")
    fact, marks = Redaction.of(detectors=[word], credentials=False).redact(message)
    assert isinstance(fact, MessageTaken)
    assert fact.text == f"a {REDACTED}"
    assert marks == (("text", "mask"),)


def test_a_detector_can_name_the_part_that_goes() -> None:
    pin = Detector(name="pin", pattern=r"pin (?P<secret>\d{4})\b")
    fact, _ = Redaction.of(detectors=[pin]).redact(intended("pin 4821, spin 99999, pin 17"))
    assert isinstance(fact, ToolIntended)
    assert fact.args == f"pin {REDACTED}, spin 99999, pin 17"


@pytest.mark.parametrize("pattern", [r"^\d{4}$", r"\A\d{4}\z"])
def test_a_detector_can_ask_for_a_whole_text(pattern: str) -> None:
    policy = Redaction.of(detectors=[Detector(name="pin", pattern=pattern)])
    fact, _ = policy.redact(intended({"a": "4821", "b": "x 4821", "c": ["4821"], "d": 4821, "e": 48213}))
    assert isinstance(fact, ToolIntended)
    assert fact.args == {"a": REDACTED, "b": "x 4821", "c": [REDACTED], "d": REDACTED, "e": 48213}


def test_none_keeps_everything() -> None:
    fact = intended({"password": "hunter2", "k": KEY})
    assert Redaction.none().redact(fact) == (fact, ())
    assert Redaction.none().redact(fact)[0] is fact


def test_a_fact_without_values_costs_nothing() -> None:
    fact = CallTaken(iteration=1, call_id=KEY, tool_name="t")
    assert STANDARD.redact(fact) == (fact, ())


def test_redacting_twice_is_redacting_once() -> None:
    once, marks = STANDARD.redact(intended({"password": "x", "t": [f"a {KEY}"], "b": '{"token": "t"}'}))
    again, more = STANDARD.redact(once)
    assert again == once
    assert marks
    assert dict(more).keys() <= dict(marks).keys()

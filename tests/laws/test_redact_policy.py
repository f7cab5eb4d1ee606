"""A policy names fields and adds detectors; a row keeps everything else, and says what went and how."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from file_ledger import on_file, select
from footprint_core import (
    Answer,
    BuilderError,
    Decision,
    Ledger,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    MessageOutcome,
    Redactor,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    before_tool,
    deny,
    on_message,
    tool,
)
from footprint_core.ledger import REDACTED
from footprint_core.providers import call, reply
from footprint_observe import Detector, Redaction, Rule, SqliteLedger
from story import answered, describe, run

RECORD = {
    "customer": {"name": "Ada", "ssn": "123-45-6789"},
    "items": [{"sku": "a", "ssn": "1"}, {"sku": "b", "ssn": "2"}],
    "n": 1,
}
LOOKS = [reply(calls=[call("c1", "look", {})]), reply(text="done")]
SSN = Detector(name="ssn", pattern=r"\d{3}-\d\d-\d{4}")


def looking(result: Any) -> Any:
    def look() -> Any:
        return result

    return tool(name="look")(look)


def replacing(value: Any, why: str = "because") -> Any:
    @after_tool("strip")
    def strip(call: ToolResultContext) -> ToolResultOutcome:
        return allow(value, why=why)

    return strip


def row_of(policy: Redactor, result: Any, rule: Any) -> Decision:
    """The row of a rule about a result."""
    builder, _ = describe(
        LOOKS, looking(result), act={"after_tool": [rule]}, ledger=MemoryLedger(redact=policy)
    )
    (row,) = answered(run(builder.build().run("go"))).decisions
    return row


def test_a_ledger_of_either_kind_takes_a_policy(tmp_path: Path) -> None:
    policy = Redaction.of(fields=["before.n"], detectors=[SSN])
    redactor: Redactor = policy
    file = SqliteLedger(tmp_path / "l.db", redact=redactor, durability="process")
    ledgers: list[Ledger] = [MemoryLedger(redact=redactor), file]

    async def go(ledger: Ledger) -> Answer:
        builder, _ = describe(LOOKS, looking(RECORD), act={"after_tool": [replacing([])]}, ledger=ledger)
        async with builder.build() as agent:
            return answered(await agent.run("go"))

    rows = [run(go(ledger)).decisions[0] for ledger in ledgers]
    assert [row.before["n"] for row in rows] == [REDACTED] * 2
    assert [row.before["customer"]["ssn"] for row in rows] == [REDACTED] * 2
    assert rows[0].redacted == rows[1].redacted


@pytest.mark.parametrize(
    ("field", "before"),
    [
        ("before", REDACTED),
        ("before.customer", {**RECORD, "customer": REDACTED}),
        ("before.customer.ssn", {**RECORD, "customer": {"name": "Ada", "ssn": REDACTED}}),
        (
            "before.items.ssn",
            {**RECORD, "items": [{"sku": "a", "ssn": REDACTED}, {"sku": "b", "ssn": REDACTED}]},
        ),
        ("before.items.1.ssn", {**RECORD, "items": [RECORD["items"][0], {"sku": "b", "ssn": REDACTED}]}),  # type: ignore[index]
        ("before.*.name", {**RECORD, "customer": {"name": REDACTED, "ssn": "123-45-6789"}}),
        ("before.n", {**RECORD, "n": REDACTED}),
    ],
)
def test_only_the_fields_that_are_named_go(field: str, before: Any) -> None:
    row = row_of(Redaction.of(fields=[field]), RECORD, replacing(RECORD | {"n": 2}))
    assert row.before == before
    assert row.after == RECORD | {"n": 2}


def test_two_stars_stand_for_any_number_of_keys() -> None:
    row = row_of(Redaction.of(fields=["**.ssn"]), RECORD, replacing(RECORD | {"n": 2}))
    assert "123-45-6789" not in str(row)
    assert str(row.before).count(REDACTED) == str(row.after).count(REDACTED) == 3
    assert row.before["customer"]["name"] == "Ada"


def test_a_field_in_json_that_stands_in_a_text_goes_too() -> None:
    text = '{"customer": {"ssn": "123-45-6789", "name": "Ada"}}'
    row = row_of(Redaction.of(fields=["before.customer.ssn"]), text, replacing("gone"))
    assert row.before == '{"customer":{"ssn":"[redacted]","name":"Ada"}}'


def test_a_row_survives_its_values(tmp_path: Path) -> None:
    policy = Redaction.of(fields=["before", "after"])
    path = tmp_path / "l.db"
    builder, _ = describe(
        LOOKS, looking(RECORD), act={"after_tool": [replacing("x")]}, ledger=on_file(path, redact=policy)
    )

    async def go() -> Answer:
        async with builder.build() as agent:
            return answered(await agent.run("go"))

    (row,) = run(go()).decisions
    assert (row.before, row.after) == (REDACTED, REDACTED)
    whole = (row.middleware, row.moment, row.outcome, row.changed, row.why, row.tool_name, row.iteration)
    assert whole == ("strip", "after-tool", "allow", True, "because", "look", 1)
    stored = select(path, "SELECT middleware, moment, outcome, changed, why, before, after FROM decisions")
    assert stored == [("strip", "after-tool", "allow", 1, "because", f'"{REDACTED}"', f'"{REDACTED}"')]


def test_a_row_says_which_fields_went_and_how_and_never_what_they_held(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    policy = Redaction.of(fields=["before.customer.ssn", "before.n"], detectors=[SSN])
    rule = replacing({"text": "it was 123-45-6789", "password": "hunter2"}, why="of 123-45-6789")
    builder, _ = describe(
        LOOKS, looking(RECORD), act={"after_tool": [rule]}, ledger=on_file(path, redact=policy)
    )

    async def go() -> Answer:
        async with builder.build() as agent:
            return answered(await agent.run("go"))

    (row,) = run(go()).decisions
    assert dict(row.redacted) == {
        "why": "mask",
        "before.customer.ssn": "mask",
        "before.n": "mask",
        "after.text": "mask",
        "after.password": "mask",
    }
    assert row.to_dict()["redacted"] == [list(mark) for mark in row.redacted]
    assert "123-45-6789" not in str(row)
    assert "hunter2" not in str(row)
    ((stored,),) = select(path, "SELECT redacted FROM decisions")
    assert "before.customer.ssn" in stored
    assert "6789" not in stored


def test_a_row_from_which_nothing_went_says_nothing_about_it() -> None:
    row = row_of(Redaction.of(fields=["before.nothing"]), RECORD, replacing("x"))
    assert row.redacted == ()
    assert "redacted" not in row.to_dict()


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (Redaction.of(detectors=[SSN]), f"belongs to {REDACTED}, not to you"),
        (Redaction.of(detectors=[SSN], credentials=False), f"belongs to {REDACTED}, not to you"),
        (Redaction.of(fields=["before", "after"]), "belongs to 123-45-6789, not to you"),
        (Redaction.standard(), "belongs to 123-45-6789, not to you"),
    ],
)
def test_a_detector_takes_its_match_out_of_why_and_leaves_the_sentence(policy: Redactor, why: str) -> None:
    @before_tool("deny")
    def refuse(call: ToolCallContext) -> ToolOutcome:
        return deny("belongs to 123-45-6789, not to you")

    builder, model = describe(
        LOOKS, looking(1), act={"before_tool": [refuse]}, ledger=MemoryLedger(redact=policy)
    )
    (row,) = answered(run(builder.build().run("go"))).decisions
    assert row.why == why
    assert model.requests[1].messages[-1].text == "belongs to 123-45-6789, not to you"


def test_a_detector_finds_what_is_short_and_needs_no_hint() -> None:
    pin = Detector(name="pin", pattern=r"\b\d{4}\b")
    row = row_of(Redaction.of(detectors=[pin]), {"pin": "4821", "4821": 1}, replacing("4821"))
    assert row.before == {"pin": REDACTED, REDACTED: 1}
    assert row.after == REDACTED


@pytest.mark.parametrize(
    ("came", "went", "changed"),
    [
        ({"password": "a"}, {"password": "b"}, True),
        ({"password": "a"}, {"password": "a"}, False),
        ({"password": "[redacted]"}, {"password": "a"}, True),
    ],
)
def test_whether_something_changed_is_said_of_the_real_values(came: Any, went: Any, changed: bool) -> None:
    row = row_of(Redaction.standard(), came, replacing(went))
    assert row.changed is changed
    if changed:
        assert row.before == row.after == {"password": REDACTED}


def test_a_name_that_matches_nothing_is_no_error() -> None:
    row = row_of(
        Redaction.of(fields=["before.none.of.these", "notice.absent", "**.absent"]), RECORD, replacing("x")
    )
    assert (row.before, row.after) == (RECORD, "x")


BROKEN: list[dict[str, Any]] = [
    {"fields": "before"},
    {"fields": b"before"},
    {"fields": {"before": "mask"}},
    {"fields": [""]},
    {"fields": ["before..ssn"]},
    {"fields": ["before."]},
    {"fields": [" "]},
    {"fields": [5]},
    {"fields": None},
    {"detectors": SSN},
    {"detectors": ["ssn"]},
    {"detectors": [re.compile("x")]},
    {"detectors": [Detector(name="x", pattern=re.compile("x"))]},  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    {"detectors": [Detector(name="", pattern="x")]},
    {"detectors": [Detector(name="x", pattern="x*")]},
    {"detectors": [Detector(name="x", pattern="(?<=a)x")]},
    {"detectors": [Detector(name="x", pattern=r"(a)\1")]},
    {"detectors": [Detector(name="x", pattern="((x{100}){100}){100}")]},
    {"fields": ["nowhere"]},
    {"fields": ["salt"]},
    {"rules": [Rule()]},
    {"rules": [Rule(path="before", key="ssn")]},
    {"rules": [Rule(path="nowhere.ssn")]},
    {"rules": [Rule(key="1-2")]},
    {"rules": [Rule(path="before", strategy="hash")]},  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    {"rules": [Rule(path="before", strategy="seal")]},
    {"rules": [Rule(key="ssn", strategy="pseudonym")]},
    {"rules": ["before"]},
    {"rules": Rule(path="before")},
    {"erasable": "before.ssn"},
    {"erasable": ["nowhere.ssn"]},
    {"keys": {"a": b"A" * 32}},
]


@pytest.mark.parametrize("given", BROKEN)
def test_a_policy_that_is_not_understood_is_refused_when_it_is_made(given: Any) -> None:
    with pytest.raises(BuilderError):
        Redaction.of(**given)


@pytest.mark.parametrize("given", [{"field": ["before"]}, {"fields": ["before"], "strategy": "hash"}])
def test_a_policy_with_a_word_nobody_knows_is_refused_when_it_is_made(given: Any) -> None:
    with pytest.raises(TypeError):
        Redaction.of(**given)


def raising(text: str) -> bool:
    """A check that raises about one text."""
    if "wombat" in text:
        raise RuntimeError(text)
    return False


def test_a_detector_that_raises_costs_the_whole_value_it_was_asked_about() -> None:
    policy = Redaction.of(detectors=[Detector(name="raising", pattern=r"\w+", check=raising)])
    row = row_of(policy, {"a": "a wombat", "n": 1}, replacing({"a": "a cat"}, why="no wombat here"))
    assert (row.before, row.after, row.why) == (REDACTED, {"a": "a cat"}, REDACTED)
    assert dict(row.redacted) == {"before": "failed", "why": "failed"}
    assert (row.outcome, row.changed) == ("allow", True)


class Failing:
    """A redactor of another make that raises."""

    def redact(self, fact: Any) -> Any:
        raise RuntimeError("canary")


def test_a_redactor_that_raises_keeps_nothing_and_the_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    builder, _ = describe(
        LOOKS,
        looking("wombat"),
        act={"after_tool": [replacing("cat")]},
        ledger=on_file(path, redact=Failing()),
    )

    async def go() -> Answer:
        async with builder.build() as agent:
            return answered(await agent.run("the wombat"))

    answer = run(go())
    assert answer.text == "done"
    (row,) = answer.decisions
    assert (row.before, row.after, row.why) == (REDACTED,) * 3
    assert dict(row.redacted) == {"before": "failed", "after": "failed", "why": "failed"}
    values = {text for (text,) in select(path, "SELECT json FROM vals")}
    assert not any("wombat" in text or "cat" in text for text in values)


def test_a_refusal_at_the_door_is_redacted_like_any_row() -> None:
    @on_message("names")
    def names(message: MessageContext) -> MessageOutcome:
        return deny(f"it names {message.content}")

    ledger = MemoryLedger(redact=Redaction.of(detectors=[SSN]))
    builder, _ = describe([], act={"input": [names]}, ledger=ledger)
    agent = builder.build()
    with pytest.raises(MessageDeniedError) as refused:
        run(agent.run("123-45-6789"))
    (row,) = ledger.decisions(agent.last_run_id or "")
    assert row.why == f"it names {REDACTED}"
    assert refused.value.reason == "it names 123-45-6789"

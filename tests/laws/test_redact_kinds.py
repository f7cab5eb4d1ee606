"""A policy acts on every kind of entry that holds a value: consent, windows, schemas, messages, calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from file_ledger import file_bytes, on_file, select
from footprint_core import (
    CheckInPause,
    Ledger,
    MemoryLedger,
    Redactor,
    check_in_approved,
    summarize_oldest,
    tool,
)
from footprint_core.facts import CheckInAnswered, CheckInAsked, OutputJudged, WindowVisited
from footprint_core.ledger import REDACTED
from footprint_core.providers import Scripted, call, reply
from footprint_observe import Detector, Redaction
from story import answered, describe, run

CANARY = "canary-3d8e"
FOUND = Redaction.of(detectors=[Detector(name="canary", pattern=CANARY)])
NAMED = Redaction.of(
    fields=[
        "evidence.card",
        "note",
        "decided_by",
        "args.card",
        "result",
        "text",
        "summary",
        "notice",
        "error",
    ]
)


@tool(check_in="always", evidence=lambda args: {"card": args["card"], "amount": 5})
def charge(card: str) -> str:
    """Charge."""
    return f"{card} was charged"


def consent(ledger: Ledger) -> str:
    builder, _ = describe(
        [reply(calls=[call("c1", "charge", {"card": CANARY})]), reply(text="done")], charge, ledger=ledger
    )
    agent = builder.build()

    async def go() -> str:
        async with agent:
            pause = await agent.run("go")
            assert isinstance(pause, CheckInPause)
            assert pause.evidence == {"card": CANARY, "amount": 5}
            yes = check_in_approved(by=f"dana {CANARY}", note=f"seen {CANARY}")
            return answered(await agent.resume(pause.checkpoint, yes)).run_id

    return run(go())


def shaped(ledger: Ledger) -> str:
    builder, model = describe([reply(text=f'"{CANARY}"'), reply(text="5")], ledger=ledger)

    class Shape:
        instruction = ""

        def check(self, value: Any) -> object:
            if value != 5:
                raise ValueError(f"{value} is no number")
            return value

    agent = builder.output_schema(Shape(), retries=1).build()

    async def go() -> str:
        async with agent:
            answer = answered(await agent.run("go"))
            assert (answer.value, answer.schema_met) == (5, True)
            assert CANARY in str(model.requests[1].messages[:])
            return answer.run_id

    return run(go())


def folded(ledger: Ledger) -> str:
    def look(n: int) -> str:
        """Look."""
        return f"{CANARY} {'x' * 200}"

    window = summarize_oldest(
        threshold_tokens=1,
        keep_recent_turns=1,
        summarizer=Scripted([reply(text=f"about {CANARY}")]),
        model="s",
    )
    replies = [reply(calls=[call(f"c{i}", "look", {"n": i})]) for i in range(2)]
    builder, model = describe(
        [*replies, reply(text="done")], look, ledger=ledger, act={"window": window}, keep_last_tool_results=0
    )
    agent = builder.build()

    async def go() -> str:
        async with agent:
            answer = answered(await agent.run("go"))
            assert f"about {CANARY}" in str(model.requests[2].messages[:])
            return answer.run_id

    return run(go())


STORIES = {"consent": consent, "schema": shaped, "window": folded}


@pytest.mark.parametrize("policy", [FOUND, NAMED])
def test_consent_is_redacted(policy: Redactor) -> None:
    ledger = MemoryLedger(redact=policy)
    run_id = consent(ledger)
    facts = [entry.fact for entry in ledger.entries(run_id)]
    (asked,) = [fact for fact in facts if isinstance(fact, CheckInAsked)]
    (given,) = [fact for fact in facts if isinstance(fact, CheckInAnswered)]
    assert asked.evidence == {"card": REDACTED, "amount": 5}
    assert given.approved
    assert CANARY not in f"{given.decided_by} {given.note}"
    assert REDACTED in given.note
    assert ledger.decisions(run_id) == ()


@pytest.mark.parametrize("policy", [FOUND, NAMED])
def test_attempts_at_a_shape_are_redacted(policy: Redactor) -> None:
    ledger = MemoryLedger(redact=policy)
    facts = [entry.fact for entry in ledger.entries(shaped(ledger))]
    first, second = [fact for fact in facts if isinstance(fact, OutputJudged)]
    assert (first.outcome, second.outcome) == ("retried", "passed")
    assert CANARY not in f"{first.text} {first.error}"
    assert REDACTED in first.error


@pytest.mark.parametrize("policy", [FOUND, NAMED])
def test_window_visits_are_redacted(policy: Redactor) -> None:
    ledger = MemoryLedger(redact=policy)
    facts = [entry.fact for entry in ledger.entries(folded(ledger))]
    visits = [fact for fact in facts if isinstance(fact, WindowVisited) and fact.removed]
    assert len(visits) == 1
    assert CANARY not in str(visits[0].summary)
    assert REDACTED in str(visits[0].summary)


@pytest.mark.parametrize("story", STORIES)
def test_a_file_holds_no_byte_of_it_and_each_row_says_what_went(tmp_path: Path, story: str) -> None:
    path = tmp_path / "l.db"
    STORIES[story](on_file(path, redact=FOUND))
    assert CANARY.encode() not in file_bytes(path)
    marked = {kind for (kind,) in select(path, "SELECT kind FROM facts WHERE redacted IS NOT NULL")}
    expected = {
        "consent": {"check-in.asked", "check-in.answered", "tool.intended", "tool.finished", "model.replied"},
        "schema": {"output.judged", "model.replied"},
        "window": {"window.visited", "tool.finished"},
    }
    assert marked == expected[story]
    kept = tmp_path / "kept.db"
    STORIES[story](on_file(kept))
    assert CANARY.encode() in file_bytes(kept)

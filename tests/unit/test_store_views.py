"""The views: a run read with plain SQL, and with the plain `sqlite3` command."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from footprint_core.facts import (
    CallAnswered,
    CallTaken,
    Decided,
    Fact,
    IterationEnded,
    MessageTaken,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    PauseAnswered,
    PauseOpened,
    RunAbandoned,
    RunConfigured,
    SegmentEnded,
    ToolFinished,
    ToolIntended,
    TraceRef,
    Usage,
    WindowVisited,
)
from footprint_core.ledger import Batch, Entry
from footprint_observe.store.ledger import SqliteLedger

NOON = 1_700_000_000_000_007


class Run:
    """Appends facts to one run, each at its place."""

    def __init__(self, ledger: SqliteLedger, run_id: str) -> None:
        self._ledger = ledger
        self._run_id = run_id
        self._next = 1

    def add(self, *facts: Fact, segment: int = 1) -> None:
        entries = tuple(
            Entry(position=place, time=NOON + place * 1_000_000, fact=fact)
            for place, fact in enumerate(facts, self._next)
        )
        self._next += len(facts)
        trace = TraceRef(trace_id="a" * 32, span_id="b" * 16)
        batch = Batch(run_id=self._run_id, segment=segment, entries=entries, trace=trace)
        assert self._ledger.append_inline(batch) is not None


def configured(**fields: Any) -> RunConfigured:
    given: dict[str, Any] = {
        "agent_id": "a",
        "agent_name": "refunds",
        "provider": "scripted",
        "model": "m-1",
        "rules": {},
        "tools": (),
        "turn_index": 1,
        "conversation_id": "conv",
    }
    return RunConfigured(**(given | fields))


def asked(iteration: int) -> ModelAsked:
    return ModelAsked(
        iteration=iteration,
        provider="scripted",
        model="m-1",
        server=None,
        messages=2,
        message_chars=9,
        new_messages=1,
        system_chars=0,
        tools=(),
        tool_chars=0,
        first=iteration == 1,
    )


def replied(iteration: int, **fields: Any) -> ModelReplied:
    return ModelReplied(
        iteration=iteration, call_count=1, stop_reason="tool_use", duration_us=8, route="tool-calls", **fields
    )


def ended(outcome: Any, **fields: Any) -> SegmentEnded:
    return SegmentEnded(
        outcome=outcome, iterations=2, input_tokens=10, output_tokens=5, duration_us=1, **fields
    )


def answered(iteration: int, call_id: str, **fields: Any) -> CallAnswered:
    given: dict[str, Any] = {
        "iteration": iteration,
        "call_id": call_id,
        "tool_name": "issue_refund",
        "tool_type": "function",
        "status": "ran",
        "executed": True,
        "args_changed": False,
        "args_known_keys": 1,
        "args_unknown_keys": 0,
        "result_type": "string",
        "result_bytes": 4,
    }
    return CallAnswered(**(given | fields))


def rule(outcome: Any, **fields: Any) -> Decided:
    given: dict[str, Any] = {"middleware": "ceiling", "moment": "before-tool", "iteration": 1}
    return Decided(**(given | {"outcome": outcome} | fields))


def pause(pause_id: str) -> PauseOpened:
    return PauseOpened(
        pause_id=pause_id,
        pause_kind="ask",
        iteration=1,
        call_id="c2",
        tool_name="issue_refund",
        middleware="four-eyes",
        salt="00",
        digest="11",
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Generator[SqliteLedger]:
    ledger = SqliteLedger(tmp_path / "l.db")
    yield ledger
    asyncio.run(ledger.close())


def ask(ledger: SqliteLedger, sql: str, *params: Any) -> list[dict[str, Any]]:
    connection = sqlite3.connect(f"{ledger.path.as_uri()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, params)]
    finally:
        connection.close()


def a_paused_and_resumed_run(ledger: SqliteLedger) -> None:
    run = Run(ledger, "run")
    # Entries of another run in between: nothing may count or find them.
    other = Run(ledger, "other")
    other.add(configured(conversation_id=None), rule("deny", why="no"), rule("deny", why="no"))
    run.add(
        configured(follows="before"),
        rule(
            "allow", moment="input", iteration=0, changed=True, why="ssn", before="my ssn", after="my [ssn]"
        ),
        MessageTaken(turn_index=1, message_chars=8, text="my [ssn]"),
        asked(1),
        replied(1, text="I will", usage=Usage(input=10, output=5), response_id="r-1"),
        CallTaken(iteration=1, call_id="c1", tool_name="issue_refund", parallel_count=2),
        rule("allow", tool_name="issue_refund", call_id="c1", version="7", duration_us=12),
        ToolIntended(iteration=1, call_id="c1", tool_name="issue_refund", args={"amount": 5}),
        ToolFinished(
            iteration=1, call_id="c1", tool_name="issue_refund", failed=False, duration_us=33, result="done"
        ),
        answered(1, "c1", duration_us=33),
        CallTaken(iteration=1, call_id="c2", tool_name="issue_refund", parallel_count=2),
        rule(
            "ask",
            middleware="four-eyes",
            why="ok?",
            detail={"risk": "high"},
            tool_name="issue_refund",
            call_id="c2",
        ),
        rule("deny", middleware="trial", shadow=True, why="would refuse"),
        pause("p1"),
        ended("paused"),
    )
    other.add(rule("deny", why="no"))
    run.add(
        configured(resumed=True, follows="before"),
        PauseAnswered(
            pause_id="p1",
            pause_kind="ask",
            answer="declined",
            tool_name="issue_refund",
            call_id="c2",
            paused_us=60,
        ),
        rule(
            "deny",
            middleware="four-eyes",
            answer="person",
            why="declined by dana",
            decided_by="dana",
            tool_name="issue_refund",
            call_id="c2",
        ),
        answered(1, "c2", status="denied", executed=False, decided_by_rule="four-eyes", result_type="string"),
        IterationEnded(iteration=1, call_count=2),
        WindowVisited(
            iteration=2,
            strategy="sliding",
            removed=(1, 2),
            removed_messages=2,
            refusals=(),
            refusals_more=0,
            dropped_observations=("search",),
            pinned=(),
            yielded=0,
            stand_down=False,
            figures={"turns": 12},
            notice="2 messages left",
        ),
        asked(2),
        ModelFailed(iteration=2, error_class="TimeoutError", duration_us=9),
        asked(2),
        replied(2, text="again"),
        # The model repeats an id in a later iteration.
        CallTaken(iteration=2, call_id="c1", tool_name="issue_refund"),
        ToolIntended(iteration=2, call_id="c1", tool_name="issue_refund", args={"amount": 6}),
        segment=2,
    )


def test_decisions_are_read_as_the_ledger_tells_them(ledger: SqliteLedger) -> None:
    a_paused_and_resumed_run(ledger)
    rows = ask(ledger, "SELECT * FROM decisions WHERE run_id = 'run' ORDER BY id")
    told = ledger.decisions("run")
    assert len(rows) == len(told) == 5
    for row, decision in zip(rows, told, strict=True):
        for name in (
            "run_id", "segment", "position", "recorded_at", "moment", "at", "phase", "middleware", "version",
            "outcome", "changed", "answer", "why", "decided_by", "tool_name", "tool_source", "tool_call_id",
            "iteration", "duration_us", "error_class", "shadow", "after_approval",
        ):  # fmt: skip
            assert row[name] == getattr(decision, name), name
        for name in ("before", "after", "detail"):
            assert (row[name] is not None) is (name in decision.to_dict())
            assert row[name] is None or json.loads(row[name]) == getattr(decision, name)
        assert (row["trace_id"], row["span_id"]) == ("a" * 32, "b" * 16)
    assert rows[0]["recorded_at"] == "2023-11-14T22:13:22.000007+00:00"
    assert rows[0]["at"] == "message"
    assert rows[0]["phase"] == "input"


def test_json_functions_work_on_every_row(ledger: SqliteLedger) -> None:
    a_paused_and_resumed_run(ledger)
    rows = ask(
        ledger,
        "SELECT json_extract(detail, '$.risk') AS risk, before ->> '$' AS b FROM decisions ORDER BY id",
    )
    assert {row["risk"] for row in rows} == {None, "high"}
    assert {row["b"] for row in rows} == {None, "my ssn"}


def test_a_run_is_one_row(ledger: SqliteLedger) -> None:
    a_paused_and_resumed_run(ledger)
    (row,) = ask(ledger, "SELECT * FROM runs WHERE run_id = 'run'")
    assert row == {
        "id": 4,
        "run_id": "run",
        "conversation_id": "conv",
        "agent": "refunds",
        "model": "m-1",
        "started_at": "2023-11-14T22:13:21.000007+00:00",
        "ended_at": None,
        "segments": 2,
        "outcome": "open",
        "iterations": 2,
        "input_tokens": 10,
        "output_tokens": 5,
        "decisions": 5,
        "denials": 1,
        "asks": 1,
        "follows": "before",
        "question": "my [ssn]",
        "text": None,
    }
    run = Run(ledger, "short")
    run.add(configured(), ended("answered", text="Done."))
    rows = ask(ledger, "SELECT run_id, outcome, text, ended_at, denials FROM runs ORDER BY id DESC")
    assert [row["run_id"] for row in rows] == ["short", "run", "other"]
    assert rows[0] == {
        "run_id": "short",
        "outcome": "answered",
        "text": "Done.",
        "ended_at": "2023-11-14T22:13:22.000007+00:00",
        "denials": 0,
    }
    assert rows[2]["outcome"] == "open"
    assert rows[2]["denials"] == 3


def test_a_tool_call_without_its_outcome_may_have_run(ledger: SqliteLedger) -> None:
    a_paused_and_resumed_run(ledger)
    rows = ask(
        ledger,
        "SELECT iteration, tool_call_id, args, result, status, executed, decided_by_rule, duration_us, "
        "in_doubt FROM tool_calls WHERE run_id = 'run' ORDER BY id",
    )
    assert [tuple(row.values()) for row in rows] == [
        (1, "c1", '{"amount":5}', '"done"', "ran", 1, None, 33, 0),
        (1, "c2", None, None, "denied", 0, "four-eyes", None, 0),
        (2, "c1", '{"amount":6}', None, None, None, None, None, 1),
    ]


def test_a_tool_call_that_was_cancelled_while_it_ran_may_have_run(ledger: SqliteLedger) -> None:
    run = Run(ledger, "run")
    for call, stopped in (("c1", True), ("c2", False)):
        given: dict[str, Any] = {"iteration": 1, "call_id": call, "tool_name": "t"}
        end = ToolFinished(**given, failed=not stopped, cancelled=stopped, duration_us=1)
        run.add(CallTaken(**given), ToolIntended(**given, args={}), end)
    rows = ask(ledger, "SELECT tool_call_id, status, in_doubt FROM tool_calls ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [("c1", "cancelled", 1), ("c2", "failed", 0)]


def test_a_model_call_that_failed_does_not_get_the_reply_of_the_next(ledger: SqliteLedger) -> None:
    a_paused_and_resumed_run(ledger)
    rows = ask(
        ledger,
        "SELECT iteration, text, input_tokens, response_id, error_class, duration_us FROM model_calls "
        "WHERE run_id = 'run' ORDER BY id",
    )
    assert [tuple(row.values()) for row in rows] == [
        (1, "I will", 10, "r-1", None, 8),
        (2, None, None, None, "TimeoutError", 9),
        (2, "again", None, None, None, 8),
    ]


def test_a_model_call_that_was_asked_again_after_a_crash_has_no_reply(ledger: SqliteLedger) -> None:
    Run(ledger, "run").add(configured(), asked(1), asked(1), replied(1, text="late"))
    rows = ask(ledger, "SELECT text FROM model_calls ORDER BY id")
    assert [row["text"] for row in rows] == [None, "late"]


def test_a_pause_is_open_until_it_is_answered_or_abandoned(ledger: SqliteLedger) -> None:
    a_paused_and_resumed_run(ledger)
    Run(ledger, "waiting").add(configured(), pause("p2"), ended("paused"))
    left = Run(ledger, "left")
    left.add(configured(), pause("p3"), ended("paused"))
    left.add(RunAbandoned(by="dana", reason="old"), segment=2)
    rows = ask(ledger, "SELECT pause_id, kind, middleware, answer, paused_us, open FROM pauses ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [
        ("p1", "ask", "four-eyes", "declined", 60, 0),
        ("p2", "ask", "four-eyes", None, None, 1),
        ("p3", "ask", "four-eyes", None, None, 0),
    ]
    (row,) = ask(ledger, "SELECT answered_at FROM pauses WHERE pause_id = 'p1'")
    assert row["answered_at"].startswith("2023-11-14T22:13:")


def test_a_window_record_says_what_left(ledger: SqliteLedger) -> None:
    a_paused_and_resumed_run(ledger)
    (row,) = ask(ledger, "SELECT * FROM window_records")
    assert row["strategy"] == "sliding"
    assert json.loads(row["removed"]) == [1, 2]
    assert json.loads(row["dropped_observations"]) == ["search"]
    assert row["figures"] == '{"turns":12}'
    assert row["notice"] == "2 messages left"


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs the sqlite3 command")
def test_the_plain_command_reads_the_decisions(ledger: SqliteLedger) -> None:
    a_paused_and_resumed_run(ledger)
    done = subprocess.run(
        [
            "sqlite3",
            str(ledger.path),
            "select moment, middleware, outcome, changed, why, before, after from decisions order by id",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "before-tool|ceiling|deny|0|no||",
        "before-tool|ceiling|deny|0|no||",
        'input|ceiling|allow|1|ssn|"my ssn"|"my [ssn]"',
        "before-tool|ceiling|allow|0|||",
        "before-tool|four-eyes|ask|0|ok?||",
        "before-tool|trial|deny|0|would refuse||",
        "before-tool|ceiling|deny|0|no||",
        "before-tool|four-eyes|deny|0|declined by dana||",
    ]

"""Where rules refuse what was recorded: the recording goes on, and the report says where it is not true."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from footprint_core import (
    ActOptions,
    BuilderError,
    MemoryLedger,
    MessageContext,
    MessageOutcome,
    ToolCallContext,
    ToolOutcome,
    allow,
    before_tool,
    deny,
    on_message,
)
from footprint_core.watch import Watcher
from footprint_observe.backtest import (
    Answering,
    BacktestReport,
    Divergence,
    Rules,
    read_transcripts,
    run_backtest,
)
from footprint_observe.backtest.airline import ask_before_changes, certificate_ceiling
from footprint_observe.backtest.airline import rules as airline_rules

MADE_UP = Path(__file__).with_name("conversations.jsonl")


def play(
    path: Path, rules: Rules, *, answer: Answering = "approve", ledger: MemoryLedger | None = None
) -> BacktestReport:
    kept = MemoryLedger() if ledger is None else ledger
    return asyncio.run(run_backtest(read_transcripts(path), rules, ledger=kept, answer=answer))


def marks(report: BacktestReport) -> list[tuple[str, str, str | None, str | None]]:
    return [(one.conversation_id, one.what, one.call_id, one.rule) for one in report.divergences]


def recorded(path: Path, *messages: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"id": "one", "messages": messages}), encoding="utf-8")
    return path


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def reply(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calls(*wanted: tuple[str, str, str]) -> dict[str, Any]:
    listed = [{"id": id, "type": "function", "function": {"name": n, "arguments": a}} for id, n, a in wanted]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def result(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def refusing(text: str, phase: str) -> Any:
    @on_message("refuse")
    def refuse(message: MessageContext) -> MessageOutcome:
        return deny("No.") if message.phase == phase and text in message.content else allow()

    return refuse


def test_declined_calls_are_marked_one_by_one_and_the_recording_goes_on() -> None:
    report = play(MADE_UP, airline_rules, answer="decline")
    rule = "ask-before-changes"
    assert marks(report) == [
        ("made-up-1", "call-declined", "call_a", rule),
        ("made-up-1", "call-declined", "call_b", rule),
        ("made-up-2", "call-declined", "call_2", rule),
        ("made-up-3", "call-declined", "call_5", rule),
        ("made-up-3", "call-declined", "call_11", rule),
    ]
    assert (report.calls, report.executed, report.refused, report.declined) == (23, 18, 5, 5)
    assert (report.runs, report.unanswered, report.unplayed) == (9, 3, 0)


def test_a_question_left_open_ends_its_conversation_only() -> None:
    report = play(MADE_UP, airline_rules, answer="stop")
    rule = "ask-before-changes"
    assert marks(report) == [
        ("made-up-1", "stopped", "call_a", rule),
        ("made-up-2", "stopped", "call_2", rule),
        ("made-up-3", "stopped", "call_5", rule),
    ]
    assert (report.conversations, report.runs, report.unplayed) == (3, 5, 4)
    assert (report.asked, report.stopped, report.approved, report.unanswered) == (3, 3, 0, 0)


def test_a_call_a_rule_denies_is_marked_and_not_confused_with_one_that_was_declined(tmp_path: Path) -> None:
    @before_tool("ceiling")
    def ceiling(call: ToolCallContext) -> ToolOutcome:
        return deny("Too much.") if call.args["amount"] > 5 else allow()

    path = recorded(
        tmp_path / "one.jsonl",
        user("Send certificates."),
        calls(("a", "send_certificate", '{"amount": 3}'), ("b", "send_certificate", '{"amount": 9}')),
        result("a", "first"),
        result("b", "second"),
        reply("Done."),
    )
    report = play(path, {"before_tool": [ceiling, ask_before_changes]}, answer="decline")
    assert marks(report) == [
        ("one", "call-declined", "a", "ask-before-changes"),
        ("one", "call-denied", "b", "ceiling"),
    ]


def test_the_shipped_ceiling_refuses_what_is_above_it_and_what_is_no_number(tmp_path: Path) -> None:
    amounts = ("500", "500.01", '"50"', "true", "null")
    wanted = [(f"c{at}", "send_certificate", f'{{"amount": {a}}}') for at, a in enumerate(amounts)]
    path = recorded(
        tmp_path / "one.jsonl", user("Go."), calls(*wanted), *(result(id, "ok") for id, _, _ in wanted)
    )
    report = play(path, {"before_tool": [certificate_ceiling]})
    assert [one.call_id for one in report.divergences] == ["c1", "c2", "c3", "c4"]


def test_a_denied_message_passes_over_its_replies_and_the_next_message_begins_the_conversation() -> None:
    report = play(MADE_UP, {"input": [refusing("QX1001", "input")]})
    assert marks(report) == [("made-up-1", "message-denied", None, "refuse")]
    assert (report.denied_messages, report.denied_answers, report.runs, report.calls) == (1, 0, 9, 20)


def test_a_denied_answer_is_marked_and_its_turn_is_not_in_the_conversation() -> None:
    histories: list[list[str]] = []

    @before_tool("reading")
    def reading(call: ToolCallContext) -> ToolOutcome:
        histories.append([message.text for message in call.history if message.role == "user"])
        return allow()

    report = play(MADE_UP, {"before_tool": [reading], "output": [refusing("cancelled", "output")]})
    assert marks(report) == [("made-up-1", "answer-denied", None, "refuse")]
    assert (report.denied_answers, report.runs, report.calls, report.unanswered) == (1, 9, 23, 3)
    first, *_ = histories[0]
    assert histories[3] == [first, "Yes."]
    assert histories[4] == histories[5] == [first, "Something for my trouble?"]


def test_a_repeated_id_within_one_reply_is_blocked_and_the_first_call_keeps_its_result(
    tmp_path: Path,
) -> None:
    path = recorded(
        tmp_path / "one.jsonl",
        user("Add."),
        calls(("a", "add", '{"n": 1}'), ("a", "add", '{"n": 2}'), ("b", "add", '{"n": 3}')),
        result("a", "one"),
        result("a", "two"),
        result("b", "three"),
        reply("Added."),
    )
    results: list[object] = []
    report = play(path, {"after_tool": [_Keeping(results)]})
    assert results == ["one", "three"]
    assert [(one.what, one.rule) for one in report.divergences] == [("call-blocked", None)]


class _Keeping:
    """A rule that keeps the results it is shown."""

    name = "keeping"

    def __init__(self, results: list[object]) -> None:
        self._results = results

    def on_tool_result(self, call: Any) -> Any:
        self._results.append(call.result)
        return allow()


def test_ids_the_loop_would_replace_still_find_their_results(tmp_path: Path) -> None:
    path = recorded(
        tmp_path / "one.jsonl",
        user("Add."),
        calls(("call|1 é", "add", "{}"), ("x" * 80, "add", "{}")),
        result("x" * 80, "[2]"),
        result("call|1 é", "[1]"),
        reply("Added."),
    )
    results: list[object] = []
    report = play(path, {"after_tool": [_Keeping(results)]})
    assert (results, report.divergences) == ([[1], [2]], ())


def test_arguments_that_are_no_object_are_marked_and_changed_ones_too(tmp_path: Path) -> None:
    @before_tool("clamp")
    def clamp(call: ToolCallContext) -> ToolOutcome:
        return allow({"n": 1}, why="at most one") if call.args["n"] > 1 else allow()

    path = recorded(
        tmp_path / "one.jsonl",
        user("Add."),
        calls(("a", "add", "[1]"), ("b", "add", '{"n": 2}'), ("c", "add", '{"n": 1}')),
        result("a", "1"),
        result("b", "2"),
        result("c", "3"),
        reply("Added."),
    )
    report = play(path, {"before_tool": [clamp]})
    assert [(one.what, one.call_id) for one in report.divergences] == [
        ("call-invalid", "a"),
        ("args-changed", "b"),
    ]
    assert (report.calls, report.executed, report.refused) == (3, 2, 1)


def test_a_divergence_names_its_line() -> None:
    report = play(MADE_UP, {"input": [refusing("Think", "input")]})
    assert report.divergences == (
        Divergence(conversation_id="made-up-3", line=3, what="message-denied", rule="refuse"),
    )


def test_a_callable_makes_new_rules_for_every_conversation_and_a_mapping_is_shared() -> None:
    made: list[_Keeping] = []
    results: list[object] = []

    def rules() -> ActOptions:
        made.append(_Keeping(results))
        return {"after_tool": [made[-1]]}

    report = play(MADE_UP, rules)
    # Once more to look at them before anything runs.
    assert len(made) == report.conversations + 1
    assert len(results) == report.calls


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ({"before": []}, "no key 'before'"),
        ({"input": [before_tool("wrong")(lambda _: allow())]}, "it belongs under before_tool"),
        (list, "of type list"),
        (lambda: 1 // 0, "raised ZeroDivisionError"),
    ],
)
def test_rules_no_agent_takes_are_refused_before_anything_runs(rules: Any, sentence: str) -> None:
    class Never(MemoryLedger):
        def append_inline(self, batch: Any, /) -> Any:
            raise AssertionError

    with pytest.raises(BuilderError, match=sentence):
        play(MADE_UP, rules, ledger=Never())


def test_the_ledger_and_the_recorders_of_the_caller_stay_open() -> None:
    class Closed(MemoryLedger):
        closed = False

        async def close(self) -> None:
            self.closed = True

    class Recorder:
        id = "recorder"
        closed = False

        def on_event(self, event: object, /) -> None:
            pass

        def flush(self, timeout: float, /) -> bool:
            return True

        def close(self, timeout: float, /) -> None:
            self.closed = True

    ledger, recorder = Closed(), Recorder()
    watch: list[Watcher] = [recorder]
    asyncio.run(run_backtest(read_transcripts(MADE_UP), {}, ledger=ledger, watch=watch))
    assert not ledger.closed
    assert not recorder.closed

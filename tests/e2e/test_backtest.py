"""Recorded conversations through the governed loop: what is counted, paired and kept from the model."""

from __future__ import annotations

import asyncio
import calendar
import json
import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from footprint_core import (
    AssistantMessage,
    MemoryLedger,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    deny,
)
from footprint_core.events import Event
from footprint_core.plain import rendered
from footprint_core.providers import Chunk, Completed, ModelRequest
from footprint_observe import SqliteLedger
from footprint_observe.backtest import (
    Answering,
    BacktestReport,
    RecordedModel,
    Rules,
    load_rules,
    read_transcripts,
    run_backtest,
)
from footprint_observe.backtest.airline import rules as airline_rules
from recorders.otel_spans import OtelSpans

MADE_UP = Path(__file__).with_name("conversations.jsonl")
AIRLINE = Path(__file__).parents[2].parent / "shared" / "trajectories" / "airline.jsonl"

ASKED = ("book_reservation", "cancel_reservation", "send_certificate", "update_")


@pytest.fixture(params=[MADE_UP, AIRLINE], ids=["made-up", "airline"])
def recordings(request: pytest.FixtureRequest) -> Path:
    """A file of conversations."""
    path: Path = request.param
    if not path.exists():
        pytest.skip("the recorded airline conversations are not at hand")
    return path


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[ModelRequest]:
    """Everything the model port is handed from now on."""
    handed: list[ModelRequest] = []
    original = RecordedModel.reply

    async def reply(self: RecordedModel, request: ModelRequest) -> AsyncIterator[Chunk | Completed]:
        handed.append(request)
        async for piece in original(self, request):
            yield piece

    monkeypatch.setattr(RecordedModel, "reply", reply)
    return handed


class Seen:
    """A watcher that keeps what it is told."""

    id = "seen"

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_event(self, event: Event, /) -> None:
        self.events.append(event)


def conversations(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def calls_of(path: Path) -> Iterator[dict[str, Any]]:
    for conversation in conversations(path):
        for message in conversation["messages"]:
            yield from message.get("tool_calls") or ()


def play(
    path: Path, rules: Rules = airline_rules, *, answer: Answering = "approve", watch: Any = ()
) -> BacktestReport:
    transcripts = read_transcripts(path)
    return asyncio.run(run_backtest(transcripts, rules, ledger=MemoryLedger(), answer=answer, watch=watch))


def expected(path: Path, answer: Answering) -> dict[tuple[str, str], int]:
    """How many rows each rule leaves at each moment, counted in the file and nowhere else."""
    messages = [message for conversation in conversations(path) for message in conversation["messages"]]
    users = sum(message["role"] == "user" for message in messages)
    replies = sum(m["role"] == "assistant" and not m.get("tool_calls") for m in messages)
    names = [call["function"]["name"] for call in calls_of(path)]
    asks = sum(name.startswith(ASKED) for name in names)
    # The shipped rules have one rule for the input and one for the output. Each is a link at the other of
    # the two message moments, too, where it only passes through and files its row (ACT-21): a message of a
    # user is two rows, and so is a final reply.
    return {
        ("mask-request", "input"): users,
        ("mask-reply", "input"): users,
        ("mask-request", "output"): replies,
        ("mask-reply", "output"): replies,
        ("certificate-ceiling", "before-tool"): len(names),
        # A row for every call, and one for every question that was answered.
        ("ask-before-changes", "before-tool"): len(names) + asks,
        ("strip-personal-data", "after-tool"): len(names) - (asks if answer == "decline" else 0),
    }


@pytest.mark.parametrize("answer", ["approve", "decline"])
def test_the_rows_are_those_an_independent_count_of_the_file_expects(
    recordings: Path, answer: Answering, tmp_path: Path
) -> None:
    async def played() -> BacktestReport:
        ledger = SqliteLedger(tmp_path / "out.db", durability="process")
        try:
            return await run_backtest(
                read_transcripts(recordings), airline_rules, ledger=ledger, answer=answer
            )
        finally:
            await ledger.close()

    report = asyncio.run(played())
    db = sqlite3.connect(tmp_path / "out.db")
    rows = db.execute("select middleware, moment, count(*) from decisions group by 1, 2").fetchall()
    people = db.execute(
        "select decided_by, outcome, count(*) from decisions where answer = 'person' group by 1, 2"
    ).fetchall()
    db.close()
    wanted = expected(recordings, answer)
    assert {(rule, moment): count for rule, moment, count in rows} == wanted
    reported: Counter[tuple[str, str]] = Counter()
    for (rule, moment, _), count in report.rows.items():
        reported[rule, moment] += count
    assert reported == wanted
    assert people == [("backtest", "allow" if answer == "approve" else "deny", report.asked)]


def test_the_airline_conversations_are_played_to_their_ends() -> None:
    if not AIRLINE.exists():
        pytest.skip("the recorded airline conversations are not at hand")
    report = play(AIRLINE)
    assert (report.conversations, report.runs, report.calls, report.executed) == (40, 357, 254, 254)
    assert (report.unanswered_messages, report.unanswered_results) == (33, 7)
    assert (report.asked, report.approved, report.divergences) == (54, 54, ())


def test_a_message_or_a_result_without_a_recorded_reply_is_counted_as_unanswered() -> None:
    report = play(MADE_UP)
    assert (report.conversations, report.runs, report.calls) == (3, 9, 23)
    assert (report.unanswered_messages, report.unanswered_results, report.unanswered) == (2, 1, 3)
    assert report.divergences == ()


def test_without_rules_the_model_is_handed_exactly_what_was_recorded(
    recordings: Path, requests: list[ModelRequest]
) -> None:
    play(recordings, {})
    asked = iter(requests)
    for conversation in conversations(recordings):
        recorded = [m for m in conversation["messages"] if m["role"] != "system"]
        replies = [at for at, message in enumerate(recorded) if message["role"] == "assistant"]
        ends = [*replies, *([] if recorded[-1]["role"] == "assistant" else [len(recorded)])]
        for end in ends:
            assert [_as_read(m) for m in next(asked).messages] == [_recorded(m) for m in recorded[:end]]
    assert next(asked, None) is None


def _as_read(message: Any) -> tuple[object, ...]:
    calls = [(call.id, call.name, call.args) for call in getattr(message, "calls", ())]
    return message.role, _value(message.text), getattr(message, "call_id", None), calls


def _recorded(message: dict[str, Any]) -> tuple[object, ...]:
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    return message["role"], _value(message["content"] or ""), message.get("tool_call_id"), calls


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_a_result_stays_with_its_call_when_ids_repeat_and_calls_around_it_are_refused_or_asked_about(
    recordings: Path, requests: list[ModelRequest]
) -> None:
    play(recordings, answer="decline")
    declined = 0
    recorded = iter([m for c in conversations(recordings) for m in c["messages"] if m["role"] == "tool"])
    for message in _tool_messages(requests):
        result = next(recorded)
        if result["name"].startswith(ASKED):
            declined += 1
            assert message.text.startswith("A person declined this call")
        else:
            assert _value(message.text) == _without_personal_data(_value(result["content"]))
    assert declined > 0
    assert next(recorded, None) is None


def _tool_messages(requests: list[ModelRequest]) -> list[Any]:
    """Every result the model was handed, in order; a conversation that grows hands them over again."""
    last: dict[int, list[Any]] = {}
    conversation = 0
    for request in requests:
        conversation += len(request.messages) == 1
        last[conversation] = [message for message in request.messages if message.role == "tool"]
    return [message for messages in last.values() for message in messages]


def _without_personal_data(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_personal_data(item)
            for key, item in value.items()
            if key not in {"address", "dob", "email"}
        }
    return [_without_personal_data(item) for item in value] if isinstance(value, list) else value


def personal_data(path: Path) -> re.Pattern[str]:
    """Every e-mail address, date of birth and address line of a file, wherever it stands in it."""
    found: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            found.update(value[key] for key in ("email", "dob") if key in value)
            address = value.get("address", {})
            found.update(address[key] for key in ("address1", "address2", "zip") if key in address)
            value = list(value.values())
        for item in value if isinstance(value, list) else ():
            collect(item)

    for conversation in conversations(path):
        for message in conversation["messages"]:
            collect(_value(message["content"] or ""))
    for call in calls_of(path):
        collect(json.loads(call["function"]["arguments"]))
    found.update([_spoken(text) for text in found if re.fullmatch(r"\d{4}-\d\d-\d\d", text)])
    assert len(found) > 5
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, found - {''}))})(?!\w)|[\w.]+@[\w.]+")


def _spoken(date: str) -> str:
    year, month, day = map(int, date.split("-"))
    return f"{calendar.month_name[month]} {day}, {year}"


def test_no_event_and_no_span_holds_personal_data(recordings: Path) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    seen = Seen()
    play(recordings, watch=[seen, OtelSpans(tracer_provider=provider)])
    secrets = personal_data(recordings)
    events = msgspec.json.encode(seen.events).decode()
    spans = "\n".join(span.to_json() for span in exporter.get_finished_spans())
    assert secrets.findall(events) == secrets.findall(spans) == []
    assert len(exporter.get_finished_spans()) > len(conversations(recordings))


def test_the_model_is_handed_no_personal_data_but_what_it_wrote_into_calls_itself(
    recordings: Path, requests: list[ModelRequest]
) -> None:
    play(recordings)
    secrets = personal_data(recordings)
    texts = "\n".join({message.text for request in requests for message in request.messages})
    assert secrets.findall(texts) == []
    assert "[date of birth]" in texts
    # The recorded model had read what is stripped now, and booked passengers with it. No rule can take a
    # call out of what the model said.
    calls = [c for r in requests for m in r.messages if isinstance(m, AssistantMessage) for c in m.calls]
    assert {call.name for call in calls if secrets.search(call.args_json)} <= {"book_reservation"}


def test_a_marker_planted_in_one_recorded_result_makes_a_deny_rule_fire(
    recordings: Path, requests: list[ModelRequest], tmp_path: Path
) -> None:
    @after_tool("no-marker")
    def no_marker(call: ToolResultContext) -> ToolResultOutcome:
        return deny("It holds the marker.") if "MARKER-7" in rendered(call.result) else allow()

    changed = conversations(recordings)
    conversation = next(c for c in changed if c["messages"][-1]["role"] != "tool")
    result = next(m for m in reversed(conversation["messages"]) if m["role"] == "tool")
    result["content"] += " MARKER-7"
    planted = tmp_path / "planted.jsonl"
    planted.write_text("\n".join(map(json.dumps, changed)), encoding="utf-8")

    before = play(recordings, {"after_tool": [no_marker]})
    report = play(planted, {"after_tool": [no_marker]})

    assert ("no-marker", "after-tool", "deny") not in before.rows
    assert report.rows["no-marker", "after-tool", "deny"] == 1
    (divergence,) = report.divergences
    assert (divergence.what, divergence.rule) == ("result-denied", "no-marker")
    assert (divergence.conversation_id, divergence.call_id) == (conversation["id"], result["tool_call_id"])
    texts = [message.text for request in requests for message in request.messages]
    assert "It holds the marker." in texts
    assert not any("MARKER-7" in text for text in texts)


def test_the_shipped_rules_can_be_named() -> None:
    assert load_rules("footprint_observe.backtest.airline:rules") is airline_rules

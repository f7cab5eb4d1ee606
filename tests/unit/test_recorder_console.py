"""The console: one short line for each thing worth seeing, and facts only."""

from __future__ import annotations

import io
import types
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
import pytest

from footprint_core import events as ev
from footprint_core.watch import Recorder
from recorders.console import Console, line

RUN = "0" * 26 + "abcdef"
NOON = 1_700_049_600_250_000
E = TypeVar("E", bound=ev.Event)


def event(cls: type[E], /, **known: Any) -> E:
    """An event; what is not said is blank, or None where it may be."""
    fields = {f.name: blank(f.type) for f in msgspec.structs.fields(cls) if f.required}
    return msgspec.convert({**fields, "run_id": RUN, "segment": 1, "time": NOON, **known}, cls)


def blank(annotation: Any) -> Any:
    origin = get_origin(annotation) or annotation
    if origin in {Union, types.UnionType}:
        inner = get_args(annotation)
        return None if type(None) in inner else blank(inner[0])
    return get_args(annotation)[0] if origin is Literal else origin()


def printed(*events: ev.Event) -> list[str]:
    file = io.StringIO()
    watcher = Console(file=file)
    for one in events:
        watcher.on_event(one)
    assert watcher.flush(10.0)
    watcher.close(10.0)
    assert watcher.dropped == 0
    return file.getvalue().splitlines()


def test_a_run_reads_as_a_story() -> None:
    call: dict[str, Any] = {"tool_name": "refund", "tool_call_id": "c1"}
    rule: dict[str, Any] = {"moment": "before-tool", "middleware": "ceiling", **call}
    usage = ev.TokenUsage(input=30, output=4)
    reply: dict[str, Any] = {"usage": usage, "stop_reason": "tool_use", "duration": 1.5}
    lines = printed(
        event(ev.AgentConfigured, agent_name="refunds", model="sonnet"),
        event(ev.DecisionFiled, moment="input", middleware="scrub", changed=True, redactions={"mask": 1}),
        event(ev.ModelCallEnded, iteration=1, tool_call_count=1, **reply),
        event(ev.DecisionFiled, **rule, outcome="deny", answer="raised", error_class="KeyError"),
        event(ev.ToolCallEnded, **call, status="denied", decided_by_rule="ceiling"),
        event(ev.PauseRequested, **call, kind="ask", middleware="four-eyes"),
        event(ev.TurnEnded, outcome="paused", iteration_count=1, total_input_tokens=30, duration=2.0),
    )
    assert [one.split(" ", 1) for one in lines] == [
        ["12:00:00.250", f"abcdef {rest}"]
        for rest in (
            "run          started refunds model sonnet",
            "input        allow scrub changed 1 field redacted",
            "model        tool_use iteration 1, 1 call, 30 tokens in, 4 out, 1.500 s",
            "before-tool  deny ceiling on refund c1 (raised) KeyError",
            "tool         denied refund c1 by ceiling",
            "pause        ask refund c1 by four-eyes",
            "run          paused 1 model call, 30 tokens in, 0 out, 2.000 s",
        )
    ]


def test_what_happens_seldom_has_a_line_too() -> None:
    call: dict[str, Any] = {"tool_name": "t", "tool_call_id": "c1"}
    lines = printed(
        event(ev.AgentConfigured, agent_name="a", model="m", resumed=True),
        event(ev.PauseResumed, **call, paused=3.25),
        event(ev.ArgsInvalid, **call, issues=2),
        *[event(ev.ContextEvicted, slot="messages", reason="budget", sequence=7)] * 3,
        event(ev.BudgetSpent, limit=5, pending_tool_calls=1),
        event(ev.FatalError, error_class="ProviderError", stage="model"),
        event(ev.ObserverError, watcher="w", error_class="KeyError", event="stream.token"),
        event(
            ev.ToolCallEnded,
            tool_name="t",
            tool_call_id="c1",
            status="failed",
            error_class="OSError",
            duration=0.5,
        ),
        event(ev.ModelCallEnded, iteration=2, error_class="APIError"),
    )
    assert [" ".join(one.split()[2:]) for one in lines] == [
        "run resumed a model m",
        "resume approved t c1 after 3.250 s",
        "arguments invalid t c1 2 issues",
        "window evicted messages (budget)",
        "budget wrapped-up max-iterations 5 1 call pending",
        "error ProviderError at model",
        "watcher KeyError w on stream.token",
        "tool failed t c1 OSError 0.500 s",
        "model failed APIError iteration 2, 0.000 s",
    ]


def test_what_is_not_worth_seeing_prints_nothing() -> None:
    silent = (ev.TokenStreamed, ev.SlotComposed, ev.ToolsOffered, ev.IterationStarted, ev.ToolCallStarted)
    assert printed(*(event(kind) for kind in silent)) == []


def test_a_name_can_neither_steer_the_terminal_nor_be_read_as_markup() -> None:
    (one,) = printed(event(ev.DecisionFiled, moment="input", middleware="[red]a\x1b[2J\nb\ud800[/red]"))
    assert one.endswith("allow [red]a?[2J?b?[/red]")


def test_colours_appear_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for file, coloured in ((Terminal(), True), (io.StringIO(), False)):
        watcher = Console(file=file)
        watcher.on_event(event(ev.DecisionFiled, moment="input", outcome="deny"))
        watcher.close(10.0)
        assert ("\x1b[" in file.getvalue()) is coloured


def test_it_prints_on_standard_error_and_counts_what_it_cannot_print(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watcher = Console(id="mine")
    assert isinstance(watcher, Recorder)
    assert watcher.id == "mine"
    watcher.on_event(event(ev.AgentConfigured))
    watcher.close(10.0)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)

    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError

    watcher = Console(file=Full())
    watcher.on_event(event(ev.AgentConfigured))
    watcher.close(10.0)
    assert (watcher.dropped, watcher.notices) == (1, ("1 lines could not be printed.",))


def test_every_event_can_be_told() -> None:
    for kind in ev.EVENTS.values():
        assert line(event(kind)).plain.startswith("12:00:00.250 abcdef ")

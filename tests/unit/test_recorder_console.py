"""The console: one short line for each thing worth seeing, and facts only."""

from __future__ import annotations

import io
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
import pytest

from footprint_core import events as ev
from footprint_core.watch import Recorder
from recorders.console import Console, line

_ROOT = Path(__file__).parents[2]
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
        event(ev.AgentConfigured, agent_name="refunds", model="sonnet", tools=("refund",)),
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
        event(ev.AgentConfigured, agent_name="a", model="m", tools=("t",), resumed=True),
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


def test_people_and_checks_have_a_line() -> None:
    call: dict[str, Any] = {"tool_call_id": "c1"}
    check: dict[str, Any] = {**call, "target": "refund", "checker": "roles"}
    lines = printed(
        event(ev.AgentConfigured, agent_name="a", model="m", tools=("refund", "wire")),
        event(ev.PermissionAnswered, **check, result="allow"),
        event(ev.PermissionAnswered, **check, result="halt", policy_rule_id="P-7"),
        event(ev.PermissionHalted, **check),
        event(ev.CredentialRequested, **call, service="bank"),
        event(ev.CredentialAcquired, **call, service="bank", kind="bearer"),
        event(ev.CredentialFailed, **call, service="bank", error_class="KeyError"),
        event(ev.CheckInRequested, **call, tool_name="wire"),
        event(ev.PauseRequested, **call, tool_name="wire", kind="check-in"),
        event(ev.PauseResumed, **call, tool_name="wire", kind="check-in", answer="declined", paused=1.0),
        event(ev.CheckInDecided, **call, tool_name="wire", approved=False),
        event(ev.OutputRetried, attempt=1, retries_remaining=1, stage="json-parse"),
        event(ev.OutputUnmet, attempts=2, stage="schema-validate", broken_by="decorate"),
        event(ev.BudgetPressure, slot="messages", cap=100, projected=120, plan_action="summarize"),
    )
    assert [" ".join(one.split()[2:]) for one in lines] == [
        "run started a model m",
        "permission allow refund c1 by roles",
        "permission halt refund c1 by roles (P-7)",
        "credential acquired bank c1 (bearer)",
        "credential failed bank c1 KeyError",
        "pause check-in wire c1",
        "resume declined wire c1 after 1.000 s",
        "schema retry attempt 1, 1 left, json-parse",
        "schema unmet 2 attempts schema-validate by decorate",
        "window pressure messages 120 of 100 tokens (summarize)",
    ]


SILENT: set[type[ev.Event]] = {
    ev.CheckInDecided,
    ev.CheckInRequested,
    ev.ContextInjected,
    ev.CredentialRequested,
    ev.IterationFinished,
    ev.IterationStarted,
    ev.ModelCallStarted,
    ev.PermissionHalted,
    ev.RouteDecided,
    ev.SlotComposed,
    ev.TokenStreamed,
    ev.ToolCallStarted,
    ev.ToolsOffered,
    ev.TurnStarted,
}


def test_what_is_not_worth_seeing_prints_nothing_and_everything_else_has_a_line() -> None:
    assert printed(*(event(kind) for kind in SILENT)) == []
    assert {kind for kind in ev.EVENTS.values() if line(event(kind)) is None} == SILENT
    told = [event(kind) for kind in ev.EVENTS.values() if kind not in SILENT]
    assert all(one.startswith("12:00:00.250 abcdef ") for one in printed(*told))


def test_a_pipe_that_nobody_reads_costs_lines_and_not_what_the_program_prints() -> None:
    program = """
import os
from footprint_observe.testing import sample_events
from recorders.console import Console
read, write = os.pipe()
os.dup2(write, 2)
os.close(read)
console = Console()
for event in sample_events():
    console.on_event(event)
assert not console.flush(10.0)
console.close(10.0)
print(console.dropped > 0, console.queued, console.errors > 0)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.stdout == "True 0 True\n"


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
    assert (watcher.dropped, watcher.queued, watcher.errors) == (1, 0, 1)
    assert watcher.notices == ("1 lines could not be printed.",)

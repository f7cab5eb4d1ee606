"""A match that forgets somebody says whom."""

from __future__ import annotations

from typing import assert_never

from footprint_core import (
    Allow,
    Answer,
    AskPause,
    CheckInPause,
    Deny,
    LoopMoment,
    MessageOutcome,
    Outcome,
    Pause,
    ToolOutcome,
)
from footprint_core import events as ev
from footprint_core import facts as fa


def outcome_of_a_turn(outcome: Outcome) -> str:
    match outcome:
        case Answer(text=text):
            return text
        case AskPause() | CheckInPause():
            return "decide"
        case _:
            # refused: mypy arg-type, pyright reportArgumentType, naming HumanPause
            assert_never(outcome)


def who_asks(pause: Pause) -> str:
    match pause:
        case AskPause(middleware=rule):
            return rule
        case _:
            # refused: mypy arg-type, pyright reportArgumentType, naming HumanPause
            assert_never(pause)


def before_a_tool(outcome: ToolOutcome) -> str:
    match outcome:
        case Allow():
            return "allow"
        case Deny():
            return "deny"
        case _:
            # refused: mypy arg-type, pyright reportArgumentType, naming Ask
            assert_never(outcome)


def about_a_message(outcome: MessageOutcome) -> str:
    match outcome:
        case Allow():
            return "allow"
        case _:
            # refused: mypy arg-type, pyright reportArgumentType, naming Deny
            assert_never(outcome)


def moment_of(moment: LoopMoment) -> str:
    match moment:
        case "input" | "before-tool" | "after-tool" | "output":
            return "rules"
        case _:
            # refused: mypy arg-type, pyright reportArgumentType, naming window
            assert_never(moment)


def fact_of(fact: fa.Fact) -> str:
    match fact:
        case fa.Decided():
            return "decision"
        case _:
            # refused: mypy arg-type, pyright reportArgumentType, naming RunConfigured
            assert_never(fact)


def event_of(event: ev.Event) -> str:
    match event:
        case ev.DecisionFiled():
            return "decision"
        case _:
            # refused: mypy arg-type, pyright reportArgumentType, naming TurnStarted
            assert_never(event)


def signal_of(signal: ev.Signal) -> str:
    match signal:
        case ev.TokenStreamed() | ev.ObserverError() | ev.TurnEnded():
            return "seen"
        case _:
            # refused: mypy arg-type, pyright reportArgumentType, naming FatalError
            assert_never(signal)

"""Objects that cannot watch."""

from __future__ import annotations

from footprint_core import Agent, AgentBuilder, ToolOutcome, Watcher, allow
from footprint_core.events import DecisionFiled, Event, ToolCallEnded, TurnEnded


class NoId:
    def on_event(self, event: Event) -> None: ...


class NumberedId:
    id = 3

    def on_event(self, event: Event) -> None: ...


class NoHook:
    id = "no-hook"


class Later:
    id = "later"

    async def on_event(self, event: Event) -> None: ...


class Deciding:
    id = "deciding"

    def on_event(self, event: Event) -> ToolOutcome:
        return allow()


class Particular:
    id = "particular"

    def on_event(self, event: TurnEnded) -> None: ...


class Complete:
    id = "complete"

    def on_event(self, event: Event) -> None: ...


def watch(builder: AgentBuilder) -> None:
    # refused: mypy arg-type, pyright reportArgumentType, naming NoId
    builder.watch(NoId())
    # refused: mypy arg-type, pyright reportArgumentType, naming NumberedId
    builder.watch(NumberedId())
    # refused: mypy arg-type, pyright reportArgumentType, naming NoHook
    builder.watch(NoHook())
    # refused: mypy arg-type, pyright reportArgumentType, naming Later
    builder.watch(Later())
    # refused: mypy arg-type, pyright reportArgumentType, naming Deciding
    builder.watch(Deciding())
    # refused: mypy arg-type, pyright reportArgumentType, naming Particular
    builder.watch(Particular())
    # refused: mypy arg-type, pyright reportArgumentType
    builder.watch(Complete)
    # refused: mypy arg-type, pyright reportArgumentType
    builder.watch([Complete()])
    # refused: mypy arg-type, pyright reportArgumentType
    builder.watch(Complete().on_event)


# refused: mypy list-item, pyright reportAssignmentType
watchers: list[Watcher] = [Complete(), NoId()]


def ended(event: TurnEnded) -> None: ...


def too_few() -> None: ...


def subscribe(agent: Agent) -> None:
    # refused: mypy arg-type, pyright reportArgumentType, naming NoId
    agent.attach(NoId())
    # refused: mypy arg-type, pyright reportArgumentType
    agent.attach(Complete)
    # refused: mypy arg-type, pyright reportCallIssue, naming TurnEnded
    agent.on(DecisionFiled, ended)
    # refused: mypy arg-type, pyright reportCallIssue
    agent.on("agent.turn_end", ended)
    # refused: mypy arg-type, pyright reportCallIssue
    agent.on("*", ended)
    # refused: mypy arg-type, pyright reportCallIssue
    agent.on(TurnEnded, too_few)
    # refused: mypy call-overload, pyright reportCallIssue
    agent.on(TurnEnded, Complete())
    # refused: mypy call-overload, pyright reportCallIssue
    agent.on(TurnEnded)
    # refused: mypy type-var, pyright reportCallIssue
    agent.on(str, print)
    # refused: mypy call-overload, pyright reportCallIssue
    agent.on([TurnEnded], ended)
    # refused: mypy attr-defined, pyright reportAttributeAccessIssue
    agent.on(ToolCallEnded, lambda event: event.question)

"""Conversations that fill a window, strategies that say what they are asked, and what was filed of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from footprint_core import (
    Agent,
    AssistantMessage,
    MemoryLedger,
    Message,
    Messages,
    ToolCall,
    ToolMessage,
    UserMessage,
    WindowPlan,
    WindowView,
    tool,
)
from footprint_core.facts import Usage, WindowVisited
from footprint_core.providers import Completed, ModelRequest, Scripted, call, reply
from story import Seen, answered, describe, run

PAGE = "lorem ipsum dolor " * 40


@tool(name="read", inline=True)
def read(page: int) -> str:
    """A page, which is long."""
    return f"page {page} {PAGE}"


@tool(name="tap", inline=True)
def tap(page: int) -> str:
    """Says little."""
    return "ok"


@tool(name="peek", inline=True)
def peek(page: int) -> str:
    """Another page."""
    return f"peek {page} {PAGE}"


TOOLS = (read, tap, peek)


def asks(number: int, *tools: str, tokens: int = 10) -> Completed:
    """A reply that calls tools, each with the number."""
    calls = [call(f"{number}-{i}", name, {"page": number}) for i, name in enumerate(tools)]
    return reply(calls=calls, usage=Usage(input=tokens, output=5))


def reading(count: int, *, tokens: int = 10, tool: str = "read") -> list[Completed]:
    """So many calls of one tool, then an answer."""
    calls = [asks(number, tool, tokens=tokens) for number in range(1, count + 1)]
    return [*calls, reply(text="done")]


class Told:
    """An agent under a window, and what came of its turns.

    Args:
        said: What the model says.
        window: The strategy.
        pins: `keep_last_tool_results`.
    """

    def __init__(
        self, said: Sequence[Completed], window: Any = None, *, pins: Any = 0, **options: Any
    ) -> None:
        self.seen, self.ledger = Seen(), MemoryLedger()
        builder, self.model = describe(
            said, *TOOLS, watch=[self.seen], ledger=self.ledger, keep_last_tool_results=pins, **options
        )
        if window is not None:
            builder.window(window)
        self.agent: Agent = builder.build()
        self.runs: list[str] = []

    def go(self, *messages: str) -> Told:
        """One turn per message; the first is a run, the others follow up."""

        async def turns() -> None:
            say = self.agent.run
            for message in messages or ("go",):
                self.runs.append(answered(await say(message)).run_id)
                say = self.agent.follow_up

        run(turns())
        return self

    @property
    def visits(self) -> list[WindowVisited]:
        """The window entries of all runs, in order."""
        entries = [entry for run_id in self.runs for entry in self.ledger.entries(run_id)]
        return [entry.fact for entry in entries if isinstance(entry.fact, WindowVisited)]


class Plans:
    """A strategy that plans what a function says, and keeps what it was shown."""

    def __init__(self, plan: Any = None, name: str = "own") -> None:
        self.name = name
        self.shown: list[WindowView] = []
        self._plan = plan

    def plan(self, view: WindowView, /) -> Any:
        self.shown.append(view)
        return None if self._plan is None else self._plan(view)


def drops(first: int, stop: int, *, turns: int = 0) -> Plans:
    """A strategy that drops turns, once there are so many."""
    return Plans(
        lambda view: WindowPlan(remove=tuple(range(first, stop))) if view.turn_count >= turns else None
    )


def kinds(model: Scripted, request: int = -1) -> list[str]:
    """A request, told by who speaks."""
    return [kind(message) for message in model.requests[request].messages]


def kind(message: Message) -> str:
    return message.kind if isinstance(message, UserMessage) else message.role


def texts(request: ModelRequest) -> str:
    """All a model read in a request."""
    return "\n".join(message.text for message in request.messages)


def view_of(*messages: Message, pins: int = 0, iteration: int = 2, **fields: Any) -> WindowView:
    """What a strategy would be shown of a conversation."""
    shown: dict[str, Any] = {
        "messages": Messages(messages),
        "turn_count": sum(not isinstance(message, ToolMessage) for message in messages),
        "iteration": iteration,
        "provider": "p",
        "last_input_tokens": None,
        "last_output_tokens": None,
        "usage_reported": False,
        "keep_last_tool_results": pins,
        "stand_down": False,
    }
    return WindowView(**{**shown, **fields})


def called(*names: str, answered: int | None = None) -> tuple[Message, ...]:
    """An assistant turn that calls tools, and the results of the first so many."""
    calls = tuple(ToolCall(id=f"id-{i}", name=name, args_json="{}") for i, name in enumerate(names))
    results = calls[: len(calls) if answered is None else answered]
    return (
        AssistantMessage(text="", calls=calls),
        *(ToolMessage(call_id=one.id, tool_name=one.name, text=PAGE) for one in results),
    )

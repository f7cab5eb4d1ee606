"""A long conversation whose every message can be told from the others, under a window."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from footprint_core import (
    Agent,
    Ledger,
    MemoryLedger,
    UserMessage,
    WindowStrategy,
    sliding_window,
    summarize_oldest,
    token_budget,
)
from footprint_core.facts import ModelAsked, Usage, WindowVisited
from footprint_core.messages import Message
from footprint_core.providers import Completed, ModelRequest, Scripted, Whole, call, reply
from footprint_core.state import RunState

FILLER = "lorem ipsum dolor sit amet " * 12
LOW, HIGH = Usage(input=10, output=5), Usage(input=1000, output=5)


class Summarizer:
    """A model that summarizes.

    Attributes:
        asked: How often it was asked.
    """

    name = "summarizer"

    def __init__(self) -> None:
        self.asked = 0

    def reply(self, _request: ModelRequest, /) -> Whole:
        self.asked += 1
        return Whole(Completed(text=f"summary {self.asked}"))


def strategies() -> dict[str, WindowStrategy]:
    """A strategy of each kind, made anew."""
    return {
        "sliding": sliding_window(keep_recent_turns=2),
        "tokens": token_budget(threshold_tokens=100, keep_recent_turns=2),
        "summaries": summarize_oldest(
            threshold_tokens=100, keep_recent_turns=2, summarizer=Summarizer(), model="small"
        ),
    }


KINDS = tuple(strategies())


def look(n: int) -> dict[str, Any]:
    """Gives JSON of some size."""
    return {"n": n, "rows": [{"text": FILLER, "at": [n, None, 1.5, True]}] * 2}


def said(turns: int, *, over: Sequence[int] = ()) -> list[Completed]:
    """What a model says in some turns: two steps with calls, then an answer.

    Args:
        turns: How many turns.
        over: The turns whose first call reads more tokens than a threshold allows.
    """
    replies: list[Completed] = []
    for turn in range(turns):
        usage = HIGH if turn in over else LOW
        a, b, c = (turn * 10 + i for i in range(3))
        replies += [
            reply(text=f"step {a} {FILLER}", calls=[call(f"c{a}", "look", {"n": a})], usage=usage),
            reply(
                text=f"step {b} {FILLER}",
                calls=[call(f"c{b}", "look", {"n": b}), call(f"c{c}", "look", {"n": c})],
            ),
            reply(text=f"answer {turn} {FILLER}"),
        ]
    return replies


def asks(turn: int) -> str:
    """The message of a turn."""
    return f"request {turn} {FILLER}"


def agent_of(
    replies: Sequence[Completed],
    window: WindowStrategy | None,
    *,
    ledger: Ledger | None = None,
    rules: Sequence[Any] = (),
    **options: Any,
) -> tuple[Agent, Scripted]:
    """An agent over what its model says, under a window."""
    model = Scripted(replies)
    builder = Agent.create(provider=model, model="m", name="long", **options).tool(look)
    builder.tool_middleware(*rules).ledger(MemoryLedger() if ledger is None else ledger)
    if window is not None:
        builder.window(window)
    return builder.build(), model


async def converse(agent: Agent, turns: int, runs: list[str] | None = None) -> list[str]:
    """Play the turns; the runs they were, which are also put into `runs` as they end."""
    runs = [] if runs is None else runs
    for turn in range(turns):
        outcome: Any = await (agent.follow_up(asks(turn)) if turn else agent.run(asks(turn)))
        runs.append(outcome.run_id)
    return runs


def own(messages: Iterable[Message]) -> list[Message]:
    """The messages that somebody said: no notice and no summary."""
    return [m for m in messages if not (isinstance(m, UserMessage) and m.kind != "request")]


def removals(ledger: MemoryLedger, runs: Sequence[str], model: Scripted) -> list[list[Message]]:
    """The messages each removal let go, found by folding what the ledger has of the runs.

    On the way the fold is compared with every request that was sent.
    """
    found: list[list[Message]] = []
    requests = iter(model.requests)
    ended: RunState | None = None
    for run_id in runs:
        state = RunState() if ended is None else RunState.following(ended)
        for entry in ledger.entries(run_id):
            if isinstance(entry.fact, WindowVisited) and entry.fact.removed:
                found.append([state.messages[index] for index in entry.fact.removed])
            state.apply(entry.fact)
            if isinstance(entry.fact, ModelAsked):
                assert next(requests).messages == state.messages
        ended = state
    return found


def whole(text: str) -> bool:
    """Whether a tool's text is all of its JSON."""
    read = json.loads(text)
    return bool(read == look(read["n"]))

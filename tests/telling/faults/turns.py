"""Turns that are watched: what they answer, what the ledger has of them, and how the watchers do."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from footprint_core import Agent, Watcher, allow, before_tool, deny
from footprint_core.providers import call, reply
from footprint_core.watch import WatcherHealth
from story import answered, describe, facts_of, run

CLOSE_SECONDS = 1.0
SLACK_SECONDS = 8.0
"""A machine may be busy; what is waited for where nobody keeps a time is half a minute and more."""

SPANS = 8
"""How many spans a turn makes: the agent, two model calls, two tool calls, and three decisions."""

STEP = (
    reply(calls=[call("c1", "look", {"q": "x"}), call("c2", "look", {"q": "no"})]),
    reply(text="done"),
)


@before_tool("ceiling")
def ceiling(asked: Any) -> Any:
    return deny("too much") if asked.args["q"] == "no" else allow(why="small")


@before_tool("second")
def second(_asked: Any) -> Any:
    return allow()


def look(q: str) -> str:
    """Look something up."""
    return q * 2


def agent_of(*watchers: Watcher, turns: int = 1) -> Agent:
    """An agent with replies for so many turns."""
    return describe(STEP * turns, look, act={"before_tool": [ceiling, second]}, watch=watchers)[0].build()


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of some turns.

    Attributes:
        answers: What the caller got.
        rows: The decisions, without what differs between equal runs.
        health: How each watcher did, behind the end of the agent.
        closing: How long the end of the agent took, in seconds.
    """

    answers: list[str]
    rows: list[dict[str, Any]]
    health: dict[str, WatcherHealth]
    closing: float


def play(*watchers: Watcher, turns: int = 3) -> Played:
    """Play so many turns and close the agent within `CLOSE_SECONDS`."""
    return run(_play(agent_of(*watchers, turns=turns), turns))


async def _play(agent: Agent, turns: int) -> Played:
    outcomes = [answered(await agent.session().run("go")) for _ in range(turns)]
    before = time.monotonic()
    await agent.close(timeout=CLOSE_SECONDS)
    return Played(
        answers=[outcome.text for outcome in outcomes],
        rows=[facts_of(row) for outcome in outcomes for row in outcome.decisions],
        health={one.watcher: one for one in agent.health().watchers},
        closing=time.monotonic() - before,
    )


def undisturbed(played: Played, *, turns: int = 3) -> bool:
    """Whether turns came to what they come to when nobody watches, and their end kept its time."""
    alone = play(turns=turns)
    assert (played.answers, played.rows) == (alone.answers, alone.rows)
    assert played.closing < CLOSE_SECONDS + SLACK_SECONDS
    return True


def in_time(work: Any, seconds: float) -> Any:
    """What a plain call comes to, which must not take longer."""
    before = time.monotonic()
    result = work()
    assert time.monotonic() - before < seconds
    return result

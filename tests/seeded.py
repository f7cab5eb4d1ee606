"""A ledger file of many runs, made through the public face: what dashboards and metrics are proven on.

```python
seed(path)  # 500 runs over seven days, in a few seconds
seed(path, runs=60, watchers=[recorder])  # as many of the same stories, watched
```

What happens is decided by the number of a run alone: the stories of `STORIES` follow one another, and a file
of `len(STORIES)` runs has every one. They come to every outcome of a run and to runs without an end, to every
status of a call, to every way a decision comes about, and to every strategy of redaction; questions are
approved, declined, answered with a value, answered too late, given up, or left open. Times come from a clock
that is told how long a model, a tool or a person takes; only the time a rule takes is measured.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from footprint_core import (
    Agent,
    FootprintError,
    Ledger,
    LedgerWriteError,
    Watcher,
    check_in_approved,
    check_in_declined,
)
from footprint_core.events import Event
from footprint_core.facts import Decided, ToolIntended, Usage
from footprint_core.ledger import Batch, Entry, Receipt
from footprint_core.providers import Completed, call, reply
from footprint_core.watch import Bus
from footprint_observe import SqliteLedger
from seeded_agents import KEYS, POLICY, Clock, Model, builders

_DAY = 86_400
_PEOPLE = ("dana@ops", "lee@ops", "sam@risk")


class Story(msgspec.Struct, frozen=True):
    """What one run comes to.

    Attributes:
        agent: Whose run it is.
        turns: The calls of each reply; the answer comes behind them.
        answers: How its questions are answered; what is left open has no answer.
        says: The message.
        text: The answer; None for a model that is down by then.
        hurried: Whether no rule is waited for; elsewhere a slow machine must make no rule late.
        dies: Whether its process dies when the first tool is about to run.
        then: What becomes of a run that has no end.
    """

    agent: Literal["refunds", "support", "travel"]
    turns: tuple[tuple[tuple[str, dict[str, Any]], ...], ...] = ()
    answers: tuple[Literal["approved", "declined", "value", "late"], ...] = ()
    says: str = "Please help me with my order."
    text: str | None = "Done."
    hurried: bool = False
    dies: bool = False
    then: Literal["recovered", "given up"] | None = None


def _looks(order: int = 41) -> tuple[tuple[str, dict[str, Any]], ...]:
    return (("look_up_order", {"order": order}),)


def _refunds(amount: int) -> tuple[tuple[str, dict[str, Any]], ...]:
    return (("issue_refund", {"order": 41, "amount": amount}),)


def _calls(name: str, **args: Any) -> tuple[tuple[str, dict[str, Any]], ...]:
    return ((name, args),)


_SEARCH = _calls("search_articles", words="rebook")
_FLIGHTS = _calls("find_flights", to="LIS")
_SEAT = _calls("pick_seat", order=7)

STORIES: tuple[Story, ...] = (
    Story("refunds", (_looks(), _refunds(40))),
    Story("support", (_SEARCH,)),
    Story("travel", (_FLIGHTS, _SEAT, _calls("book_flight", order=7)), ("value",)),
    Story("refunds", (_looks(), _refunds(649), _refunds(450)), ("approved",)),
    Story("support", (_calls("search_articles", words="rebook", limit=500),)),
    Story("refunds", (_looks(), _refunds(250)), ("declined",)),
    Story("travel", (_FLIGHTS,), text="I guarantee the lowest fare."),
    Story("refunds", (_looks(13), _refunds(40))),
    Story("support", (_calls("search_articles", words="outage"), _SEARCH)),
    Story("refunds", says="Refund me, you idiot."),
    Story("refunds", (_looks(), _refunds(300))),
    Story("support", (_calls("search_articles", words="salaries"),)),
    Story("travel", (_FLIGHTS, _calls("book_flight", order=99))),
    Story("refunds", tuple(_looks(order) for order in range(1, 8)), text="All of them: Project Bluebird."),
    Story("support", (_calls("send_mail", order=41), _calls("send_text", order=41))),
    Story("refunds", (_looks(), _refunds(40)), dies=True),
    Story("support", (_calls("search_articles", limit="many"), _calls("search_everything"), _SEARCH)),
    Story("refunds", (_looks(), _calls("wire_money", order=41, amount=9))),
    Story("travel", (_FLIGHTS, _FLIGHTS, _FLIGHTS, _FLIGHTS)),
    Story("refunds", (_looks(17), _refunds(700)), hurried=True),
    Story("support", (_calls("delete_account", order=41),)),
    Story("refunds", (_looks(), _calls("charge_back", order=41)), ("approved",)),
    Story("support", (_SEARCH,), text=None),
    Story("refunds", (_looks(), _refunds(900), _refunds(800))),
    Story("travel", (_FLIGHTS, _SEAT)),
    Story("refunds", (_looks(), _refunds(40)), dies=True, then="recovered"),
    Story("support", (_SEARCH,), says="My card is 4000-0000-0000-0002."),
    Story("refunds", (_looks(19), _refunds(40))),
    Story("refunds", (_looks(), _calls("charge_back", order=41)), ("declined",)),
    Story("travel", (_FLIGHTS, _SEAT), then="given up"),
    Story("refunds", (_looks(), _refunds(450)), ("late",)),
    Story("refunds", (_looks(), _refunds(40)), dies=True, then="given up"),
    Story("refunds", (_looks(), _calls("charge_back", order=41))),
    Story("refunds", (_looks(), _refunds(40)), says="Use card 4000-0000-0000-0002 for it."),
)
"""What runs come to, one after another."""


def seed(
    path: Path,
    runs: int = 500,
    watchers: Sequence[Watcher] = (),
    *,
    days: float = 7,
    until: float | None = None,
) -> None:
    """Make a ledger file of `runs` runs. Called outside of an event loop.

    Args:
        path: The file; it must not be there.
        runs: How many.
        watchers: Who is told of them; they stay the caller's, and are neither flushed nor closed. Those of a
            process that died hear nothing more of its run.
        days: Over how many days the runs are spread; some hundred runs a day leave room for what they take.
        until: When they end, seconds since the Unix epoch; now when it is not given.
    """
    asyncio.run(_Seed(path, runs, watchers, days, time.time() if until is None else until).play())


class _Seed:
    """One file as it is made."""

    def __init__(self, path: Path, runs: int, watchers: Sequence[Watcher], days: float, until: float) -> None:
        self._runs = runs
        self._watchers = watchers
        self._step_us = int(days * _DAY * 1_000_000 / runs)
        self._clock = Clock(int(until * 1_000_000) - self._step_us * runs)
        self._ledger = SqliteLedger(path, redact=POLICY, durability="process", keys=KEYS)
        patient, hurried = builders(self._clock), builders(self._clock, patience=0.01)
        self._specs = {name: one.watch(*watchers).spec() for name, one in patient.items()}
        self._hurried = {name: one.watch(*watchers).spec() for name, one in hurried.items()}

    async def play(self) -> None:
        began = self._clock.now_us
        try:
            for number in range(self._runs):
                self._clock.now_us = max(self._clock.now_us, began + number * self._step_us)
                await asyncio.create_task(self._told(number, STORIES[number % len(STORIES)]))
        finally:
            await self._ledger.close()

    async def _told(self, number: int, story: Story) -> None:
        process = _Process(self._ledger, number, dies=story.dies)
        agent = self._agent(story, number, process)
        with suppress(FootprintError, ConnectionError, asyncio.CancelledError):
            out: Any = await agent.run(story.says, identity={"user": f"user-{number % 9}"})
            for answer in story.answers:
                self._clock.passes(21_700 if answer == "late" else 60 + number % 7 * 90)
                out = await agent.resume(out.checkpoint, _answer(answer, number))
        if story.then is not None:
            self._clock.passes(120)
            other = self._agent(story, number, _Process(self._ledger, number), replied=1)
            run_id = agent.last_run_id
            assert run_id is not None
            if story.then == "recovered":
                await other.recover(run_id)
            else:
                await other.abandon(run_id, by="dana@ops", reason="nobody waits for it any more")

    def _agent(self, story: Story, number: int, process: _Process, *, replied: int = 0) -> Agent:
        specs = self._hurried if story.hurried else self._specs
        spec, ledger = specs[story.agent], cast("Ledger", process)
        replies = _replies(story, number)[replied:]
        model = Model(replies, self._clock, streaming=story.agent == "support")
        bus = Bus([cast("Watcher", _Heard(one, process)) for one in self._watchers])
        return Agent(
            msgspec.structs.replace(
                spec, provider=model, ledger=ledger, bus=bus if process.dies else spec.bus, clock=self._time
            )
        )

    def _time(self) -> Clock:
        return self._clock


def _replies(story: Story, number: int) -> list[Completed]:
    usage = Usage(input=180 + number % 50 * 12, output=25 + number % 11, cache_read=number % 3 * 60 or None)
    said = [
        reply(
            calls=[call(f"{number}-{turn}-{place}", name, args) for place, (name, args) in enumerate(calls)],
            # Some models do not say what they used.
            usage=None if number % 8 == 1 else usage,
        )
        for turn, calls in enumerate(story.turns)
    ]
    return said if story.text is None else [*said, reply(text=story.text, usage=usage)]


def _answer(answer: str, number: int) -> object:
    by = _PEOPLE[number % len(_PEOPLE)]
    match answer:
        case "value":
            return {"seat": "12A"}
        case "declined":
            return check_in_declined(by=by, note="not this one")
        case _:
            return check_in_approved(by=by)


class _Process:
    """The ledger as one process has it, which may be dead: then nothing is appended any more.

    It also files what a trial would have denied: rules that only record have no door of their own yet.
    """

    def __init__(self, ledger: SqliteLedger, number: int, *, dies: bool = False) -> None:
        self._ledger = ledger
        self._number = number
        self.dies = dies
        self.dead = False
        self._acting = False

    def append_inline(self, batch: Batch, /) -> Receipt | None:
        return self._ledger.append_inline(self._living(batch))

    async def append(self, batch: Batch, /) -> Receipt:
        return await self._ledger.append(self._living(batch))

    def _living(self, batch: Batch) -> Batch:
        # As a kill while the tool ran: what came before it was told, and nothing is told of its end.
        acts = any(isinstance(entry.fact, ToolIntended) for entry in batch.entries)
        self.dead = self.dies and self._acting and not acts
        if self.dead:
            raise LedgerWriteError("The process is dead; start another one.")
        self._acting = acts
        return msgspec.structs.replace(batch, entries=tuple(map(self._tried, batch.entries)))

    def _tried(self, entry: Entry) -> Entry:
        fact = entry.fact
        if not isinstance(fact, Decided) or fact.middleware != "trial-night-stop" or self._number % 3:
            return entry
        shadow = msgspec.structs.replace(fact, outcome="deny", shadow=True, why="It needs a night stop.")
        return msgspec.structs.replace(entry, fact=shadow)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


class _Heard:
    """A watcher as the process of a run has it: it hears nothing when that is dead."""

    def __init__(self, watcher: Watcher, process: _Process) -> None:
        self._watcher = watcher
        self._process = process

    def on_event(self, event: Event, /) -> None:
        if not self._process.dead:
            self._watcher.on_event(event)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._watcher, name)

"""A session goes on behind a run of the ledger, in any process, as the session that ran it would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conversations import asked_for
from file_ledger import on_file
from footprint_core import (
    ActOptions,
    Agent,
    AskPause,
    Batch,
    MemoryLedger,
    Session,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    UserMessage,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    sliding_window,
    summarize_oldest,
)
from footprint_core.facts import Fact, ModelAsked, RunConfigured
from footprint_core.providers import Completed, Scripted, call, reply
from footprint_observe import SqliteLedger
from story import answered, describe, run

ROOT = Path(__file__).parents[2]
PAGE = "lorem ipsum dolor " * 30


class Ten:
    """A schema that takes the number ten."""

    instruction = ""

    def check(self, value: Any, /) -> object:
        if value != 10:
            raise ValueError("ten is expected")
        return value


def read(page: int) -> Any:
    """A page."""
    if page == 0:
        raise LookupError("no such page")
    return {"page": page, "of": [1.0, None, "ü"], "text": PAGE}


@before_tool("asks")
def asks(asked: ToolCallContext) -> ToolOutcome:
    return ask("may I?") if asked.args["page"] == 3 else allow()


@after_tool("shortens")
def shortens(ended: ToolResultContext) -> ToolResultOutcome:
    return allow("short", why="long") if not ended.failed and ended.args["page"] == 2 else allow()


def reads(*pages: int) -> Completed:
    """A reply that says something and reads pages; its ids are the same in every turn."""
    return reply(
        text="I look.", calls=[call(f"c{i}", "read", {"page": page}) for i, page in enumerate(pages)]
    )


FIRST = [reads(1, 2), reads(0, 3), reply(text="ten"), reply(text="10")]
SECOND = [reads(3), reply(text="10")]
THIRD = [reads(1), reply(text="ten"), reply(text="10")]

RULES: ActOptions = {"before_tool": [asks], "after_tool": [shortens]}
WINDOWS: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "sliding": lambda: sliding_window(keep_recent_turns=3),
    "summary": lambda: summarize_oldest(
        threshold_tokens=1, keep_recent_turns=3, summarizer=Scripted([reply(text="in short")] * 9), model="s"
    ),
}


def build(said: Sequence[Completed], ledger: Any, window: str = "none") -> tuple[Agent, Scripted]:
    """The agent of the stories below; it has to answer ten, and may try twice."""
    builder, model = describe(said, read, ledger=ledger, act=RULES, keep_last_tool_results=0)
    if (strategy := WINDOWS[window]()) is not None:
        builder.window(strategy)
    return builder.output_schema(Ten(), retries=1).build(), model


async def turn(session: Agent | Session, message: str) -> str:
    """A turn to its answer; every question is answered yes. The run it was."""
    say = session.run if message == "first" else session.follow_up
    out = await say(message, identity={"who": "ada"})
    while isinstance(out, AskPause):
        out = await session.resume(out.checkpoint, check_in_approved(by="dana"))
    return answered(out).run_id


def kept(path: Path, where: str) -> Any:
    """A ledger: in memory, in a file as it is by default, or in one that keeps everything."""
    if where == "memory":
        return MemoryLedger()
    path = path / "l.db"
    return SqliteLedger(path, durability="process") if where == "file" else on_file(path)


def figures(ledger: Any, *runs: str) -> list[Any]:
    """What is counted of the requests of runs, and the place of each run in its conversation."""
    facts = [entry.fact for run_id in runs for entry in ledger.entries(run_id)]
    asked = [fact for fact in facts if isinstance(fact, ModelAsked)]
    opened = [fact for fact in facts if isinstance(fact, RunConfigured)]
    return [
        [(fact.messages, fact.message_chars, fact.new_messages, fact.first) for fact in asked],
        [(fact.turn_index, fact.conversation_id, runs.index(fact.follows or runs[0])) for fact in opened],
    ]


@pytest.mark.parametrize("where", ["memory", "file", "whole file"])
@pytest.mark.parametrize("window", WINDOWS)
def test_a_conversation_goes_on_as_in_the_session_that_began_it(
    tmp_path: Path, where: str, window: str
) -> None:
    whole = MemoryLedger()
    agent, model = build([*FIRST, *SECOND, *THIRD], whole, window)

    async def uninterrupted() -> list[str]:
        session = agent.session(conversation_id="c-1")
        return [await turn(session, message) for message in ("first", "second", "third")]

    expected = run(uninterrupted())
    ledger = kept(tmp_path, where)
    runs: list[str] = []
    requests: list[Any] = []

    async def in_parts() -> None:
        """Every turn in an agent of its own, that has nothing but the ledger."""
        for message, said in (("first", FIRST), ("second", SECOND), ("third", THIRD)):
            agent, model = build(said, ledger, window)
            session = agent.session(after=runs[-1] if runs else None, conversation_id=None if runs else "c-1")
            assert session.last_run_id is None
            runs.append(await turn(session, message))
            requests.extend(asked_for(model))

    run(in_parts())
    run(ledger.close())
    assert requests == asked_for(model)
    assert figures(ledger, *runs) == figures(whole, *expected)
    kinds = {m.kind for m in model.requests[-1].messages if isinstance(m, UserMessage)}
    assert kinds == {"request", "instruction"} | {"none": set(), "sliding": {"notice"}}.get(
        window, {"summary"}
    )


ELSEWHERE = """
import json, sys
sys.path.insert(0, "tests")
from conversations import asked_for
from footprint_observe import SqliteLedger
from laws.test_chain_after import THIRD, build, turn
from story import run

agent, model = build(THIRD, SqliteLedger(sys.argv[1]), sys.argv[2])

async def go():
    async with agent:
        session = agent.session(after=sys.argv[3])
        return [await turn(session, "third"), session.conversation_id]

print(json.dumps([run(go()), asked_for(model)]))
"""


@pytest.mark.parametrize("window", ["none", "sliding"])
def test_a_conversation_goes_on_in_another_process(tmp_path: Path, window: str) -> None:
    path = tmp_path / "l.db"
    agent, model = build([*FIRST, *SECOND, *THIRD], SqliteLedger(path), window)

    async def go() -> tuple[str, Any, str]:
        async with agent:
            session = agent.session(conversation_id="c-1")
            runs = [await turn(session, message) for message in ("first", "second")]
            done = subprocess.run(  # noqa: ASYNC221 - nothing else runs meanwhile
                [sys.executable, "-W", "error", "-c", ELSEWHERE, str(path), window, runs[-1]],
                cwd=ROOT,
                env=dict(os.environ),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            # The session that is still here goes on behind the same run; neither knows of the other.
            return runs[-1], json.loads(done.stdout), await turn(session, "third")

    before, ((theirs, conversation_id), requests), ours = run(go())
    here = asked_for(model)[-len(requests) :]
    assert requests == json.loads(json.dumps(here))
    assert conversation_id == "c-1"
    ledger = SqliteLedger(path)
    for run_id in (ours, theirs):
        opening = ledger.entries(run_id)[0].fact
        assert isinstance(opening, RunConfigured)
        assert (opening.follows, opening.turn_index, opening.conversation_id) == (before, 2, "c-1")
    run(ledger.close())


def test_a_conversation_gets_another_name_when_one_is_given() -> None:
    ledger = MemoryLedger()
    agent, _ = build([*FIRST, *SECOND], ledger)

    async def go() -> None:
        first = await turn(agent.session(conversation_id="c-1"), "first")
        session = agent.session(after=first, conversation_id="c-2")
        opening = ledger.entries(await turn(session, "second"))[0].fact
        assert isinstance(opening, RunConfigured)
        assert (opening.follows, opening.conversation_id) == (first, "c-2")

    run(go())


def test_run_begins_a_new_conversation_also_in_a_session_that_goes_on() -> None:
    agent, model = build([*FIRST, *FIRST], MemoryLedger())

    async def go() -> None:
        await turn(agent.session(after=await turn(agent, "first")), "first")

    run(go())
    assert asked_for(model)[4:] == asked_for(model)[:4]


def test_sessions_behind_one_run_touch_neither_it_nor_each_other() -> None:
    agent, model = build([*FIRST, *SECOND, *SECOND], MemoryLedger())

    async def go() -> None:
        first = await turn(agent, "first")
        one, two = agent.session(after=first), agent.session(after=first)
        await turn(one, "second")
        await turn(two, "second")

    run(go())
    assert asked_for(model)[4:6] == asked_for(model)[6:]


def test_a_conversation_of_very_many_runs_is_folded_in_one_go() -> None:
    ledger = MemoryLedger()
    builder, model = describe([reply(text="one"), reply(text="two")], ledger=ledger)
    agent = builder.build()
    count = sys.getrecursionlimit() + 100

    async def go() -> None:
        first = answered(await agent.run("go")).run_id
        entries = ledger.entries(first)
        for at in range(1, count):
            follows = first if at == 1 else f"run-{at - 1}"
            again = [
                msgspec.structs.replace(entries[0], fact=following(entries[0].fact, follows)),
                *entries[1:],
            ]
            ledger.append_inline(Batch(run_id=f"run-{at}", segment=1, entries=tuple(again)))
        answered(await agent.session(after=f"run-{count - 1}").follow_up("and?"))

    run(go())
    assert [message.text for message in model.requests[-1].messages] == [*["go", "one"] * count, "and?"]


def following(opening: Fact, run_id: str) -> Fact:
    assert isinstance(opening, RunConfigured)
    return msgspec.structs.replace(opening, follows=run_id)

"""The doors the other planted conversations do not come through, and the places they do not plant in."""

from __future__ import annotations

import asyncio
import json
import tempfile
from contextlib import suppress
from typing import Annotated, Any, cast

import msgspec
from pydantic import Field

from footprint_core import FootprintError, OutputSchemaError, after_tool, before_tool, tool
from footprint_core.providers import reply
from footprint_observe.backtest import read_transcripts, run_backtest
from planted import (
    ANSWER,
    RULES,
    SECRETS,
    WHO,
    WORD,
    Shaped,
    Story,
    World,
    act,
    asks,
    calls,
    malformed,
    pays,
    raises,
    refuses,
    said,
)
from planted_stories import YES, answer


async def typed(world: World) -> None:
    """`run_typed`: an answer that matches, and one that does not."""
    wrong, right = reply(text=f'{{"{WORD}": 1}}'), reply(text='{"ok": true}')
    for last in (right, wrong):
        agent = world.builder([pays(1), last]).credentials(SECRETS).output_schema(Shaped(), retries=0).build()
        with suppress(OutputSchemaError):
            await agent.run_typed(said("message"), identity=WHO)


async def from_a_thread(world: World) -> None:
    """`run_sync`, in a thread without a loop: a turn that is answered, and one that fails."""
    for replies in ([pays(1), ANSWER], [pays(1)]):
        agent = world.builder(replies).credentials(SECRETS).act(**cast("Any", RULES)).build()
        with suppress(FootprintError):
            await asyncio.to_thread(agent.run_sync, said("message"), identity=WHO)


async def sessions(world: World) -> None:
    """Sessions of one agent at the same time, and one that goes on behind a run of another."""
    said_thrice = [pays(1), ANSWER, ANSWER, ANSWER]
    agent = world.builder(said_thrice, streaming=True).credentials(SECRETS).act(**cast("Any", RULES)).build()
    first = agent.session(conversation_id="a conversation")
    await asyncio.gather(first.run(said("message"), identity=WHO), agent.session().run(said("message")))
    with suppress(FootprintError):
        # A file that is redacted has no conversation to go on with.
        await agent.session(after=first.last_run_id).follow_up(said("second message"))


async def by_its_id(world: World) -> None:
    """A pause that is answered by its id, on another agent that was handed nothing else."""
    rules = act(before_tool=[before_tool("asks")(asks)])
    here = world.builder([pays(1)]).credentials(SECRETS).act(**rules).build()
    paused: Any = await here.run(said("message"), identity=WHO)
    there = world.builder([ANSWER]).credentials(SECRETS).act(**rules).build()
    with suppress(FootprintError):
        # A file without keys keeps no body.
        await there.resume(pause_id=paused.pause_id, answer=YES)


async def backtested(world: World) -> None:
    """A conversation of a file under rules of every verb."""
    asked = {"name": "pay", "arguments": json.dumps({"note": said("argument"), WORD: said("argument")})}
    messages = [
        {"role": "system", "content": said("system prompt")},
        {"role": "user", "content": said("message")},
        {
            "role": "assistant",
            "content": said("thought"),
            "tool_calls": [{"id": "call_1", "function": asked}],
        },
        {"role": "tool", "tool_call_id": "call_1", "name": "pay", "content": said("result")},
        {"role": "assistant", "content": said("answer")},
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        json.dump({"id": "recorded-1", "messages": messages}, file)
        file.flush()
        recorded = read_transcripts(file.name)
    for hook in (asks, refuses, raises, malformed):
        rules: Any = {"before_tool": [before_tool("b")(hook)], "after_tool": [after_tool("a")(raises)]}
        await run_backtest(recorded, rules, ledger=world.ledger, watch=world.watchers)


class Opaque:
    """Something JSON cannot hold, which says the word wherever it is shown."""

    def __repr__(self) -> str:
        return said("representation")

    __str__ = __repr__


@tool
def reads_file(
    path: Annotated[str, Field(description=said("description of the argument"))], deep: Any = None
) -> Any:
    """A tool that is given the name of a file of the zanzibar."""
    missing = FileNotFoundError(2, said("error of the file"), path)
    missing.add_note(said("note of the error"))
    raise ExceptionGroup(said("group of errors"), [missing]) from ValueError(said("cause"))


@tool
def gives_anything(note: str) -> Any:
    """A tool whose result no JSON can hold."""
    return {said("key of the result"): [Opaque(), said("result").encode(), {WORD}, float("nan")]}


async def unusual_values(world: World) -> None:
    """Names of files, errors of several kinds, objects, bytes and texts that are no JSON."""
    path = f"/home/{WORD}/{said('file')}.pdf"
    batch = [
        msgspec.structs.replace(calls("reads_file"), args_json=json.dumps({"path": path})),
        msgspec.structs.replace(calls("reads_file", id="c2"), args_json=json.dumps({"path": {WORD: [WORD]}})),
        msgspec.structs.replace(calls("reads_file", id="c3"), args_json=f'{{"path": {said("no JSON")}'),
        calls("gives_anything", id="c4"),
    ]
    everything = (reads_file, gives_anything)
    for together in (False, True):
        await (
            world.builder([reply(calls=batch), ANSWER], *everything, parallel_tools=together)
            .build()
            .run(said("message"), identity=WHO)
        )
    refusing = world.builder([reply(calls=batch), ANSWER], *everything)
    await refusing.act(**act(before_tool=[before_tool("r")(_warns)])).build().run(said("message"))


def _warns(_: object) -> Any:
    """A hook that raises an error with a note, from another one."""
    error = RuntimeWarning(said("warning"))
    error.add_note(said("note of the error"))
    raise error from KeyError(said("key"))


async def given_up(world: World) -> None:
    """A question that is dropped, a run whose answers are none, and calls no door takes."""
    rules = act(before_tool=[before_tool("asks")(asks)])
    agent = world.builder([pays(1), ANSWER]).credentials(SECRETS).act(**rules).build()
    paused = await agent.run(said("message"), identity=WHO)
    junk: list[Any] = [said("no decision"), {WORD: WORD}, Opaque(), None]
    await answer(agent, paused, *junk)
    with suppress(FootprintError):
        await agent.follow_up(said("second message"))
    with suppress(FootprintError):
        await agent.resume({WORD: said("no checkpoint")}, YES)
    agent.abandon_pause()
    with suppress(FootprintError):
        await agent.run(said("message"), identity={WORD: Opaque()})


DOORS: dict[str, Story] = {
    story.__name__: story
    for story in (typed, from_a_thread, sessions, by_its_id, backtested, unusual_values, given_up)
}
"""Every conversation of this file, by name."""

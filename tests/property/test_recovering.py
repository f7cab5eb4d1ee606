"""Recovering a run that was cut off anywhere equals the run that was never disturbed."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations import Asked, World, answer, asked_for, replies, turns
from file_ledger import on_file
from footprint_core import (
    Answer,
    HumanPause,
    Ledger,
    MessageContext,
    Outcome,
    RecoverError,
    ToolCallContext,
    ToolResultContext,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    check_in_declined,
    on_message,
    sliding_window,
)
from footprint_core.facts import (
    Fact,
    MessageTaken,
    ModelReplied,
    PauseAnswered,
    PauseOpened,
    ToolFinished,
    ToolIntended,
)
from footprint_observe.query.replay import replay
from prefixes import Photographed, cuts, facts_of_run
from story import facts_of


def rules(asking: set[int]) -> Any:
    """A rule that asks about some numbers, between two that change what they are shown; and others."""

    @before_tool("double", version="1")
    def double(call: ToolCallContext) -> Any:
        return allow({"number": call.args["number"] * 2}, why="doubled")

    @before_tool("gate", version="1")
    def gate(call: ToolCallContext) -> Any:
        number = call.args["number"]
        return ask(f"{number}?") if number in asking else allow()

    @before_tool("more", version="1")
    def more(call: ToolCallContext) -> Any:
        return allow({"number": call.args["number"] + 1}, why="one more")

    @after_tool("look", version="1")
    def look(call: ToolResultContext) -> Any:
        return allow({"seen": call.result, "args": call.args, "failed": call.failed}, why="wrapped")

    @on_message("loud", version="1")
    def loud(message: MessageContext) -> Any:
        return allow(message.content + "!", why="louder")

    both: Any = [loud]
    return {"before_tool": [double, gate, more], "after_tool": [look], "input": both, "output": both}


class Story:
    """What a model asks for, whom rules ask about, and what people answer."""

    def __init__(self, asked: Sequence[Sequence[Asked]], asking: set[int], **options: Any) -> None:
        self.said = replies(asked)
        self.asking = asking
        self.approve = options["approve"]
        self.parallel = options["parallel"]

    def agent(self, ledger: Ledger | None, behind: int = 0) -> tuple[World, Any, Any]:
        world = World(asks=True, ledger=ledger, idempotent=True)
        window = sliding_window(keep_recent_turns=2)
        agent, model = world.agent(
            self.said[behind:], rules(self.asking), window=window, parallel=self.parallel
        )
        return world, agent, model

    async def to_the_end(self, agent: Any, out: Outcome) -> Answer:
        decision: Any = check_in_approved(by="dana")
        if not self.approve:
            decision = check_in_declined(by="dana", note="too much")
        while not isinstance(out, Answer):
            given = answer(out.data["number"]) if isinstance(out, HumanPause) else decision
            out = await agent.resume(json.loads(json.dumps(out.checkpoint)), given)
        return out


def kept(rows: Any) -> list[str]:
    """The rows without their places; of those that a rule was asked for again, the last one."""
    last: dict[Any, dict[str, Any]] = {}
    for row in rows:
        out = facts_of(row)
        person = row.answer == "person" or row.outcome == "ask"
        key = (row.moment, row.iteration, row.tool_call_id, row.middleware, person and row.outcome)
        last[key] = {name: value for name, value in out.items() if name not in {"position", "segment"}}
    return sorted(json.dumps(row) for row in last.values())


def standing_open(facts: Sequence[Fact]) -> bool:
    """Whether a question waits for its answer."""
    opened = sum(isinstance(fact, PauseOpened) for fact in facts)
    return opened > sum(isinstance(fact, PauseAnswered) for fact in facts)


def ended(facts: Sequence[Fact]) -> Counter[tuple[str, int]]:
    """The calls that had ended, as tool and number."""
    found: Counter[tuple[str, int]] = Counter()
    intents: dict[str, Any] = {}
    for fact in facts:
        if isinstance(fact, ToolIntended):
            intents[fact.call_id] = fact.args["number"]
        elif isinstance(fact, ToolFinished):
            found[fact.tool_name, intents[fact.call_id]] += 1
    return found


async def undisturbed(story: Story, ledger: Ledger | None) -> tuple[World, Answer, list[Any]]:
    world, agent, model = story.agent(ledger)
    out = await story.to_the_end(agent, await agent.run("go", identity={"user": "ada"}))
    return world, out, asked_for(model)


async def recovered(
    story: Story, ledger: Ledger, run_id: str, before: Sequence[Fact]
) -> tuple[World, Answer, list[Any]] | None:
    """The run gone on with; None where it waits for a person or nothing had begun, which is refused."""
    replied = sum(isinstance(fact, ModelReplied) for fact in before)
    world, agent, model = story.agent(ledger, behind=replied)
    waits = standing_open(before)
    if waits or not any(isinstance(fact, MessageTaken) for fact in before):
        with pytest.raises(RecoverError, match="waits for a person" if waits else "took no message"):
            await agent.recover(run_id)
        assert not world.ran
        return None
    out = await agent.recover(run_id)
    out = await story.to_the_end(agent, out)
    return world, out, asked_for(model)


def compare(before: Sequence[Fact], plain: Any, again: Any, *, rows: bool) -> None:
    """A recovered run with the undisturbed one."""
    (world, wanted, requests), (other, got, asked) = plain, again
    assert got.text == wanted.text
    replied = sum(isinstance(fact, ModelReplied) for fact in before)
    assert asked == requests[replied:]
    # What had not ended runs, a call in doubt once more with its key; and what had ended does not.
    assert Counter(other.ran) == Counter(world.ran) - ended(before)
    if rows:
        assert kept(got.decisions) == kept(wanted.decisions)


drawn = given(asked=turns, asking=st.sets(st.integers(0, 18)), approve=st.booleans(), parallel=st.booleans())


@settings(max_examples=25)
@drawn
def test_a_run_cut_off_behind_any_entry_ends_as_if_nothing_had_happened(
    asked: list[list[Asked]], asking: set[int], approve: bool, parallel: bool
) -> None:
    story = Story(asked, asking, approve=approve, parallel=parallel)

    async def play() -> None:
        plain = await undisturbed(story, None)
        for before, ledger in cuts(plain[0].ledger, plain[1].run_id):
            if isinstance(before[-1], PauseAnswered):
                # The note of a person is in the entry behind, and comes with it in one commit.
                continue
            again = await recovered(story, ledger, plain[1].run_id, before)
            if again is not None:
                compare(before, plain, again, rows=False)

    asyncio.run(play())


@settings(max_examples=8)
@drawn
def test_a_file_as_it_was_behind_any_commit_is_gone_on_with_to_the_same_end(
    asked: list[list[Asked]], asking: set[int], approve: bool, parallel: bool
) -> None:
    story = Story(asked, asking, approve=approve, parallel=parallel)

    async def play(folder: Path) -> None:
        whole = Photographed(folder / "whole.db")
        plain = await undisturbed(story, whole)
        for copy in whole.copies[:-1]:
            ledger = on_file(copy)
            before = facts_of_run(ledger, plain[1].run_id)
            again = await recovered(story, ledger, plain[1].run_id, before)
            if again is not None:
                compare(before, plain, again, rows=True)
            await ledger.close()
            # And the file tells a run that follows from its own facts.
            found = replay(copy, plain[1].run_id)
            assert found.matches, found.difference
            found = replay(copy, plain[1].run_id)
            assert found.matches, found.difference
        await whole.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))

"""Calls that run together and a person who is asked about some: who runs, who waits, and who runs again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from footprint_core import (
    Agent,
    Answer,
    AskPause,
    CheckInPause,
    HumanPause,
    MemoryLedger,
    Outcome,
    Permission,
    PolicyHaltError,
    ToolCallContext,
    ToolContext,
    ToolMessage,
    ToolResultContext,
    allow,
    ask,
    ask_human,
    check_in_approved,
    check_in_declined,
    tool,
)
from footprint_core.events import ToolCallEnded, ToolCallStarted
from footprint_core.facts import ToolIntended, ToolPaused
from footprint_core.providers import Scripted, call, reply
from story import Seen, describe, run

YES = check_in_approved(by="dana")
NO = check_in_declined(by="dana")


class World:
    """A batch of calls to tools that are named by what becomes of them; the calls are `c0`, `c1` and so on.

    `run` runs, `ask` is asked about by a rule, `consent` by its tool, `person` asks while it runs, `halt` is
    halted by permission, `deny` is not permitted.
    """

    name = "world"

    def __init__(self, *fates: str, parallel: bool = True) -> None:
        self.steps: list[tuple[str, str]] = []
        self.histories: dict[tuple[str, str], list[str]] = {}
        self.seen, self.ledger = Seen(), MemoryLedger()
        self._calls = [call(f"c{n}", fate, {}) for n, fate in enumerate(fates)]
        self._parallel = parallel
        self.models: list[Scripted] = []

    def _step(self, step: str, shown: Any) -> None:
        self.steps.append((step, shown.tool_call_id))
        self.histories[step, shown.tool_call_id] = [message.role for message in shown.history]

    def check(self, shown: ToolCallContext) -> Permission:
        self._step("permission", shown)
        word: Any = {"halt": "halt", "deny": "deny"}.get(shown.tool_name, "allow")
        return Permission(result=word)

    def agent(self, *, fresh: bool) -> Agent:
        """The same agent again, as in another process; a fresh one has heard nothing yet."""

        async def body(context: ToolContext) -> str:
            self.steps.append(("ran", context.call_id))
            await asyncio.sleep(0)
            return f"ran {context.call_id}"

        @tool
        async def person(context: ToolContext) -> str:
            self.steps.append(("ran", context.call_id))
            await asyncio.sleep(0)
            ask_human(f"what about {context.call_id}?")

        tools = [tool(name=name)(body) for name in ("run", "ask", "halt", "deny")]
        tools += [tool(name="consent", check_in="always")(body), person]
        said = [reply(calls=self._calls), reply(text="done")]
        builder, model = describe(
            said if fresh else said[1:],
            *tools,
            ledger=self.ledger,
            watch=[self.seen],
            parallel_tools=self._parallel,
        )
        self.models.append(model)
        asks, later = Rule("asks", self), Rule("later", self)
        return builder.permission(self).tool_middleware(asks, later).build()

    async def first(self) -> Outcome:
        return await self.agent(fresh=True).run("go")

    async def next(self, pause: Outcome, given: object) -> Outcome:
        """Answer a pause on another agent, from a checkpoint that went through JSON."""
        assert not isinstance(pause, Answer)
        checkpoint = json.loads(json.dumps(pause.checkpoint))
        return await self.agent(fresh=False).resume(checkpoint, given)

    def ran(self) -> list[str]:
        return [id for step, id in self.steps if step == "ran"]

    def at(self, step: str) -> list[str]:
        return [id for at, id in self.steps if at == step]

    def results(self) -> list[tuple[str, str]]:
        messages = self.models[-1].requests[0].messages if len(self.models) > 1 else ()
        return [(m.call_id, m.text) for m in messages if isinstance(m, ToolMessage)]


class Rule:
    """Says when it is asked; the one called `asks` asks about calls of that name."""

    def __init__(self, name: str, world: World) -> None:
        self.name, self._world = name, world

    def on_tool_call(self, shown: ToolCallContext) -> Any:
        self._world._step(self.name, shown)
        asks = self.name == "asks" and shown.tool_name == "ask"
        return ask(f"may {shown.tool_call_id}?") if asks else allow()

    def on_tool_result(self, ended: ToolResultContext) -> Any:
        self._world._step(f"{self.name} after", ended)
        return allow()


def test_the_gates_stop_at_the_first_call_that_is_asked_about_and_what_passed_before_it_runs() -> None:
    world = World("run", "run", "ask", "run", "ask")

    async def story() -> Answer:
        paused = await world.first()
        assert isinstance(paused, AskPause)
        assert paused.tool_call_id == "c2"
        assert world.at("permission") == ["c0", "c1", "c2"]
        assert sorted(world.ran()) == ["c0", "c1"]
        assert [id for step, id in world.steps if step.endswith("after")] == ["c0", "c0", "c1", "c1"]
        world.steps.clear()
        paused = await world.next(paused, YES)
        # The answered call is finished first; then the gates go on behind it.
        assert isinstance(paused, AskPause)
        assert paused.tool_call_id == "c4"
        assert world.steps[:5] == [
            ("permission", "c2"),
            ("later", "c2"),
            ("ran", "c2"),
            ("later after", "c2"),
            ("asks after", "c2"),
        ]
        assert world.at("asks") == ["c3", "c4"]
        assert world.ran() == ["c2", "c3"]
        outcome = await world.next(paused, NO)
        assert isinstance(outcome, Answer)
        return outcome

    out = run(story())
    assert out.text == "done"
    assert world.ran() == ["c2", "c3"]
    assert [id for id, _ in world.results()] == ["c0", "c1", "c2", "c3", "c4"]
    assert [text for _, text in world.results()][:4] == ["ran c0", "ran c1", "ran c2", "ran c3"]


def test_the_gates_stop_at_the_first_call_that_checks_in() -> None:
    world = World("run", "consent", "run")

    async def story() -> Outcome:
        paused = await world.first()
        assert isinstance(paused, CheckInPause)
        assert (paused.tool_call_id, world.at("permission"), world.ran()) == ("c1", ["c0", "c1"], ["c0"])
        return await world.next(paused, YES)

    assert isinstance(run(story()), Answer)
    assert world.ran() == ["c0", "c1", "c2"]
    assert [text for _, text in world.results()] == ["ran c0", "ran c1", "ran c2"]


def test_no_rule_before_a_tool_is_shown_a_result_of_its_batch_also_behind_a_pause() -> None:
    world = World("run", "ask", "run")

    async def story() -> None:
        assert isinstance(await world.next(await world.first(), YES), Answer)

    run(story())
    before = {at: roles for at, roles in world.histories.items() if not at[0].endswith("after")}
    assert len(before) == 9
    assert set(map(tuple, before.values())) == {("user", "assistant")}
    # Behind the tools the siblings that were answered are there.
    after = [world.histories["asks after", f"c{n}"] for n in range(3)]
    assert after == [["user", "assistant", *["tool"] * n] for n in range(3)]


def test_bodies_that_paused_become_one_pause_each_in_call_order_and_none_runs_again() -> None:
    world = World("person", "run", "person", "person")

    async def story() -> Outcome:
        outcome = await world.first()
        assert sorted(world.ran()) == ["c0", "c1", "c2", "c3"]
        for id in ("c0", "c2", "c3"):
            assert isinstance(outcome, HumanPause)
            assert (outcome.tool_call_id, outcome.data) == (id, {"question": f"what about {id}?"})
            outcome = await world.next(outcome, f"about {id}")
        return outcome

    assert isinstance(run(story()), Answer)
    assert sorted(world.ran()) == ["c0", "c1", "c2", "c3"]
    assert world.at("asks after") == ["c0", "c1", "c2", "c3"]
    texts = ["about c0", "ran c1", "about c2", "about c3"]
    assert world.results() == [(f"c{n}", text) for n, text in enumerate(texts)]
    # Every call is told once, whoever answered it and in whichever segment.
    assert [event.tool_call_id for event in world.seen.of(ToolCallStarted)] == ["c0", "c1", "c2", "c3"]
    assert [event.tool_call_id for event in world.seen.of(ToolCallEnded)] == ["c0", "c1", "c2", "c3"]


def test_a_body_that_paused_comes_before_the_question_behind_it_and_nobody_is_asked_twice() -> None:
    world = World("person", "ask", "run")

    async def story() -> Outcome:
        outcome = await world.first()
        assert isinstance(outcome, HumanPause)
        assert (world.ran(), world.at("asks")) == (["c0"], ["c0", "c1"])
        outcome = await world.next(outcome, "well")
        assert isinstance(outcome, AskPause)
        assert outcome.tool_call_id == "c1"
        assert (world.ran(), world.at("asks")) == (["c0"], ["c0", "c1"])
        return await world.next(outcome, YES)

    assert isinstance(run(story()), Answer)
    assert world.ran() == ["c0", "c1", "c2"]
    assert world.at("asks") == ["c0", "c1", "c2"]
    assert world.results() == [("c0", "well"), ("c1", "ran c1"), ("c2", "ran c2")]


def test_a_halt_behind_a_body_that_paused_ends_the_run_when_the_person_has_answered() -> None:
    world = World("person", "run", "halt", "run")

    async def story() -> None:
        outcome = await world.first()
        assert isinstance(outcome, HumanPause)
        assert world.at("permission") == ["c0", "c1", "c2"]
        with pytest.raises(PolicyHaltError) as halted:
            await world.next(outcome, "well")
        assert halted.value.tool_call_id == "c2"

    run(story())
    assert sorted(world.ran()) == ["c0", "c1"]
    assert world.at("permission") == ["c0", "c1", "c2"]
    assert world.at("asks after") == ["c0", "c1"]


def test_what_was_refused_or_had_run_before_a_pause_is_not_decided_about_again() -> None:
    world = World("person", "deny", "run", "deny")

    async def story() -> Outcome:
        outcome = await world.first()
        decided = [*world.steps]
        outcome = await world.next(outcome, "well")
        again = [step for step in world.steps[len(decided) :] if not step[0].endswith("after")]
        assert again == []
        return outcome

    assert isinstance(run(story()), Answer)
    assert [id for id, _ in world.results()] == ["c0", "c1", "c2", "c3"]
    assert world.results()[2] == ("c2", "ran c2")


@pytest.mark.parametrize("fates", [("run", "ask", "person", "run"), ("person", "consent", "ask", "person")])
def test_with_and_without_running_together_a_model_is_asked_the_same(fates: tuple[str, ...]) -> None:
    found: list[Any] = []
    for parallel in (False, True):
        world = World(*fates, parallel=parallel)

        async def story(world: World = world) -> None:
            outcome = await world.first()
            while not isinstance(outcome, Answer):
                given = "well" if isinstance(outcome, HumanPause) else YES
                outcome = await world.next(outcome, given)

        run(story())
        run_id = next(iter(world.ledger._runs))
        facts = [entry.fact for entry in world.ledger.entries(run_id)]
        intents = sorted(fact.call_id for fact in facts if isinstance(fact, ToolIntended))
        paused = [fact.call_id for fact in facts if isinstance(fact, ToolPaused)]
        found.append((world.results(), sorted(world.ran()), intents, sorted(paused)))
    assert found[0] == found[1]

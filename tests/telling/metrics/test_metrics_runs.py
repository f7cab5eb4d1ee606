"""What counts, and what does not: one run at a time."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import msgspec
import pytest

from asked import DONE, NO, YES, Till, asks, pays, until_asked
from footprint_core import Agent, MemoryLedger, allow, before_tool, deny, tool
from footprint_core.events import DecisionFiled, PauseResumed
from footprint_core.facts import ToolIntended
from footprint_core.mcp import mcp_serve
from footprint_core.providers import Completed, Scripted, call, reply
from prefixes import cut_behind
from recorders.otel_metrics import OtelMetrics
from story import Seen, answered, describe, run
from telling.metrics.figures import Metered
from telling.metrics.test_metrics_table import configured, decided


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def breaks() -> str:
    """Break."""
    raise LookupError("nothing there")


def metered_agent(said: Any, rules: Any = (), *tools: Any, **options: Any) -> tuple[Agent, Metered]:
    metered = Metered()
    builder, _ = describe(said, *(tools or (pay,)), watch=[metered.recorder], **options)
    return builder.act(before_tool=list(rules)).build(), metered


def decisions(metered: Metered, *, zeros: bool = False) -> dict[tuple[str | None, ...], float]:
    labels = ("footprint.moment", "footprint.outcome", "footprint.middleware")
    return metered.by("footprint.decisions", *labels, zeros=zeros)


def test_counters_of_known_rules_begin_at_zero_so_that_the_first_denial_is_an_increase() -> None:
    refuses = before_tool("ceiling")(lambda _: deny("too much"))
    agent, metered = metered_agent([DONE], [refuses])
    run(agent.run("go"))
    assert decisions(metered, zeros=True) == {
        ("before-tool", outcome, "ceiling"): 0 for outcome in ("allow", "deny", "ask")
    }
    assert metered.by("footprint.middleware.errors", "footprint.middleware", zeros=True) == {("ceiling",): 0}
    assert metered.by("footprint.runs", "footprint.run.outcome", zeros=True)["denied",] == 0
    assert metered.by("footprint.tools", "footprint.tool.status", zeros=True)["unknown",] == 0


def test_counters_that_begin_again_stay_where_they_are() -> None:
    agent, metered = metered_agent(pays(1) + pays(2), [before_tool("looks")(lambda _: allow())])
    for _ in range(2):
        run(agent.run("go"))
    assert decisions(metered) == {("before-tool", "allow", "looks"): 2}


def test_a_decision_in_shadow_is_timed_and_is_no_decision() -> None:
    metered = Metered()
    metered.recorder.on_event(configured(before_tool=("trial",)))
    metered.recorder.on_event(decided("trial", shadow=True))
    metered.recorder.on_event(decided("trial", shadow=True, answer="raised"))
    assert decisions(metered) == {}
    assert metered.by("footprint.middleware.duration", "footprint.middleware") == {("trial",): 2}
    assert metered.all("footprint.middleware.errors") == 1


def test_a_rule_that_raises_takes_too_long_or_answers_nonsense_is_an_error_of_that_rule() -> None:
    async def slow(_: Any) -> Any:
        await asyncio.Event().wait()

    def raising(_: Any) -> Any:
        raise LookupError("no such customer")

    ill: Any = lambda _: "yes"  # noqa: E731
    rules = {
        "raised": before_tool("raises")(raising),
        "timed-out": before_tool("sleeps", timeout=0.001)(slow),
        "malformed": before_tool("mumbles")(ill),
    }
    for how, rule in rules.items():
        agent, metered = metered_agent(pays(1), [rule])
        seen = Seen()
        with agent.attach(seen):
            run(agent.run("go"))
        assert [event.answer for event in seen.of(DecisionFiled)] == [how]
        assert metered.by("footprint.middleware.errors", "footprint.middleware") == {(rule.name,): 1}
        assert metered.by("footprint.tools", "footprint.tool.status") == {("denied",): 1}


def test_a_run_that_pauses_ends_a_segment_as_paused_and_another_as_answered() -> None:
    till, metered = Till(), Metered()
    agent = till.agent(pays(500), [asks()])

    async def story() -> None:
        with agent.attach(metered.recorder):
            pause = await until_asked(agent)
            assert metered.by("footprint.runs", "footprint.run.outcome") == {("paused",): 1}
            assert metered.by("footprint.tools", "footprint.tool.status") == {("paused",): 1}
            assert metered.by("footprint.run.iterations") == {}
            answered(await agent.resume(pause.checkpoint, YES))

    run(story())
    assert metered.by("footprint.runs", "footprint.run.outcome") == {("paused",): 1, ("answered",): 1}
    assert metered.by("footprint.tools", "footprint.tool.status") == {("paused",): 1, ("ran",): 1}
    # Both model calls, though the second segment made only one of them.
    assert metered.sum("footprint.run.iterations") == 2
    assert metered.by("footprint.approval.latency", "footprint.pause.answer") == {("approved",): 1}
    (resumed,) = till.seen.of(PauseResumed)
    assert metered.sum("footprint.approval.latency") == pytest.approx(resumed.paused)


@pytest.mark.parametrize(("answer", "word"), [(YES, "approved"), (NO, "declined")])
def test_the_wait_for_a_person_is_in_no_duration(answer: Any, word: str) -> None:
    class Late:
        """A clock that a person kept waiting for a day."""

        passed = 0

        def now(self) -> int:
            Late.passed += 10
            return 1_800_000_000_000_000 + Late.passed

    metered = Metered()
    till = Till()
    builder, _ = describe(pays(500), till.pay(), ledger=MemoryLedger(), watch=[metered.recorder])
    agent = Agent(msgspec.structs.replace(builder.act(before_tool=[asks()]).spec(), clock=Late))

    async def story() -> None:
        pause = await until_asked(agent)
        Late.passed += 86_400_000_000
        await agent.resume(pause.checkpoint, answer)

    run(story())
    assert metered.sum("footprint.approval.latency", footprint_pause_answer=word) == pytest.approx(
        86_400, abs=1
    )
    for name in ("run.duration", "tool.duration", "middleware.duration"):
        assert metered.sum(f"footprint.{name}") < 1


def test_a_tool_is_timed_only_when_its_body_ran() -> None:
    refuses = before_tool("ceiling")(lambda one: deny("no") if one.args.get("amount") == 2 else allow())
    said = [
        reply(
            calls=[
                call("1", "pay", {"amount": 1}),
                call("2", "pay", {"amount": 2}),
                call("3", "pay", {"amount": "much"}),
                call("4", "no_such_tool", {}),
                call("5", "breaks", {}),
            ]
        ),
        DONE,
    ]
    agent, metered = metered_agent(said, [refuses], pay, breaks)
    run(agent.run("go"))
    assert metered.by("footprint.tools", "footprint.tool.status") == {
        (status,): 1 for status in ("ran", "denied", "invalid", "unknown", "failed")
    }
    assert metered.by("footprint.tool.duration", "gen_ai.tool.name", "gen_ai.agent.name") == {
        ("pay", "tested"): 1,
        ("breaks", "tested"): 1,
    }


def test_a_provider_that_does_not_say_what_it_used_counts_no_tokens() -> None:
    agent, metered = metered_agent([reply(text="a", usage=None)])
    run(agent.run("go"))
    assert metered.by("gen_ai.client.operation.duration") == {(): 1}
    assert metered.by("gen_ai.client.token.usage", zeros=True) == {}


def test_model_metrics_have_the_labels_of_the_conventions() -> None:
    agent, metered = metered_agent([reply(text="a")])
    run(agent.run("go"))
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "m",
    }
    found = [
        (name, labels, point.sum) for name, labels, point in metered.points() if name.startswith("gen_ai.")
    ]
    assert ("gen_ai.client.token.usage", {**model, "gen_ai.token.type": "input"}, 10) in found
    assert ("gen_ai.client.token.usage", {**model, "gen_ai.token.type": "output"}, 5) in found
    assert [labels for name, labels, _ in found if name == "gen_ai.client.operation.duration"] == [model]


def test_a_model_that_fails_says_with_what() -> None:
    class Down(Scripted):
        def reply(self, request: Any, /) -> Any:
            raise ConnectionError("secret words")

    metered = Metered()
    agent = Agent.create(provider=Down([]), model="m", name="tested").watch(metered.recorder).build()
    with pytest.raises(Exception, match="ConnectionError"):
        run(agent.run("go"))
    assert metered.by("gen_ai.client.operation.duration", "error.type") == {("ConnectionError",): 1}
    assert metered.by("footprint.runs", "footprint.run.outcome") == {("failed",): 1}


SAID: list[Completed] = [
    reply(calls=[call("1", "pay", {"amount": 5}), call("2", "pay", {"amount": 6})]),
    DONE,
]


def test_what_a_run_had_done_before_its_process_died_is_not_counted_again() -> None:
    whole, ledger = Metered(), MemoryLedger()
    looks = before_tool("looks")(lambda _: allow())

    def agent(said: Any, kept: Any, metered: Metered) -> Agent:
        builder, _ = describe(said, pay, ledger=kept, watch=[metered.recorder], parallel_tools=False)
        return builder.act(before_tool=[looks]).build()

    out = answered(run(agent(SAID, ledger, whole).run("go")))
    assert decisions(whole) == {("before-tool", "allow", "looks"): 2}
    # The second call was about to run: both were decided about, and the first one had ended.
    rest, left = Metered(), cut_behind(ledger, out.run_id, ToolIntended, 2)
    answered(run(agent(SAID[1:], left, rest).recover(out.run_id)))
    assert decisions(rest) == {}
    assert metered_calls(rest) == {("blocked", "tested"): 1}
    assert rest.by("footprint.runs", "footprint.run.outcome") == {("abandoned",): 1, ("answered",): 1}
    assert rest.by("footprint.run.iterations") == {(): 1}
    assert rest.by("gen_ai.client.operation.duration") == {(): 1}


def metered_calls(metered: Metered) -> dict[tuple[str | None, ...], float]:
    return metered.by("footprint.tools", "footprint.tool.status", "gen_ai.agent.name")


def test_a_call_served_over_mcp_counts_for_its_server() -> None:
    from mcp import Client

    metered = Metered()

    async def story() -> None:
        async with (
            mcp_serve(name="desk", tools=[pay], watch=[metered.recorder]) as serving,
            Client(serving.server) as client,
        ):
            await client.call_tool("pay", {"amount": 3})

    run(story())
    assert metered_calls(metered) == {("ran", "desk"): 1}
    assert metered.by("gen_ai.client.operation.duration", zeros=True) == {}


def test_recorders_of_two_agents_on_one_provider_count_together() -> None:
    metered = Metered()
    other = OtelMetrics(meter_provider=metered.provider, id="another")
    for recorder in (metered.recorder, other):
        builder, _ = describe(pays(1), pay, watch=[recorder])
        run(builder.build().run("go"))
    assert metered.by("footprint.tools", "footprint.tool.status") == {("ran",): 2}


def test_numbers_of_a_recorder_that_is_gone_are_not_lost() -> None:
    metered = Metered()
    builder, _ = describe(pays(1), pay, watch=[OtelMetrics(meter_provider=metered.provider)])
    agent = builder.build()
    run(agent.run("go"))
    run(agent.close())
    del builder, agent
    gc.collect()
    assert metered.by("footprint.tools", "footprint.tool.status") == {("ran",): 1}

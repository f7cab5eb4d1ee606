"""A tool that runs another agent: the inner run hangs below the call of the outer one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from footprint_core import Agent, allow, before_tool
from footprint_core.providers import Scripted, call, reply
from story import answered, run
from traced import Traced, context

TREE = [
    [
        "invoke_agent outer",
        "chat m",
        [
            "execute_tool delegate",
            "middleware.decision looks",
            [
                "invoke_agent inner",
                "chat m",
                ["execute_tool look", "middleware.decision looks"],
                "chat m",
            ],
        ],
        "chat m",
    ]
]


def look(key: str) -> str:
    """Look up."""
    return key


def inner(traced: Traced) -> Agent:
    model = Scripted([reply(calls=[call("c1", "look", {"key": "a"})]), reply(text="inner")])
    made = Agent.create(provider=model, model="m", name="inner").tool(look).watch(traced.watcher)
    return made.act(before_tool=[before_tool("looks")(lambda _: allow())]).build()


def outer(
    traced: Traced, delegate: Callable[..., object], *, calls: int = 1, parallel: bool = False
) -> Agent:
    # The inner agent's model uses the same call ids.
    asked = [call(f"c{n}", "delegate", {}) for n in range(1, calls + 1)]
    model = Scripted([reply(calls=asked), reply(text="outer")])
    made = Agent.create(provider=model, model="m", name="outer", parallel_tools=parallel)
    rules = [before_tool("looks")(lambda _: allow())]
    return made.tool(delegate).watch(traced.watcher).act(before_tool=rules).build()


@pytest.mark.parametrize("sync", [False, True], ids=["async", "run_sync"])
@pytest.mark.parametrize("same", [True, False], ids=["the same recorder", "a recorder each"])
def test_an_async_tool_that_awaits_another_agent(sync: bool, same: bool) -> None:
    traced = Traced()
    other = traced if same else _beside(traced)

    async def delegate() -> str:
        """Delegate."""
        return answered(await inner(other).run("go")).text

    agent = outer(traced, delegate)
    assert answered(agent.run_sync("go") if sync else run(agent.run("go"))).text == "outer"
    assert traced.tree() == TREE


def test_a_plain_tool_in_a_thread_that_runs_another_agent() -> None:
    traced = Traced()

    def delegate() -> str:
        """Delegate."""
        return answered(inner(traced).run_sync("go")).text

    assert answered(run(outer(traced, delegate).run("go"))).text == "outer"
    assert traced.tree() == TREE


def test_agents_that_run_at_the_same_time_below_calls_of_one_reply_keep_apart() -> None:
    traced = Traced()

    async def delegate() -> str:
        """Delegate."""
        return answered(await inner(traced).run("go")).text

    answered(run(outer(traced, delegate, calls=5, parallel=True).run("go")))
    parents = [span.parent.span_id for span in traced.all_named("invoke_agent inner") if span.parent]
    assert len(set(parents)) == 5
    assert set(parents) == {context(span).span_id for span in traced.all_named("execute_tool delegate")}
    assert len({context(span).trace_id for span in traced.spans}) == 1


def _beside(traced: Traced) -> Traced:
    """Another recorder on the same provider."""
    other = Traced(id="other")
    other.watcher = type(traced.watcher)(tracer_provider=traced.provider, id="other")
    return other

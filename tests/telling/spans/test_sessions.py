"""Many conversations at once, in one loop or in several threads, with parallel calls: none swaps parents."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from opentelemetry.context import get_current
from opentelemetry.trace import get_current_span

from footprint_core import Agent, allow, before_tool
from footprint_core.providers import Completed, ModelRequest, Whole, call, reply
from story import answered, run
from traced import Traced, context, said

SESSIONS, CALLS = 12, 4


class Echoes:
    """A model for any number of conversations: calls for each message, then an answer."""

    name = "echoes"

    def reply(self, request: ModelRequest, /) -> Any:
        who = request.messages[0].text
        if len(request.messages) > 1:
            return Whole(Completed(text=who))
        names = ("in_the_loop", "in_a_thread")
        return Whole(reply(calls=[call(f"c{n}", names[n % 2], {"who": who, "n": n}) for n in range(CALLS)]))


def echoing(traced: Traced, *, parallel: bool) -> Agent:
    async def in_the_loop(who: str, n: int) -> str:
        """Wait for others."""
        await asyncio.sleep(0)
        with traced.tracer.start_as_current_span(f"own {who} {n}"):
            await asyncio.sleep(0)
        return who

    def in_a_thread(who: str, n: int) -> str:
        """Be in a thread."""
        with traced.tracer.start_as_current_span(f"own {who} {n}"):
            return who

    async def looks(call: Any) -> Any:
        await asyncio.sleep(0)
        return allow()

    made = Agent.create(provider=Echoes(), model="m", name="echoes", parallel_tools=parallel)
    return (
        made.tool(in_the_loop, in_a_thread)
        .act(before_tool=[before_tool("looks")(looks)])
        .watch(traced.watcher)
        .build()
    )


async def converse(agent: Agent, who: str) -> str:
    session = agent.session(conversation_id=who)
    return answered(await session.run(who)).text


def check(traced: Traced, names: list[str]) -> None:
    """Every span is in the trace of its conversation, below what it belongs to."""
    spans = {context(span).span_id: span for span in traced.spans}
    roots = {said(s)["gen_ai.conversation.id"]: s for s in traced.all_named("invoke_agent echoes")}
    assert sorted(roots) == sorted(names)
    for span in spans.values():
        if span.name.startswith("own "):
            _, who, n = span.name.split()
            above = spans[span.parent.span_id if span.parent else 0]
            assert above.name.startswith("execute_tool ")
            assert said(above)["gen_ai.tool.call.id"] == f"c{n}"
            assert context(span).trace_id == context(roots[who]).trace_id
        else:
            root = roots[said(span)["gen_ai.conversation.id"]]
            assert context(span).trace_id == context(root).trace_id
        if span.name == "middleware.decision looks":
            above = spans[span.parent.span_id if span.parent else 0]
            assert said(above)["gen_ai.tool.call.id"] == said(span)["footprint.tool.call.id"]
    a_run = Counter({"invoke_agent": 1, "chat": 2, "execute_tool": CALLS, "middleware.decision": CALLS})
    counted = Counter(span.name.split()[0] for span in spans.values())
    assert counted == Counter({k: v * len(names) for k, v in (a_run + Counter({"own": CALLS})).items()})


def test_sessions_of_one_agent_in_one_loop() -> None:
    for parallel in (False, True):
        traced = Traced()
        agent = echoing(traced, parallel=parallel)
        names = [f"user-{n}" for n in range(SESSIONS)]

        async def all_of_them(agent: Agent = agent, names: list[str] = names) -> None:
            before = get_current()
            assert await asyncio.gather(*(converse(agent, name) for name in names)) == names
            assert get_current() is before

        run(all_of_them())
        check(traced, names)


def test_sessions_of_one_agent_in_several_threads() -> None:
    traced = Traced()
    agent = echoing(traced, parallel=True)
    names = [f"user-{n}" for n in range(SESSIONS)]

    def one(name: str) -> str:
        text = asyncio.run(converse(agent, name))
        assert not get_current_span().get_span_context().is_valid
        return text

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, names)) == names
    check(traced, names)

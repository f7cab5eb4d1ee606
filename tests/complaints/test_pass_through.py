"""Rules that let everything pass change nothing: no byte of a request, no answer, nothing that tools do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from footprint_core import (
    ActOptions,
    Agent,
    MemoryLedger,
    Permission,
    allow,
    ask_human,
    sliding_window,
    tool,
)
from footprint_core.facts import CallAnswered
from footprint_core.messages import ToolCall
from footprint_core.providers import Scripted, call, reply
from ruled import wire
from story import Seen, run

STORY = (
    reply(
        text="first I look",
        calls=[
            call("ok", "act", {"n": 1}),
            call("wrong type", "act", {"n": "one"}),
            call("missing", "act", {}),
            call("odd", "act", {"n": 1, "m": {"deep": [1.0, 1e21, None, True]}}),
            call("raises", "act", {"n": 0}),
            call("ok", "act", {"n": 2}),
            call("unknown", "nobody", {"n": 1}),
            call("\u00e9\n", "act", {"n": 3}),
            ToolCall(id="list", name="act", args_json="[1]"),
            ToolCall(id="text", name="act", args_json="{not json"),
            call("schema", "loose", {"n": 0.5, "\u00e9": "\u2028"}),
            call("schema-wrong", "loose", {"n": "x"}),
            call("none", "nothing", {}),
        ],
    ),
    reply(text="", calls=[call("last", "act", {"n": 4})]),
    reply(text="done \u2028 \u00e9"),
)
"""Everything a model does right and wrong."""


def _agent(prepare: Any, *, parallel: bool) -> tuple[Agent, Scripted, MemoryLedger, list[Any]]:
    ran: list[Any] = []

    def act(n: int) -> dict[str, Any]:
        ran.append(n)
        return {"n": n, "of": 1 / n, "as": [b"bytes", {"x": (1, 2)}]}

    @tool(schema={"type": "object", "properties": {"n": {"type": "number"}}})
    def loose(args: dict[str, Any]) -> str:
        ran.append(args)
        return "loose"

    def nothing() -> None:
        ran.append(None)

    model, ledger = Scripted(STORY), MemoryLedger()
    builder = Agent.create(provider=model, model="m", name="p", parallel_tools=parallel)
    builder.system("be brief").tool(act, loose, nothing).ledger(ledger)
    prepare(builder)
    return builder.build(), model, ledger, ran


def _everything(**more: Any) -> Any:
    return SimpleNamespace(
        name="passes",
        on_message=lambda _: allow(),
        on_tool_call=lambda _: allow(),
        on_tool_result=lambda _: allow(),
        **more,
    )


async def _later(_: Any) -> Any:
    return allow(why="looked at it")


def _at(**options: Any) -> Any:
    act: ActOptions = options  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    return lambda builder: builder.act(**act)


class _Permits:
    name = "permits"

    def check(self, _: Any, /) -> Permission:
        return Permission(result="allow")


PASSING: dict[str, Any] = {
    "none": lambda builder: builder,
    "empty": _at(),
    "input": _at(input=[_everything()]),
    "before a tool": _at(before_tool=[_everything()]),
    "after a tool": _at(after_tool=[_everything()]),
    "output": _at(output=[_everything()]),
    "all": lambda b: b.tool_middleware(_everything()).message_middleware(_everything()),
    "async": lambda b: b.tool_middleware(
        SimpleNamespace(name="later", on_tool_call=_later, on_tool_result=_later)
    ).message_middleware(SimpleNamespace(name="later", on_message=_later)),
    "with a limit": lambda b: b.tool_middleware(_everything(timeout=30)).message_middleware(
        _everything(timeout=30)
    ),
    "the same value again": lambda b: b.tool_middleware(
        SimpleNamespace(
            name="same",
            on_tool_call=lambda c: allow(c.args, why="the same"),
            on_tool_result=lambda c: allow(c.result, why="the same"),
        )
    ).message_middleware(SimpleNamespace(name="same", on_message=lambda m: allow(m.content, why="the same"))),
    "permission": lambda b: b.permission(_Permits()),
    "watched": lambda b: b.watch(Seen()),
    "a wide window": lambda b: b.window(sliding_window(keep_recent_turns=99)),
}


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("passing", PASSING.values(), ids=PASSING)
def test_c008_rules_that_let_pass_change_no_byte_of_a_request_and_nothing_that_is_done(
    passing: Any, parallel: bool
) -> None:
    free, free_model, free_ledger, free_ran = _agent(PASSING["none"], parallel=parallel)
    ruled, model, ledger, ran = _agent(passing, parallel=parallel)
    ends = [run(agent.run("go \u00e9")) for agent in (free, ruled)]
    assert getattr(ends[0], "text", "no") == getattr(ends[1], "text", "none")
    assert list(map(wire, model.requests)) == list(map(wire, free_model.requests))
    assert len(model.requests) == 3
    if parallel:
        ran, free_ran = sorted(ran, key=repr), sorted(free_ran, key=repr)
    assert ran == free_ran
    answered = _answered(ledger, ruled)
    assert answered == _answered(free_ledger, free)
    assert {status for _, status in answered} == {"ran", "failed", "invalid", "unknown", "blocked"}


def _answered(ledger: MemoryLedger, agent: Agent) -> list[tuple[str, str]]:
    facts = (entry.fact for entry in ledger.entries(agent.last_run_id or ""))
    return [(fact.call_id, fact.status) for fact in facts if isinstance(fact, CallAnswered)]


@pytest.mark.parametrize("passing", [p for name, p in PASSING.items() if name != "permission"])
def test_c008_rules_that_let_pass_change_nothing_around_a_pause(passing: Any) -> None:
    requests: list[list[bytes]] = []
    for prepare in (PASSING["none"], passing):

        def person() -> None:
            ask_human("Well?")

        model = Scripted([reply(calls=[call("c1", "person", {})]), reply(text="done")])
        builder = Agent.create(provider=model, model="m", name="p").tool(person)
        prepare(builder)
        agent = builder.build()

        async def story(agent: Agent = agent) -> None:
            paused: Any = await agent.run("go")
            await agent.resume(paused.checkpoint, {"well": "yes"})

        run(story())
        requests.append(list(map(wire, model.requests)))
    assert requests[0] == requests[1]

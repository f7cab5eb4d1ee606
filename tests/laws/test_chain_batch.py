"""The calls of one model turn: in call order, each answered once, whatever became of the others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from footprint_core import (
    Answer,
    AssistantMessage,
    HumanPause,
    MemoryLedger,
    Message,
    Outcome,
    Permission,
    PolicyHaltError,
    ToolCall,
    ToolCallContext,
    ToolContext,
    ToolMessage,
    ToolResultContext,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    check_in_declined,
    deny,
    static_credentials,
    tool,
)
from footprint_core.events import PermissionHalted, ToolCallEnded, ToolCallStarted
from footprint_core.providers import Scripted, call, reply
from story import Seen, answered, describe, run


def act(n: int, context: ToolContext) -> int:
    """Act."""
    if n == 13:
        raise ValueError("unlucky")
    return n * 10


def acting(*calls: ToolCall, **options: Any) -> Any:
    builder, model = describe([reply(calls=calls), reply(text="done")], tool(inline=True)(act), **options)
    return builder, model


def results(request: Any) -> list[tuple[str, str]]:
    return [(m.call_id, m.text) for m in request.messages if isinstance(m, ToolMessage)]


class Batch:
    """A rule that says when it is asked, next to tools that say when they run."""

    name = "batch"

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []

    def on_tool_call(self, asked: ToolCallContext) -> Any:
        self.log.append(("before", asked.tool_call_id))
        return deny("not that one") if asked.args.get("n") == 7 else allow()

    def on_tool_result(self, ended: ToolResultContext) -> Any:
        self.log.append(("after", ended.tool_call_id))
        return deny("not to be read") if ended.args.get("n") == 5 else allow()


def test_calls_are_dispatched_one_after_another_and_answered_in_call_order() -> None:
    rule = Batch()

    async def act(n: int, context: ToolContext) -> int:
        rule.log.append(("ran", context.call_id))
        return n * 10

    calls = [call(id, "act", {"n": n}) for id, n in (("b", 1), ("a", 2), ("c", 3))]
    builder, model = describe([reply(calls=calls), reply(text="done")], act)
    run(builder.tool_middleware(rule).build().run("go"))
    assert rule.log == [(step, id) for id in "bac" for step in ("before", "ran", "after")]
    assert results(model.requests[1]) == [("b", "10"), ("a", "20"), ("c", "30")]


def test_a_refusal_or_failure_of_one_call_stops_no_other() -> None:
    rule = Batch()
    calls = [
        call("denied", "act", {"n": 7}),
        call("raised", "act", {"n": 13}),
        call("withheld", "act", {"n": 5}),
        call("invalid", "act", {"n": "x"}),
        call("unknown", "nope", {}),
        call("fine", "act", {"n": 1}),
    ]
    builder, model = acting(*calls)
    run(builder.tool_middleware(rule).build().run("go"))
    read = results(model.requests[1])
    assert [id for id, _ in read] == ["denied", "raised", "withheld", "invalid", "unknown", "fine"]
    assert dict(read)["denied"] == "not that one"
    assert dict(read)["raised"] == "unlucky"
    assert dict(read)["withheld"] == "not to be read"
    assert dict(read)["fine"] == "10"
    assert [id for step, id in rule.log if step == "after"] == ["raised", "withheld", "fine"]


@pytest.mark.parametrize("parallel", [False, True])
def test_a_halt_stops_the_batch_and_nothing_behind_it_is_dispatched(parallel: bool) -> None:
    asked: list[str] = []
    ran: list[int] = []

    async def act(n: int) -> int:
        ran.append(n)
        return n

    class Halts:
        name = "halts"

        def check(self, shown: ToolCallContext) -> Permission:
            asked.append(shown.tool_call_id)
            return Permission(result="halt" if shown.args["n"] == 2 else "allow")

    seen, ledger, rule = Seen(), MemoryLedger(), Batch()
    calls = [call(f"c{n}", "act", {"n": n}) for n in (1, 2, 3, 4)]
    builder, model = describe(
        [reply(calls=calls), reply(text="done")], act, watch=[seen], ledger=ledger, parallel_tools=parallel
    )
    with pytest.raises(PolicyHaltError) as halted:
        run(builder.permission(Halts()).tool_middleware(rule).build().run("go"))
    assert halted.value.proposed == {"name": "act", "args": {"n": 2}}
    assert asked == ["c1", "c2"]
    assert ran == [1]
    assert rule.log == [("before", "c1"), ("after", "c1")]
    assert [event.tool_call_id for event in seen.of(ToolCallStarted)] == ["c1", "c2"]
    assert [event.tool_call_id for event in seen.of(ToolCallEnded)] == ["c1", "c2"]
    assert [event.tool_call_id for event in seen.of(PermissionHalted)] == ["c2"]
    assert len(model.requests) == 1


def test_of_a_repeated_call_id_only_the_first_call_is_dispatched() -> None:
    asked: list[str] = []
    ran: list[int] = []

    class Asked:
        name = "asked"

        def check(self, shown: ToolCallContext) -> Permission:
            asked.append(f"permission {shown.tool_call_id}")
            return Permission(result="allow")

        def on_tool_call(self, shown: ToolCallContext) -> Any:
            asked.append(f"rule {shown.tool_call_id}")
            return allow()

    async def act(n: int) -> int:
        ran.append(n)
        return n

    # A fresh id must not be one that the model gave to another call.
    calls = [call("c", "act", {"n": n}) for n in (1, 2, 3)] + [call("call-1-2", "act", {"n": 4})]
    builder, model = describe([reply(calls=calls), reply(text="done")], act)
    rule = Asked()
    run(builder.permission(rule).tool_middleware(rule).build().run("go"))
    assert ran == [1, 4]
    assert asked == ["permission c", "rule c", "permission call-1-2", "rule call-1-2"]
    (said,) = [m for m in model.requests[1].messages if isinstance(m, AssistantMessage)]
    ids = [one.id for one in said.calls]
    assert ids[0] == "c"
    assert ids[3] == "call-1-2"
    assert len(set(ids)) == 4
    assert [one.args for one in said.calls] == [{"n": n} for n in (1, 2, 3, 4)]
    read = results(model.requests[1])
    assert [id for id, _ in read] == ids
    for _, text in read[1:3]:
        assert "call id c " in text
        assert "not run" in text
    assert [text for _, text in (read[0], read[3])] == ["1", "4"]


def test_an_id_of_an_earlier_iteration_is_kept_and_its_call_is_another_one() -> None:
    keys: list[str] = []

    async def act(n: int, context: ToolContext) -> int:
        keys.append(context.idempotency_key)
        return n

    replies = [reply(calls=[call("c", "act", {"n": n})]) for n in (1, 2)]
    builder, model = describe([*replies, reply(text="done")], act)
    out = answered(run(builder.tool_middleware(before_tool("looks")(lambda _: allow())).build().run("go")))
    assert len(set(keys)) == 2
    assert results(model.requests[2]) == [("c", "1"), ("c", "2")]
    assert [(row.tool_call_id, row.iteration) for row in out.decisions] == [("c", 1), ("c", 2)]


FATES = (
    "fine",
    "denied",
    "withheld",
    "raised",
    "invalid",
    "no object",
    "unknown",
    "blocked",
    "not permitted",
    "asked",
    "declined",
    "consent",
    "person",
    "repeated",
)


class World:
    """A batch of calls with any mix of fates, played to its answer through every pause."""

    name = "world"

    def check(self, shown: ToolCallContext) -> Permission:
        return Permission(result="deny" if shown.args.get("fate") == "not permitted" else "allow")

    def on_tool_call(self, shown: ToolCallContext) -> Any:
        match shown.args.get("fate"):
            case "denied":
                return deny("denied by a rule")
            case "asked" | "declined":
                return ask("may I?")
            case _:
                return allow()

    def on_tool_result(self, ended: ToolResultContext) -> Any:
        return deny("withheld by a rule") if ended.args.get("fate") == "withheld" else allow()

    def tools(self) -> list[Any]:
        @tool(inline=True)
        def fate(fate: str) -> str:
            if fate == "raised":
                raise ValueError("raised")
            if fate == "person":
                ask_human("well?")
            return fate

        return [
            fate,
            tool(name="blocked", needs="bank", inline=True)(lambda: None),
            tool(name="consent", check_in="always", inline=True)(lambda: None),
        ]

    async def play(self, batches: list[list[str]], *, parallel: bool) -> Scripted:
        said = [*[reply(calls=_calls(batch)) for batch in batches], reply(text="done")]
        builder, model = describe(said, *self.tools(), parallel_tools=parallel, max_iterations=50)
        builder.permission(self).tool_middleware(self).credentials(static_credentials({}))
        agent = builder.build()
        outcome: Outcome = await agent.run("go")
        while not isinstance(outcome, Answer):
            outcome = await agent.resume(json.loads(json.dumps(outcome.checkpoint)), _decision(outcome))
        assert outcome.text == "done"
        return model


def _decision(outcome: Outcome) -> Any:
    if isinstance(outcome, HumanPause):
        return "a person's word"
    declined = getattr(outcome, "args", {}).get("fate") == "declined"
    return check_in_declined(by="dana") if declined else check_in_approved(by="dana")


def _calls(batch: list[str]) -> list[ToolCall]:
    made: list[ToolCall] = []
    for index, fate in enumerate(batch):
        id = made[0].id if fate == "repeated" and made else f"c{index}"
        if fate in {"blocked", "consent"}:
            made.append(call(id, fate, {}))
        elif fate == "no object":
            made.append(ToolCall(id=id, name="fate", args_json="[1"))
        else:
            name = "nope" if fate == "unknown" else "fate"
            made.append(call(id, name, {"fate": 1 if fate == "invalid" else fate}))
    return made


def whole(messages: tuple[Message, ...]) -> None:
    """Refuse a request in which a call has not exactly one result, in call order, behind its turn."""
    waiting: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert waiting, "a result without its call"
            assert (message.call_id, message.tool_name) == waiting.pop(0)
            continue
        assert not waiting, "a call without its result"
        if isinstance(message, AssistantMessage):
            waiting = [(one.id, one.name) for one in message.calls]
            assert len({id for id, _ in waiting}) == len(waiting)
    assert not waiting, "a call without its result"


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.lists(st.lists(st.sampled_from(FATES), min_size=1, max_size=5), max_size=3), st.booleans())
def test_in_every_request_each_call_has_one_result_and_each_result_its_call(
    batches: list[list[str]], parallel: bool
) -> None:
    model = run(World().play(batches, parallel=parallel))
    assert len(model.requests) == len(batches) + 1
    for request in model.requests:
        whole(request.messages[:])
    counts = [len(batch) for batch in batches]
    assert [len(results(request)) for request in model.requests] == [
        sum(counts[:i]) for i in range(len(counts) + 1)
    ]


@pytest.mark.parametrize("wrap_up", [False, True])
def test_calls_that_a_spent_budget_left_undispatched_are_in_no_request(wrap_up: bool) -> None:
    calls = reply(text="wait", calls=[call("c1", "act", {"n": 1}), call("c2", "act", {"n": 2})])
    said = [calls, calls, *([reply(text="in short")] if wrap_up else []), reply(text="done")]
    builder, model = describe(said, tool(inline=True)(act), max_iterations=2, wrap_up=wrap_up)
    agent = builder.build()

    async def story() -> None:
        answered(await agent.run("go"))
        answered(await agent.follow_up("and?"))

    run(story())
    assert len(model.requests) == len(said)
    for request in model.requests:
        whole(request.messages[:])
    assert results(model.requests[-1]) == [("c1", "10"), ("c2", "20")]

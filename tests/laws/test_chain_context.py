"""What a rule is told of a call and of a message: names, source, history, identity."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from footprint_core import (
    Answer,
    AskPause,
    AssistantMessage,
    Credential,
    CredentialRequest,
    ForeignCheckpointError,
    HumanPause,
    MemoryLedger,
    MessageContext,
    Permission,
    Tool,
    ToolCallContext,
    ToolContext,
    ToolResultContext,
    allow,
    ask,
    ask_human,
    check_in_approved,
    tool,
)
from footprint_core.mcp import mock_mcp_client
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run

YES = check_in_approved(by="dana")


class Looks:
    """A rule and a checker at every moment, which keeps what each was handed and may ask about a call."""

    name = "looks"

    def __init__(self, *, asks: bool = False) -> None:
        self.handed: list[tuple[str, Any]] = []
        self._asks = asks

    def _keep(self, moment: str, context: Any) -> Any:
        self.handed.append((moment, context))
        return allow()

    def on_message(self, message: MessageContext) -> Any:
        return self._keep(message.phase, message)

    def check(self, asked: ToolCallContext) -> Permission:
        self._keep("permission", asked)
        return Permission(result="allow")

    def on_tool_call(self, asked: ToolCallContext) -> Any:
        self._keep("before-tool", asked)
        return ask("may I?") if self._asks else allow()

    def on_tool_result(self, ended: ToolResultContext) -> Any:
        return self._keep("after-tool", ended)

    def credential(self, request: CredentialRequest) -> Credential:
        self._keep("credential", request)
        return Credential(kind="bearer", secret="s3cret-token")

    def at(self, moment: str) -> list[Any]:
        return [context for at, context in self.handed if at == moment]


async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def looked_at(looks: Looks, replies: Any, *tools: Any, **options: Any) -> Any:
    builder, model = describe(replies, *(tools or (pay,)), **options)
    return builder.tool_middleware(looks).message_middleware(looks).permission(looks), model


def _names(context: Any) -> set[str]:
    return {name for name in dir(context) if not name.startswith("_")}


def test_a_rule_is_told_exactly_what_the_law_lists_and_nothing_more() -> None:
    looks = Looks()
    builder, _ = looked_at(looks, [reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")])
    run(builder.build().run("go", identity={"user": "ada"}))
    of_call = {"tool_name", "tool_source", "tool_call_id", "iteration", "args", "history", "identity"}
    of_message = {"phase", "content", "history", "identity"}
    assert {moment: _names(context) for moment, context in looks.handed} == {
        "input": of_message,
        "permission": of_call,
        "before-tool": of_call,
        "after-tool": of_call | {"result", "failed"},
        "output": of_message,
    }
    ada = {"user": "ada"}
    for moment in ("permission", "before-tool", "after-tool"):
        (context,) = looks.at(moment)
        assert (context.tool_name, context.tool_source, context.tool_call_id) == ("pay", None, "c1")
        assert (context.iteration, context.args, context.identity) == (1, {"amount": 5}, ada)
    (ended,) = looks.at("after-tool")
    assert (ended.result, ended.failed) == ("paid 5", False)
    (came,), (goes,) = looks.at("input"), looks.at("output")
    assert (came.phase, came.content, came.identity) == ("input", "go", ada)
    assert (goes.phase, goes.content, goes.identity) == ("output", "done", ada)


def test_iterations_are_counted_from_one_and_anew_in_each_turn() -> None:
    looks = Looks()
    calls = [reply(calls=[call(f"c{i}", "pay", {"amount": i})]) for i in range(2)]
    builder, _ = looked_at(looks, [*calls, reply(text="done")] * 2)
    agent = builder.build()

    async def story() -> None:
        await agent.run("go")
        await agent.follow_up("again")

    run(story())
    assert [context.iteration for context in looks.at("before-tool")] == [1, 2, 1, 2]
    assert [context.iteration for context in looks.at("after-tool")] == [1, 2, 1, 2]


async def _of_a_server(name: str, *tools: Any) -> tuple[Tool, ...]:
    client = mock_mcp_client(name, tools=list(tools))
    return client.tools_now()


def test_the_source_is_the_server_a_tool_came_from_and_absent_for_a_tool_of_this_program() -> None:
    async def refund(amount: int) -> str:
        return f"refunded {amount}"

    looks, seen = Looks(), Seen()
    theirs = run(_of_a_server("billing", refund))
    calls = [call("c1", "pay", {"amount": 5}), call("c2", "refund", {"amount": 5})]
    builder, _ = looked_at(looks, [reply(calls=calls), reply(text="done")], pay, *theirs, watch=[seen])
    out = answered(run(builder.build().run("go")))
    for moment in ("permission", "before-tool", "after-tool"):
        assert [context.tool_source for context in looks.at(moment)] == [None, "billing"]
    rows = [row.to_dict() for row in out.decisions if row.tool_name is not None]
    assert {(row["tool_name"], row.get("tool_source")) for row in rows} == {
        ("pay", None),
        ("refund", "billing"),
    }
    for row in rows:
        own = row["tool_name"] == "pay"
        assert ("tool_source" in row) is not own
        assert ('"tool_source"' in json.dumps(row)) is not own
    told = {(getattr(event, "tool_name", None), getattr(event, "tool_source", "")) for event in seen.events}
    assert {("pay", None), ("refund", "billing")} <= told


def test_no_model_can_set_the_source_of_a_call() -> None:
    looks = Looks()
    forged = [
        call("c1", "pay", {"amount": 5, "tool_source": "trusted"}),
        call("c2", "trusted/pay", {"amount": 5}),
        call("trusted:c3", "pay", {"amount": 5}),
    ]
    builder, _ = looked_at(looks, [reply(calls=forged), reply(text="done")])
    out = answered(run(builder.build().run("go")))
    assert [context.tool_source for context in looks.at("before-tool")] == [None] * 3
    assert {row.tool_source for row in out.decisions} == {None}


def sourced(source: str | None, body: Any = pay) -> Tool:
    return msgspec.structs.replace(tool(name="pay")(body), source=source)


async def _ask_and_resume(before: Tool, after: Tool | None, *, rewalk: bool = False) -> Any:
    """Pause on one agent and resume on another; what the rules of both were shown, and the outcome."""
    ledger, looks, again = MemoryLedger(), Looks(asks=True), Looks(asks=rewalk)
    said = [reply(calls=[call("c1", "pay", {"amount": 5})])]
    builder, _ = looked_at(looks, said, before, ledger=ledger)
    paused = await builder.build().run("go")
    tools = () if after is None else (after,)
    builder, model = describe([reply(text="done")], *tools, ledger=ledger)
    builder.tool_middleware(again).message_middleware(again).permission(again)
    answer = {"any": "value"} if isinstance(paused, HumanPause) else YES
    outcome = await builder.build().resume(paused.checkpoint, answer, rewalk=rewalk)
    return paused, outcome, again, model


def test_the_source_of_a_call_is_the_same_before_and_after_a_pause() -> None:
    paused, out, again, _ = run(_ask_and_resume(sourced("billing"), sourced("billing")))
    assert paused.tool_source == "billing"
    assert {context.tool_source for at, context in again.handed if hasattr(context, "tool_source")} == {
        "billing"
    }
    assert [row.tool_source for row in out.decisions if row.tool_name] == ["billing"] * 3


@pytest.mark.parametrize(("before", "after"), [("billing", None), (None, "billing"), ("billing", "other")])
def test_what_a_person_decided_about_the_tool_of_one_source_runs_no_tool_of_another(
    before: str | None, after: str | None
) -> None:
    ran: list[str] = []

    async def other(amount: int) -> str:
        ran.append("the other one")
        return "paid"

    with pytest.raises(ForeignCheckpointError, match="pay"):
        run(_ask_and_resume(sourced(before), sourced(after, other)))
    # Asked again about everything, the question is a new one: the approval was about another tool.
    _, outcome, _, _ = run(_ask_and_resume(sourced(before), sourced(after, other), rewalk=True))
    assert isinstance(outcome, AskPause)
    assert outcome.tool_source == after
    assert ran == []


def test_an_agent_that_lost_the_tool_meanwhile_still_says_where_it_came_from() -> None:
    async def asks(amount: int) -> str:
        ask_human("how much?")

    ledger, looks = MemoryLedger(), Looks()
    said = [reply(calls=[call("c1", "pay", {"amount": 5})])]
    builder, _ = looked_at(looks, said, sourced("billing", asks), ledger=ledger)
    again = Looks()

    async def story() -> Answer:
        paused = await builder.build().run("go")
        assert isinstance(paused, HumanPause)
        assert paused.tool_source == "billing"
        other, _ = describe([reply(text="done")], ledger=ledger)
        other.tool_middleware(again).message_middleware(again)
        return answered(await other.build().resume(paused.checkpoint, 3))

    run(story())
    assert [context.tool_source for context in again.at("after-tool")] == ["billing"]


def _roles(context: Any) -> list[str]:
    """The texts of a history; an assistant turn by how many calls it makes."""
    texts: list[str] = []
    for message in context.history:
        calls = len(message.calls) if isinstance(message, AssistantMessage) else 0
        texts.append(f"calls {calls}" if calls else message.text)
    return texts


def test_the_history_is_the_conversation_up_to_what_is_being_decided() -> None:
    looks = Looks()
    batch = [call("c1", "pay", {"amount": 1}), call("c2", "pay", {"amount": 2})]
    single = [call("c3", "pay", {"amount": 3})]
    replies = [reply(calls=batch), reply(calls=single), reply(text="done"), reply(text="again done")]
    builder, _ = looked_at(looks, replies)
    agent = builder.build()

    async def story() -> None:
        await agent.run("go")
        await agent.follow_up("again")

    run(story())
    first = ["go", "calls 2"]
    second = [*first, "paid 1", "paid 2", "calls 1"]
    expected = [first, [*first, "paid 1"], second]
    for moment in ("permission", "before-tool", "after-tool"):
        assert [_roles(context) for context in looks.at(moment)] == expected
    assert [_roles(context) for context in looks.at("input")] == [[], []]
    assert [_roles(context) for context in looks.at("output")] == [
        [*second, "paid 3"],
        [*second, "paid 3", "done", "again"],
    ]


def test_the_history_keeps_the_same_through_a_pause() -> None:
    looks = Looks(asks=True)
    batch = [call("c1", "pay", {"amount": 1}), call("c2", "pay", {"amount": 2})]
    builder, _ = looked_at(looks, [reply(calls=batch), reply(text="done")])
    agent = builder.build()

    async def story() -> None:
        outcome = await agent.run("go")
        while not isinstance(outcome, Answer):
            outcome = await agent.resume(json.loads(json.dumps(outcome.checkpoint)), YES)

    run(story())
    first = ["go", "calls 2"]
    assert [_roles(context) for context in looks.at("before-tool")] == [first, [*first, "paid 1"]]
    assert [_roles(context) for context in looks.at("after-tool")] == [first, [*first, "paid 1"]]
    assert [_roles(context) for context in looks.at("output")] == [[*first, "paid 1", "paid 2"]]


IDENTITIES: list[Any] = [{"user": "ada", "roles": ["a", {"b": None}]}, {}, [], "", "ada", 0, False, None]


@pytest.mark.parametrize("identity", IDENTITIES)
def test_everybody_is_shown_the_identity_the_caller_gave_on_both_sides_of_a_pause(identity: Any) -> None:
    looks = Looks(asks=True)

    @tool(name="pay", needs="bank")
    async def pays(amount: int, context: ToolContext) -> str:
        looks.handed.append(("tool", context))
        return "paid"

    said = [reply(calls=[call("c1", "pay", {"amount": 1})]), reply(text="done")]
    builder, _ = looked_at(looks, said, pays)
    agent = builder.credentials(looks).build()

    async def story() -> None:
        paused = await agent.run("go", identity=identity)
        assert isinstance(paused, AskPause)
        await agent.resume(json.loads(json.dumps(paused.checkpoint)), YES)

    run(story())
    moments = [
        "input",
        "permission",
        "before-tool",
        "permission",
        "credential",
        "tool",
        "after-tool",
        "output",
    ]
    assert [at for at, _ in looks.handed] == moments
    for at, context in looks.handed:
        assert context.identity == identity, at
        assert type(context.identity) is type(identity), at


def test_an_identity_belongs_to_its_turn_alone() -> None:
    looks = Looks()
    builder, _ = looked_at(looks, [reply(text="one"), reply(text="two"), reply(text="three")])
    agent = builder.build()

    async def story() -> None:
        await agent.run("go", identity="ada")
        await agent.follow_up("again")
        await agent.session().run("other", identity="bob")

    run(story())
    assert [context.identity for context in looks.at("input")] == ["ada", None, "bob"]
    assert [context.identity for context in looks.at("output")] == ["ada", None, "bob"]

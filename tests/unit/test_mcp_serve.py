"""Tools served over MCP: each call of a client meets the rules that were given to the server."""

from __future__ import annotations

from typing import Any

import mcp_types as wire
from mcp import Client

from footprint_core import (
    Credential,
    CredentialRequest,
    ToolContext,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    ask_human,
    before_tool,
    deny,
    static_credentials,
    tool,
)
from footprint_core.events import DecisionFiled, ToolCallEnded, ToolCallStarted
from footprint_core.mcp import mcp_client, mcp_serve
from footprint_core.providers import call, reply
from served import DIALECTS, Ceiling, Dialect, Kept, breaks, read, refund, served
from story import Seen, answered, describe, facts_of, run


@DIALECTS
def test_both_moments_decide_about_a_served_call(mode: Dialect) -> None:
    rule = Ceiling()
    serving = mcp_serve(name="desk", tools=[refund], tool_middleware=[rule])

    async def story() -> None:
        async with Client(serving.server, mode=mode) as client:
            assert [t.name for t in (await client.list_tools()).tools] == ["refund"]
            assert read(await client.call_tool("refund", {"amount": 50})) == (True, "over the ceiling")
            assert rule.results == []
            good = await client.call_tool("refund", {"amount": 5})
            assert read(good) == (False, '{"checked":{"amount":5,"to":"card"}}')

    run(story())
    assert serving.tool_names == ("refund",)
    (ended,) = rule.results
    assert ended.args == {"amount": 5, "to": "card"}
    assert ended.result == {"amount": 5, "to": "card"}
    assert {(c.iteration, len(c.history), c.identity, c.tool_source) for c in rule.calls} == {
        (0, 0, None, None)
    }
    assert (ended.iteration, len(ended.history), ended.identity) == (0, 0, None)


def test_changed_arguments_reach_the_tool_and_a_refused_result_is_withheld() -> None:
    ran: list[object] = []

    @tool(name="get", schema={})
    def get(args: dict[str, Any]) -> object:
        ran.append(args)
        return args

    stamp = before_tool("stamp")(lambda asked: allow({**asked.args, "by": "desk"}, why="stamped"))

    @after_tool("hide")
    def hide(ended: ToolResultContext) -> ToolResultOutcome:
        return deny("not for clients") if ended.args.get("hide") else allow()

    serving = mcp_serve(name="desk", tools=[get], tool_middleware=[stamp, hide])
    assert run(served(serving, "get", {"id": 1})) == (False, '{"id":1,"by":"desk"}')
    assert run(served(serving, "get", {"hide": True})) == (True, "not for clients")
    assert ran == [{"id": 1, "by": "desk"}, {"hide": True, "by": "desk"}]


def test_an_ask_is_refused_by_name_and_nothing_executes() -> None:
    ran: list[object] = []
    asks = before_tool("four-eyes")(lambda _: ask("ok?", detail={"secret": "hunter2"}))

    @tool(name="wipe", needs="disk")
    def wipe() -> None:
        ran.append("wiped")

    asked: list[object] = []

    class Vault:
        def credential(self, request: CredentialRequest, /) -> Credential:
            asked.append(request)
            return Credential(kind="bearer", secret="hunter2")

    serving = mcp_serve(name="desk", tools=[wipe], tool_middleware=[asks], credentials=Vault())
    is_error, text = run(served(serving, "wipe"))
    assert is_error
    assert "four-eyes" in text
    assert "ok?" in text
    assert "hunter2" not in text
    assert ran == []
    assert asked == []


def test_a_tool_that_asks_a_person_while_it_runs_is_answered_and_does_not_pause() -> None:
    def sign() -> object:
        """Needs a signature."""
        return ask_human("sign here")

    rule = Ceiling()
    is_error, text = run(served(mcp_serve(name="desk", tools=[sign], tool_middleware=[rule]), "sign"))
    assert is_error
    assert "sign" in text
    assert [ended.failed for ended in rule.results] == [True]


def test_a_rule_that_raises_or_answers_with_nonsense_refuses() -> None:
    def raises(_: object) -> Any:
        raise LookupError("no table")

    def fabricates(_: object) -> Any:
        return {"kind": "result", "text": "hunter2"}

    for odd, says in ((raises, "no table"), (fabricates, "dict")):
        before, after = before_tool("odd")(odd), after_tool("odd")(odd)
        for rule in (before, after):
            serving = mcp_serve(name="desk", tools=[refund], tool_middleware=[rule])
            is_error, text = run(served(serving, "refund", {"amount": 777}))
            assert is_error
            assert "odd" in text
            assert says in text
            assert "hunter2" not in text
            assert "777" not in text


def test_result_rules_run_for_a_tool_that_raised_and_the_client_gets_what_they_let_through() -> None:
    rule = Ceiling()
    serving = mcp_serve(name="desk", tools=[breaks], tool_middleware=[rule])
    assert run(served(serving, "breaks")) == (True, '{"checked":"kaput"}')
    assert [(ended.failed, ended.result) for ended in rule.results] == [(True, "kaput")]
    assert run(served(mcp_serve(name="desk", tools=[breaks]), "breaks")) == (True, "kaput")


def test_the_rules_of_an_agent_do_not_travel_with_a_tool() -> None:
    never = before_tool("never")(lambda _: deny("never"))
    made = tool(name="get")(lambda: "got")
    builder, _ = describe([reply(text="ok")], made)
    builder.act(before_tool=[never]).build()
    assert run(served(mcp_serve(name="desk", tools=[made]), "get")) == (False, "got")


def test_rows_and_events_of_a_served_call_are_those_of_an_agents_call() -> None:
    ledger, seen, watching = Kept(), Seen(), Seen("agent's")
    rule = Ceiling()
    serving = mcp_serve(name="desk", tools=[refund], tool_middleware=[rule], ledger=ledger, watch=[seen])
    assert run(served(serving, "refund", {"amount": 5})) == (False, '{"checked":{"amount":5,"to":"card"}}')
    calls = [call("x", "refund", {"amount": 5})]
    builder, _ = describe([reply(calls=calls), reply(text="ok")], refund, watch=[watching])
    answer = answered(run(builder.tool_middleware(rule).build().run("go")))

    (run_id,) = ledger.runs
    rows = [facts_of(row) for row in ledger.decisions(run_id)]
    expected = [facts_of(row) for row in answer.decisions]
    assert len(rows) == 2
    for row, other in zip(rows, expected, strict=True):
        assert row.keys() == other.keys()
        assert row["iteration"] == 0
        differing = ("iteration", "tool_call_id", "position")
        assert {k: v for k, v in row.items() if k not in differing} == {
            k: v for k, v in other.items() if k not in differing
        }
    between = watching.types[
        watching.types.index("stream.tool_start") : watching.types.index("stream.tool_end") + 1
    ]
    assert between == ["stream.tool_start", "middleware.decision", "middleware.decision", "stream.tool_end"]
    assert seen.types == ["agent.run_configured", *between, "agent.turn_end"]
    (started,), (ended,) = seen.of(ToolCallStarted), seen.of(ToolCallEnded)
    assert started.tool_call_id == ended.tool_call_id == rows[0]["tool_call_id"]
    assert (ended.status, ended.executed, ended.tool_source) == ("ran", True, None)
    assert [event.row for event in seen.of(DecisionFiled)] == [row["position"] for row in rows]


def test_the_gates_come_in_their_order_around_a_served_call() -> None:
    seen = Seen()

    @tool(name="pay", needs="bank")
    def pay(amount: int, context: ToolContext) -> str:
        assert context.credential is not None
        return f"{amount} with {len(context.credential.secret)}"

    serving = mcp_serve(
        name="desk",
        tools=[pay],
        tool_middleware=[Ceiling()],
        credentials=static_credentials({"bank": "hunter2"}),
        watch=[seen],
    )
    assert run(served(serving, "pay", {"amount": 3})) == (False, '{"checked":"3 with 7"}')
    assert seen.types == [
        "agent.run_configured",
        "stream.tool_start",
        "middleware.decision",
        "credential.requested",
        "credential.acquired",
        "middleware.decision",
        "stream.tool_end",
        "agent.turn_end",
    ]
    assert "hunter2" not in repr(seen.events)


def test_a_credential_that_cannot_be_had_blocks_the_call() -> None:
    pay = tool(name="pay", needs="bank")(lambda: "paid")
    serving = mcp_serve(name="desk", tools=[pay], credentials=static_credentials({}))
    is_error, text = run(served(serving, "pay"))
    assert is_error
    assert "bank" in text


def test_wrong_arguments_are_answered_by_path_and_type() -> None:
    seen = Seen()
    serving = mcp_serve(name="desk", tools=[refund], watch=[seen])
    is_error, text = run(served(serving, "refund", {"amount": "hunter2", "who": 1}))
    assert is_error
    assert "amount: expected integer, got string; who: expected no such argument, got number" in text
    assert "hunter2" not in text
    assert [event.status for event in seen.of(ToolCallEnded)] == ["invalid"]


@DIALECTS
def test_a_tool_of_another_server_keeps_its_source_whatever_a_client_says(mode: Dialect) -> None:
    ledger, rule = Kept(), Ceiling()
    origin = mcp_serve(name="origin", tools=[tool(name="far", schema={})(lambda args: "from afar")])

    async def story() -> None:
        async with mcp_client("origin", origin.server) as client:
            serving = mcp_serve(
                name="desk", tools=[*await client.tools(), refund], tool_middleware=[rule], ledger=ledger
            )
            assert serving.tool_names == ("refund", "far")
            liar = wire.Implementation(name="own", version="1")
            async with Client(serving.server, mode=mode, client_info=liar) as outside:
                assert [t.name for t in (await outside.list_tools()).tools] == ["refund", "far"]
                said: Any = {"tool_source": "own", "source": "own"}
                got = await outside.call_tool("far", dict(said), meta=said)
                assert read(got) == (False, '{"checked":"from afar"}')
                await outside.call_tool("refund", {"amount": 1}, meta=said)

    run(story())
    assert [c.tool_source for c in rule.calls] == ["origin", None]
    far, own = ledger.runs
    assert {row.tool_source for row in ledger.decisions(far)} == {"origin"}
    assert all("tool_source" not in row.to_dict() for row in ledger.decisions(own))


def test_call_ids_are_unique_on_a_server() -> None:
    rule = Ceiling()
    serving = mcp_serve(name="desk", tools=[refund], tool_middleware=[rule])
    for _ in range(3):
        run(served(serving, "refund", {"amount": 1}))
    assert len({c.tool_call_id for c in rule.calls}) == 3

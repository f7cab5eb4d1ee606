"""Tools of this program and of servers on one agent: their names, their order, and where they come from."""

from __future__ import annotations

import asyncio
from itertools import permutations
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer

from footprint_core import (
    BuilderError,
    ShadowedToolError,
    Tool,
    ToolCallContext,
    ToolMessage,
    ToolOutcome,
    allow,
    before_tool,
    deny,
    tool,
)
from footprint_core.mcp import mcp_client, mock_mcp_client
from footprint_core.providers import call, reply
from story import answered, describe, run


def named(name: str) -> Tool:
    return tool(name=name)(lambda: name)


def of(server: str, *names: str) -> tuple[Tool, ...]:
    return mock_mcp_client(server, tools=[named(name) for name in names]).tools_now()


@pytest.mark.parametrize(
    "tools",
    [
        (named("find"), named("find")),
        (named("find"), *of("crm", "find")),
        (*of("crm", "find"), named("find")),
        (*of("crm", "find"), *of("shop", "find")),
        (*of("crm", "find"), *of("crm", "find")),
    ],
    ids=["own", "own and a server's", "a server's and own", "two servers'", "one server's twice"],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_two_tools_of_one_name_are_refused_when_they_are_given(tools: Any, at_once: bool) -> None:
    builder, _ = describe([])
    *first, last = tools
    if not at_once:
        builder.tool(*first)
        tools = (last,)
    with pytest.raises(ShadowedToolError, match="find") as caught:
        builder.tool(*tools)
    assert isinstance(caught.value, BuilderError)
    assert caught.value.tool == "find"


def test_names_that_differ_in_case_are_two_names() -> None:
    builder, model = describe([reply(text="done")], named("find"), named("Find"))
    answered(run(builder.build().run("go")))
    assert [offer.name for offer in model.requests[0].tools] == ["find", "Find"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_own_tools_are_offered_ahead_of_those_of_servers_each_in_the_order_given(order: Any) -> None:
    groups = [(named("z"), named("a")), of("crm", "y", "b"), of("shop", "x", "c")]
    builder, model = describe([reply(text="done")])
    for index in order:
        builder.tool(*groups[index])
    answered(run(builder.build().run("go")))
    servers = [tool.name for index in order if index for tool in groups[index]]
    assert [offer.name for offer in model.requests[0].tools] == ["z", "a", *servers]


@before_tool("not-in-production")
def not_in_production(asked: ToolCallContext) -> ToolOutcome:
    return deny("not in production") if asked.tool_source == "prod" else allow()


@pytest.mark.parametrize("name", ["prod", "staging"])
def test_a_rule_about_a_server_is_tested_before_there_is_one(name: str) -> None:
    server = MCPServer("what it calls itself")

    @server.tool()
    def sell(what: str) -> str:
        """Sell."""
        return f"sold {what}"

    def mocked(what: str) -> str:
        """Sell."""
        return f"sold {what}"

    async def played(tools: tuple[Tool, ...]) -> tuple[list[str | None], list[Any], str]:
        calls = [call("c1", "sell", {"what": "tea"})]
        builder, model = describe([reply(calls=calls), reply(text="done")], *tools)
        answer = answered(await builder.act(before_tool=[not_in_production]).build().run("go"))
        (text,) = [m.text for m in model.requests[-1].messages if isinstance(m, ToolMessage)]
        rows = [(row.tool_source, row.outcome) for row in answer.decisions]
        return [one.source for one in tools], rows, text

    async def story() -> None:
        mock = await played(await mock_mcp_client(name, tools=[tool(name="sell")(mocked)]).tools())
        async with mcp_client(name, server) as client:
            real = await played(await client.tools())
        assert mock[:2] == real[:2] == ([name], [(name, "deny" if name == "prod" else "allow")])
        if name == "prod":
            assert mock[2] == real[2] == "not in production"
        else:
            assert "sold tea" in mock[2]
            assert "sold tea" in real[2]

    run(story())


def test_a_tool_keeps_its_own_description_when_a_mock_stamps_it() -> None:
    ran: list[str] = []

    @tool(name="pay", schema={"properties": {"n": {}}}, needs="bank", check_in="always", idempotent=True)
    async def pay(args: dict[str, Any]) -> None:
        """Pay."""
        ran.append("paid")

    (stamped,) = mock_mcp_client("crm", tools=[pay]).tools_now()
    kept = ("name", "description", "schema", "keys", "needs", "check_in", "is_async", "idempotent")
    assert all(getattr(stamped, field) == getattr(pay, field) for field in kept)
    assert (stamped.source, pay.source) == ("crm", None)
    body: Any = stamped.body
    asyncio.run(body(args={}))
    assert ran == ["paid"]

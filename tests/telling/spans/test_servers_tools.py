"""Tools of an MCP server: one span a call, which says so; what the server's own parts trace hangs below."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import mcp_types as wire

from footprint_core import Agent, before_tool, deny
from footprint_core.mcp import mcp_client, mcp_serve
from footprint_core.providers import Scripted, call, reply
from served import refund, served
from shop import Shop, answers_ok, listed
from story import answered, run
from traced import Traced

TESTS = Path(__file__).parents[2]


async def shopping(traced: Traced, shop: Shop, *, denied: bool = False) -> None:
    async with mcp_client("billing", shop.server) as client:
        model = Scripted([reply(calls=[call("c1", "look", {})]), reply(text="done")])
        builder = Agent.create(provider=model, model="m", name="refunds").tool(*await client.tools())
        if denied:
            builder.act(before_tool=[before_tool("closed")(lambda _: deny("no"))])
        answered(await builder.watch(traced.watcher).build().run("go"))


def test_a_call_of_a_server_is_one_span_that_says_how_it_came() -> None:
    traced, shop = Traced(), Shop(listed("look"), look=answers_ok)
    run(shopping(traced, shop))
    assert traced.tree() == [["invoke_agent refunds", "chat m", "execute_tool look", "chat m"]]
    told = traced.said("execute_tool look")
    assert (told["footprint.tool.source"], told["mcp.method.name"]) == ("billing", "tools/call")
    assert (told["gen_ai.tool.name"], told["gen_ai.tool.type"]) == ("look", "function")


def test_of_a_call_that_was_denied_nothing_went_to_the_server() -> None:
    traced, shop = Traced(), Shop(listed("look"), look=answers_ok)
    run(shopping(traced, shop, denied=True))
    told = traced.said("execute_tool look")
    assert told["footprint.tool.source"] == "billing"
    assert "mcp.method.name" not in told
    assert shop.calls == []


def test_a_tool_of_the_program_has_no_source_and_came_over_nothing() -> None:
    traced = Traced()

    def look() -> str:
        """Look up."""
        return "found"

    model = Scripted([reply(calls=[call("c1", "look", {})]), reply(text="done")])
    agent = Agent.create(provider=model, model="m", name="refunds").tool(look).watch(traced.watcher).build()
    answered(run(agent.run("go")))
    assert not [name for name in traced.said("execute_tool look") if "source" in name or "mcp" in name]


def test_a_call_of_a_client_is_a_run_of_the_server_with_one_call() -> None:
    traced = Traced()
    serving = mcp_serve(name="desk", tools=[refund], watch=[traced.watcher])
    run(served(serving, "refund", {"amount": 3}))
    assert traced.tree() == [["invoke_agent desk", "execute_tool refund"]]


GLOBAL = """
from opentelemetry import trace
from story import run
from telling.spans.test_servers_tools import Shop, answers_ok, listed, shopping
from traced import Traced

traced = Traced()
trace.set_tracer_provider(traced.provider)
run(shopping(traced, Shop(listed("look"), look=answers_ok)))
import json
print(json.dumps(traced.tree()))
"""


def test_the_spans_of_the_official_client_hang_below_the_call() -> None:
    # In a process of its own, since a global provider can never be taken back.
    done = subprocess.run(
        [sys.executable, "-c", GLOBAL],
        env={"PYTHONPATH": f"{TESTS}:{TESTS.parent}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tree = json.loads(done.stdout)
    mine = [one for one in tree if one[0] == "invoke_agent refunds"]
    assert mine == [["invoke_agent refunds", "chat m", ["execute_tool look", "tools/call look"], "chat m"]]


def test_what_a_server_says_is_in_no_span() -> None:
    async def secret(_args: object) -> wire.CallToolResult:
        return wire.CallToolResult(content=[wire.TextContent(text="PLANTED")], is_error=True)

    traced, shop = Traced(), Shop(listed("look", {"type": "object", "title": "PLANTED"}), look=secret)
    run(shopping(traced, shop))
    assert "PLANTED" not in str([span.to_json() for span in traced.spans])
    assert traced.said("execute_tool look")["footprint.tool.status"] == "failed"

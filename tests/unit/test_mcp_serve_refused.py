"""What is not served, and what a client gets when nothing goes right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client

from footprint_core import (
    Batch,
    BuilderError,
    LedgerWriteError,
    MissingHookError,
    Receipt,
    ShadowedToolError,
    allow,
    before_tool,
    on_message,
    tool,
)
from footprint_core.mcp import mcp_serve, mock_mcp_client
from served import DIALECTS, Ceiling, Dialect, Kept, read, refund, served
from story import Seen, run

WIPE = tool(name="wipe", check_in="always")(lambda: 1)
SOMETIMES = tool(name="wipe", check_in=lambda args: False)(lambda: 1)
NEEDY = tool(name="pay", needs="bank")(lambda: 1)
ON_MESSAGE: Any = on_message("talk")(lambda _: allow())
CALL = before_tool("once")(lambda _: allow())


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"tools": []}, BuilderError, "nothing to serve"),
        ({"tools": [refund, tool(name="refund")(lambda: 1)]}, ShadowedToolError, "refund"),
        ({"tools": [refund, *mock_mcp_client("far", [refund]).tools_now()]}, ShadowedToolError, "refund"),
        ({"tools": [refund, WIPE]}, BuilderError, "wipe demands a person's consent"),
        ({"tools": [SOMETIMES]}, BuilderError, "wipe demands a person's consent"),
        ({"tools": [NEEDY]}, BuilderError, "pay needs a credential for bank"),
        ({"tools": refund}, BuilderError, "takes a list"),
        ({"tools": [object]}, BuilderError, "class object"),
        ({"name": " "}, BuilderError, "not blank"),
        ({"tool_middleware": [ON_MESSAGE]}, MissingHookError, "talk"),
        ({"tool_middleware": [CALL, CALL]}, BuilderError, "twice"),
        ({"tool_middleware": [CALL, before_tool("once")(lambda _: allow())]}, BuilderError, "two rules"),
        ({"tool_middleware": [before_tool(" ")(lambda _: allow())]}, BuilderError, "name"),
        ({"tool_middleware": CALL}, BuilderError, "takes a list"),
        ({"watch": [object()]}, BuilderError, "id"),
        ({"ledger": object()}, BuilderError, "ledger"),
        ({"credentials": object()}, BuilderError, "credential"),
    ],
)
def test_what_cannot_be_served_is_refused_at_once(
    wrong: dict[str, Any], error: type[BuilderError], says: str
) -> None:
    with pytest.raises(error, match=says):
        mcp_serve(**{"name": "desk", "tools": [refund], **wrong})


@DIALECTS
def test_an_unknown_tool_is_an_error_that_names_it_and_meets_no_rule(mode: Dialect) -> None:
    rule, ledger, seen = Ceiling(), Kept(), Seen()
    serving = mcp_serve(name="desk", tools=[refund], tool_middleware=[rule], ledger=ledger, watch=[seen])

    async def story() -> None:
        async with Client(serving.server, mode=mode) as client:
            is_error, text = read(await client.call_tool("wipe", {}))
            assert is_error
            assert "wipe" in text

    run(story())
    assert (rule.calls, ledger.runs, seen.events) == ([], [], [])


class Full(Kept):
    """A ledger that takes no appends, after so many."""

    def __init__(self, takes: int) -> None:
        super().__init__()
        self.takes = takes

    def append_inline(self, batch: Batch, /) -> Receipt:
        self.takes -= 1
        if self.takes < 0:
            raise LedgerWriteError("hunter2")
        return super().append_inline(batch)


@pytest.mark.parametrize("takes", [0, 1, 2])
def test_a_ledger_that_fails_is_an_answer_and_what_is_not_on_record_does_not_run(takes: int) -> None:
    ran: list[object] = []
    get = tool(name="get")(lambda: ran.append("ran"))
    serving = mcp_serve(name="desk", tools=[get], ledger=Full(takes))

    async def story() -> None:
        async with Client(serving.server) as client:
            for _ in range(2):
                is_error, text = read(await client.call_tool("get", {}))
                assert is_error
                assert "get failed in the server" in text
                assert "hunter2" not in text

    run(story())
    assert ran == ([] if takes < 2 else ["ran"])


@pytest.mark.parametrize(
    "error", [SystemExit, GeneratorExit, StopIteration, asyncio.CancelledError, MemoryError]
)
@DIALECTS
def test_whatever_a_tool_or_a_rule_raises_the_server_goes_on(
    mode: Dialect, error: type[BaseException]
) -> None:
    def raises(*_: object) -> Any:
        raise error("odd")

    async def in_the_loop() -> None:
        raise error("odd")

    plain, rule = tool(name="plain", inline=True)(lambda: raises()), before_tool("odd")(raises)  # noqa: PLW0108
    tools: list[Any] = [plain, tool(name="thread")(lambda: raises()), in_the_loop, refund]  # noqa: PLW0108
    serving = mcp_serve(name="desk", tools=tools)
    ruled = mcp_serve(name="desk", tools=[refund], tool_middleware=[rule])

    async def story() -> None:
        async with Client(serving.server, mode=mode) as client:
            for name in ("plain", "thread", "in_the_loop"):
                assert read(await client.call_tool(name, {}))[0]
            assert read(await client.call_tool("refund", {"amount": 1}))[0] is False
        async with Client(ruled.server, mode=mode) as client:
            for _ in range(2):
                assert read(await client.call_tool("refund", {"amount": 1}))[0]

    run(story())


def deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {"in": inner}
    return inner


@pytest.mark.parametrize(
    "args", [deep(90), {"n": 10**300}, {"text": "\ud800"}, {"": {"": None}}, {"args": 1, "self": 2}]
)
def test_odd_arguments_are_answered(args: dict[str, Any]) -> None:
    size: Callable[[dict[str, Any]], int] = len
    serving = mcp_serve(name="desk", tools=[tool(name="count", schema={})(lambda args: size(args))])  # noqa: PLW0108
    assert run(served(serving, "count", args)) == (False, str(len(args)))

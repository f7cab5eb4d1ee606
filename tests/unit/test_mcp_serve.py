"""Tools served over MCP: each call of a client meets the rules that were given to the server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, Self

import mcp_types as wire
import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server import Server, ServerRequestContext

from footprint_core import (
    Batch,
    BuilderError,
    Credential,
    CredentialRequest,
    LedgerWriteError,
    MemoryLedger,
    MissingHookError,
    Receipt,
    ShadowedToolError,
    ToolCallContext,
    ToolContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    ask_human,
    before_tool,
    deny,
    on_message,
    static_credentials,
    tool,
)
from footprint_core.events import DecisionFiled, ToolCallEnded, ToolCallStarted
from footprint_core.facts import RunConfigured, SegmentEnded, ToolFinished
from footprint_core.mcp import McpServing, mcp_client, mcp_serve, mock_mcp_client
from footprint_core.providers import call, reply
from story import Seen, answered, describe, facts_of, run

Dialect = Literal["auto", "legacy"]
DIALECTS = pytest.mark.parametrize("mode", ["auto", "legacy"])
Answered = tuple[bool, str]


def refund(amount: int, to: str = "card") -> dict[str, object]:
    """Pay it back."""
    return {"amount": amount, "to": to}


def breaks() -> None:
    """Never works."""
    raise LookupError("kaput")


def read(result: wire.CallToolResult) -> Answered:
    """Whether it is an error, and its one text."""
    (block,) = result.content
    assert isinstance(block, wire.TextContent)
    assert result.structured_content is None
    return result.is_error, block.text


async def served(serving: McpServing, name: str, args: dict[str, Any] | None = None) -> Answered:
    """What a client gets of one call."""
    async with Client(serving.server) as client:
        return read(await client.call_tool(name, args))


class Kept:
    """A ledger that knows the runs it has."""

    def __init__(self) -> None:
        self.kept = MemoryLedger()
        self.runs: list[str] = []

    def append_inline(self, batch: Batch, /) -> Receipt:
        if batch.run_id not in self.runs:
            self.runs.append(batch.run_id)
        return self.kept.append_inline(batch)

    async def append(self, batch: Batch, /) -> Receipt:
        return self.append_inline(batch)

    async def pause_standing(self, run_id: str, pause_id: str, /) -> None:
        return None

    def decisions(self, run_id: str, /) -> tuple[Any, ...]:
        return self.kept.decisions(run_id)

    async def close(self) -> None:
        self.runs.append("closed")

    def facts(self, kind: type[Any]) -> list[Any]:
        entries = [entry for run_id in self.runs for entry in self.kept.entries(run_id)]
        return [entry.fact for entry in entries if isinstance(entry.fact, kind)]


class Ceiling:
    """Refuses much, wraps results, and keeps what it was shown."""

    name = "ceiling"

    def __init__(self) -> None:
        self.calls: list[ToolCallContext] = []
        self.results: list[ToolResultContext] = []

    def on_tool_call(self, asked: ToolCallContext, /) -> ToolOutcome:
        self.calls.append(asked)
        return deny("over the ceiling") if asked.args.get("amount", 0) > 10 else allow()

    def on_tool_result(self, ended: ToolResultContext, /) -> ToolResultOutcome:
        self.results.append(ended)
        return allow({"checked": ended.result}, why="wrapped")


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


class Tapped:
    """A stream whose messages are kept as the bytes a transport would write."""

    def __init__(self, stream: Any, passed: list[bytes]) -> None:
        self.stream = stream
        self.passed = passed

    async def receive(self) -> Any:
        return self._kept(await self.stream.receive())

    def __aiter__(self) -> Tapped:
        return self

    async def __anext__(self) -> Any:
        return self._kept(await self.stream.__anext__())

    def _kept(self, item: Any) -> Any:
        self.passed.append(item.message.model_dump_json(by_alias=True, exclude_none=True).encode())
        return item

    async def aclose(self) -> None:
        await self.stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()


@asynccontextmanager
async def tapped(server: Server[Any], passed: list[bytes]) -> AsyncIterator[Any]:
    """A transport to a server, and what the server says on it."""
    async with InMemoryTransport(server) as (received, sent):
        yield Tapped(received, passed), sent


REFUND_SCHEMA = {
    "additionalProperties": False,
    "properties": {
        "amount": {"title": "Amount", "type": "integer"},
        "to": {"title": "To", "type": "string", "default": "card"},
    },
    "required": ["amount"],
    "type": "object",
}


def by_hand() -> Server[Any]:
    """The same tools, served with the official package alone."""

    async def lists(_context: ServerRequestContext[Any], _params: object) -> wire.ListToolsResult:
        nothing = {"additionalProperties": False, "properties": {}, "type": "object"}
        return wire.ListToolsResult(
            tools=[
                wire.Tool(name="refund", description="Pay it back.", input_schema=REFUND_SCHEMA),
                wire.Tool(name="breaks", description="Never works.", input_schema=nothing),
                wire.Tool(name="say", input_schema={"type": "object"}),
            ]
        )

    async def calls(
        _context: ServerRequestContext[Any], params: wire.CallToolRequestParams
    ) -> wire.CallToolResult:
        texts = {
            "refund": '{"amount":5,"to":"card"}',
            "breaks": "kaput",
            "say": str((params.arguments or {}).get("text", "null")),
        }
        block = wire.TextContent(text=texts[params.name])
        return wire.CallToolResult(content=[block], is_error=params.name == "breaks")

    return Server("desk", on_list_tools=lists, on_call_tool=calls)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_without_rules_the_bytes_are_those_of_a_server_without_governance(mode: str) -> None:
    say = tool(name="say", schema={})(lambda args: args.get("text"))
    governed = mcp_serve(name="desk", tools=[refund, breaks, say], ledger=Kept(), watch=[Seen()]).server

    async def bytes_of(server: Server[Any]) -> list[bytes]:
        passed: list[bytes] = []
        async with Client(tapped(server, passed), mode=mode) as client:
            await client.list_tools()
            await client.call_tool("refund", {"amount": 5})
            await client.call_tool("breaks", {})
            await client.call_tool("say", {"text": "ä\n\u2028 </b>"})
            await client.call_tool("say")
        return passed

    ours, theirs = run(bytes_of(governed)), run(bytes_of(by_hand()))
    assert len(ours) == (6 if mode == "legacy" else 5)
    assert ours == theirs


@asynccontextmanager
async def calling(serving: McpServing, mode: Dialect, name: str) -> AsyncIterator[asyncio.Future[Any]]:
    """A call that is on its way."""
    async with Client(serving.server, mode=mode) as client:
        going = asyncio.ensure_future(client.call_tool(name, {}))
        yield going
        with pytest.raises(asyncio.CancelledError):
            await going
        # The session and the server are as good as before.
        assert read(await client.call_tool("refund", {"amount": 1}))[0] is False


@DIALECTS
def test_a_client_that_cancels_ends_an_async_tool_and_the_end_is_on_record(mode: Dialect) -> None:
    ledger = Kept()

    async def story() -> None:
        entered, left = asyncio.Event(), asyncio.Event()

        async def waits() -> None:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.set()

        serving = mcp_serve(name="desk", tools=[waits, refund], ledger=ledger)
        async with calling(serving, mode, "waits") as going:
            await entered.wait()
            going.cancel()
            await left.wait()

    run(story())
    assert [fact.cancelled for fact in ledger.facts(ToolFinished)] == [True, False]
    assert [fact.outcome for fact in ledger.facts(SegmentEnded)] == ["cancelled", "answered"]


@DIALECTS
def test_a_client_that_cancels_is_not_the_end_of_a_tool_in_a_thread(mode: Dialect) -> None:
    ledger = Kept()
    may_end = threading.Event()

    async def story() -> None:
        loop, entered = asyncio.get_running_loop(), asyncio.Event()

        def works() -> str:
            loop.call_soon_threadsafe(entered.set)
            assert may_end.wait(20)
            return "done"

        serving = mcp_serve(name="desk", tools=[works, refund], ledger=ledger)
        async with calling(serving, mode, "works") as going:
            await entered.wait()
            going.cancel()
            for _ in range(20):
                await asyncio.sleep(0)
            assert ledger.facts(ToolFinished) == []
            may_end.set()

    run(story())
    finished = [fact for fact in ledger.facts(ToolFinished) if fact.tool_name == "works"]
    assert [(fact.result, fact.failed) for fact in finished] == [("done", False)]
    assert sorted(fact.outcome for fact in ledger.facts(SegmentEnded)) == ["answered", "cancelled"]


def test_calls_of_several_clients_run_at_the_same_time() -> None:
    async def story() -> None:
        both = threading.Barrier(2)

        def meets(who: str) -> str:
            both.wait(20)
            return who

        serving = mcp_serve(name="desk", tools=[meets])
        one, two = await asyncio.gather(
            served(serving, "meets", {"who": "ada"}), served(serving, "meets", {"who": "bob"})
        )
        assert (one, two) == ((False, "ada"), (False, "bob"))

    run(story())


def test_a_server_without_a_ledger_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(*_: object) -> Receipt:
        raise AssertionError

    monkeypatch.setattr(MemoryLedger, "append_inline", kept)
    seen = Seen()
    serving = mcp_serve(name="desk", tools=[refund], tool_middleware=[Ceiling()], watch=[seen])
    assert run(served(serving, "refund", {"amount": 1}))[0] is False
    assert "middleware.decision" in seen.types


def test_a_server_says_how_its_watchers_do_and_closes_what_it_was_given() -> None:
    class Breaking(Seen):
        def on_event(self, event: Any, /) -> None:
            raise LookupError

    ledger = Kept()

    async def story() -> None:
        async with mcp_serve(name="desk", tools=[refund], ledger=ledger, watch=[Breaking()]) as serving:
            assert (await served(serving, "refund", {"amount": 1}))[0] is False
            (watcher,) = serving.health().watchers
            assert watcher.failures > 0
            assert ledger.runs[-1] != "closed"

    run(story())
    assert ledger.runs[-1] == "closed"


def test_a_served_run_says_that_no_model_asked() -> None:
    ledger = Kept()
    run(served(mcp_serve(name="desk", tools=[refund], ledger=ledger), "refund", {"amount": 1}))
    (configured,) = ledger.facts(RunConfigured)
    assert (configured.agent_name, configured.provider, configured.model) == ("desk", "mcp", "none")


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

"""A secret is where the tool that needs it finds it, and nowhere else."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from mcp import Client

import leaks
from file_ledger import file_bytes, on_file
from footprint_core import (
    Answer,
    AskPause,
    Batch,
    CheckInPause,
    Credential,
    CredentialRequest,
    FootprintError,
    HumanPause,
    Ledger,
    LedgerWriteError,
    MemoryLedger,
    Outcome,
    PermissionPolicy,
    Receipt,
    Tool,
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
    check_in_approved,
    deny,
    static_credentials,
    summarize_oldest,
    tool,
)
from footprint_core.facts import ToolFinished, Usage
from footprint_core.mcp import mcp_serve
from footprint_core.providers import Scripted, call, reply
from story import Seen, describe, run

SECRET = "s3cret-0b1f-canary"
YES = check_in_approved(by="dana")
OVER = Usage(input=9999, output=5)


class QuotingError(Exception):
    """Quotes what it was called with, as errors of clients do."""

    def __init__(self, request: dict[str, str]) -> None:
        self.request = request
        super().__init__(request)


class Shop:
    """Everything a tool can do with the secret it was given, and what an agent made of it."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self.shown: list[object] = []

    def tools(self) -> tuple[Tool, ...]:
        def secret(context: ToolContext) -> str:
            assert context.credential is not None
            self.held.append(context.credential.secret)
            return context.credential.secret

        @tool(name="says", needs="bank")
        async def says(context: ToolContext) -> object:
            """Gives it back, everywhere."""
            found = secret(context)
            return {found: found, "headers": [f"Bearer {found}", {"deep": [found, 1, None]}]}

        @tool(name="plain", needs="bank")
        def plain(context: ToolContext) -> str:
            """Gives it back as its text."""
            return f"called with {secret(context)}"

        @tool(name="raises", needs="bank")
        async def raises(context: ToolContext) -> None:
            """Raises an error that quotes it."""
            found = secret(context)
            error = QuotingError({"authorization": f"Bearer {found}"})
            error.add_note(found)
            raise error from ValueError(found)

        @tool(name="stops", needs="bank")
        def stops(context: ToolContext) -> None:
            """Raises an unusual one, in a thread."""
            raise StopIteration(secret(context))

        @tool(name="hands", needs="bank", check_in="always", evidence=dict)
        async def hands(context: ToolContext) -> object:
            """Gives back everything it was told."""
            secret(context)
            return [context, context.credential, {"context": context}, repr(context), str(context.credential)]

        @tool(name="asks", needs="bank")
        async def asks(context: ToolContext) -> None:
            """Shows it to a person."""
            found = secret(context)
            ask_human(f"Use {found}?", **{found: [found]})

        return says, plain, raises, stops, hands, asks


@after_tool("look")
def look(ended: ToolResultContext) -> ToolResultOutcome:
    # A rule copies a result into a reason, a replacement or a denial.
    if ended.tool_name == "plain":
        return allow(["changed", ended.result], why=f"it said {ended.result}")
    return deny(f"refused: {ended.result}") if ended.tool_name == "hands" else allow()


@before_tool("four-eyes")
def four_eyes(asked: ToolCallContext) -> ToolOutcome:
    return ask("Really?", detail=asked.args) if asked.tool_name == "says" else allow()


def everything(outcome: Outcome) -> Iterator[str]:
    """What a caller is given, as text: its checkpoint as JSON too."""
    yield repr(outcome)
    if not isinstance(outcome, Answer):
        yield json.dumps(outcome.checkpoint)


class Played:
    """Two turns of an agent over every tool of the shop."""

    def __init__(self, ledger: Ledger, *, parallel: bool) -> None:
        self.shop, self.seen, self.ledger = Shop(), Seen(), ledger
        tools = self.shop.tools()
        calls = [call(f"c{n}", made.name, {}) for n, made in enumerate(tools)]
        self.summarizer = Scripted([reply(text="short")] * 9)
        said = [
            reply(calls=calls, usage=OVER),
            reply(calls=calls[1:3], usage=OVER),
            reply(text="done", usage=OVER),
            reply(text="bye", usage=OVER),
        ]
        builder, self.model = describe(
            said, *tools, watch=[self.seen], ledger=ledger, parallel_tools=parallel, keep_last_tool_results=0
        )
        builder.window(
            summarize_oldest(threshold_tokens=1, keep_recent_turns=1, summarizer=self.summarizer, model="s")
        )
        builder.permission(PermissionPolicy.from_roles({"all": [made.name for made in tools]}, role="all"))
        builder.credentials(static_credentials({"bank": SECRET}))
        self.agent = builder.act(before_tool=[four_eyes], after_tool=[look]).build()
        self.told: list[str] = []

    async def go(self) -> None:
        outcome = await self.agent.run("go")
        kinds: list[type[Any]] = []
        while not isinstance(outcome, Answer):
            kinds.append(type(outcome))
            self.told.extend(everything(outcome))
            answer = "fine" if isinstance(outcome, HumanPause) else YES
            checkpoint = json.loads(json.dumps(outcome.checkpoint))
            outcome = await self.agent.resume(checkpoint, answer)
        assert kinds == [AskPause, CheckInPause, HumanPause]
        self.told.extend(everything(outcome))
        self.told.extend(everything(await self.agent.follow_up("and?")))
        self.runs = {event.run_id for event in self.seen.events}

    def requests(self) -> list[str]:
        sent = [*self.model.requests, *self.summarizer.requests]
        return [repr(msgspec.to_builtins((one.system, one.messages[:], one.tools))) for one in sent]


@pytest.mark.parametrize("parallel", [False, True])
def test_a_secret_is_nowhere_but_with_its_tool(
    parallel: bool, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    ledger = MemoryLedger()
    played = Played(ledger, parallel=parallel)
    run(played.go())
    # The tools had it, each time; what follows has not.
    assert played.shop.held == [SECRET] * 8
    entries = [entry for run_id in played.runs for entry in ledger.entries(run_id)]
    rows = [row for run_id in played.runs for row in ledger.decisions(run_id)]
    swept = {
        "events": [repr(event) for event in played.seen.events],
        "events as JSON": [msgspec.json.encode(event).decode() for event in played.seen.events],
        "entries": [msgspec.json.encode(entry.fact).decode() for entry in entries],
        "rows": [json.dumps(row.to_dict()) for row in rows],
        "outcomes and checkpoints": played.told,
        "requests": played.requests(),
        "logs": [caplog.text, *map(repr, caplog.records)],
        "streams": list(capfd.readouterr()),
    }
    for where, texts in swept.items():
        assert texts, where
        assert not [text for text in texts if SECRET in text], where
    # What stands in its place is seen to have been there.
    results = [entry.fact.result for entry in entries if isinstance(entry.fact, ToolFinished)]
    assert results.count("called with [credential]") == 2
    assert {"[credential]", "headers"} in [set(result) for result in results if isinstance(result, dict)]


def test_no_byte_of_a_ledger_file_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def story() -> Played:
        ledger = on_file(path)
        played = Played(ledger, parallel=False)
        await played.go()
        await ledger.close()
        return played

    assert run(story()).shop.held
    found = file_bytes(path)
    assert b"[credential]" in found
    assert SECRET.encode() not in found


class Leaky:
    """A provider whose errors quote what it holds."""

    def __init__(self, *, is_async: bool) -> None:
        self._is_async = is_async

    def credential(self, request: CredentialRequest, /) -> Any:
        if self._is_async:
            return self._later(request)
        raise QuotingError({"key": SECRET}) from KeyError(SECRET)

    async def _later(self, request: CredentialRequest) -> Credential:
        raise QuotingError({"key": SECRET}) from KeyError(SECRET)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_provider_that_raises_an_error_which_holds_it_is_quoted_nowhere(
    is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ledger, seen, shop = MemoryLedger(), Seen(), Shop()
    builder, model = describe(
        [reply(calls=[call("c1", "plain", {})]), reply(text="done")],
        *shop.tools(),
        ledger=ledger,
        watch=[seen],
    )
    outcome = run(builder.credentials(Leaky(is_async=is_async)).build().run("go"))
    assert shop.held == []
    texts = [
        *everything(outcome),
        repr(seen.events),
        repr([entry.fact for entry in ledger.entries(outcome.run_id)]),
        repr([one.messages[:] for one in model.requests]),
        caplog.text,
    ]
    assert [text for text in texts if SECRET in text] == []
    assert any("QuotingError" in text for text in texts)


class FullBehindTheTool(MemoryLedger):
    """A ledger that does not take what a tool did."""

    def append_inline(self, batch: Batch, /) -> Receipt:
        if any(isinstance(entry.fact, ToolFinished) for entry in batch.entries):
            raise LedgerWriteError("The disk is full; make room.")
        return super().append_inline(batch)


@pytest.mark.parametrize("name", ["says", "plain", "raises", "stops"])
@pytest.mark.parametrize("parallel", [False, True])
def test_no_error_of_the_product_holds_it_nor_a_frame_of_its_traceback(
    name: str, parallel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever shows a frame shows the repr of a credential, which hides its secret.
    monkeypatch.setattr(leaks, "_ATOMS", (*leaks._ATOMS, Credential))
    shop = Shop()
    calls = [call("c1", name, {}), call("c2", name, {})]
    builder, _ = describe(
        [reply(calls=calls)], *shop.tools(), ledger=FullBehindTheTool(), parallel_tools=parallel
    )
    agent = builder.credentials(static_credentials({"bank": SECRET})).act(after_tool=[look]).build()
    with pytest.raises(FootprintError) as caught:
        run(agent.run("go"))
    assert shop.held
    assert leaks.leaks(caught.value, SECRET) == []


def test_a_client_of_a_server_is_not_told_it() -> None:
    shop = Shop()
    served = [made for made in shop.tools() if made.check_in is None]
    serving = mcp_serve(name="desk", tools=served, credentials=static_credentials({"bank": SECRET}))

    async def story() -> list[str]:
        async with Client(serving.server) as client:
            return [repr(await client.call_tool(made.name, {})) for made in served]

    texts = run(story())
    assert len(shop.held) == len(texts) == 5
    assert [text for text in texts if SECRET in text] == []


def test_a_credential_shows_its_kind_and_is_copied_nowhere() -> None:
    credential = Credential(kind="bearer", secret=SECRET)
    context = ToolContext(
        run_id="r", iteration=1, call_id="c", idempotency_key="r:1", identity=None, credential=credential
    )
    for text in (repr(credential), str(credential), f"{credential!r:>60}", repr(context), repr([credential])):
        assert "bearer" in text
        assert SECRET not in text
    for copies in (copy.copy, copy.deepcopy, pickle.dumps, msgspec.json.encode, msgspec.to_builtins):
        with pytest.raises(TypeError) as caught:
            copies(credential)
        assert SECRET not in str(caught.value)
    assert not hasattr(credential, "__dict__")
    for name in ("secret", "kind"):
        with pytest.raises(AttributeError):
            setattr(credential, name, "another")
    assert credential.secret == SECRET

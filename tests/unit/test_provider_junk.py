"""What a provider hands over is looked at before anything is made of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from footprint_core import (
    AskPause,
    CheckInPause,
    MemoryLedger,
    ProviderError,
    ToolCallContext,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    tool,
)
from footprint_core.events import ModelCallEnded, TurnEnded
from footprint_core.facts import ModelReplied, SegmentEnded, Usage
from footprint_core.messages import ToolCall
from footprint_core.providers import Completed, Whole, call, reply
from footprint_observe import SqliteLedger
from story import Seen, answered, describe, run

ODD: Any = None


@pytest.mark.parametrize(
    "completed",
    [
        Completed(tool_calls=(ToolCall(id=ODD, name="act", args_json="{}"),)),
        Completed(tool_calls=(ToolCall(id="c", name=ODD, args_json="{}"),)),
        Completed(tool_calls=(ToolCall(id="c", name="act", args_json=ODD),)),
        Completed(text="a", usage=Usage(input=ODD, output=1)),
        Completed(text="a", usage="much"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        Completed(text="a", response_id=7),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_reply_with_a_part_that_is_none_is_an_error_of_the_provider(completed: Completed) -> None:
    seen = Seen()
    builder, _ = describe([completed], watch=[seen])
    with pytest.raises(ProviderError):
        run(builder.build().run("go"))
    assert [event.outcome for event in seen.of(TurnEnded)] == ["failed"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [("msg_01/a:b@c+d.e-f", "msg_01/a:b@c+d.e-f"), ("\ud800", None), ("x" * 201, None), ("a b", None)],
)
def test_a_name_of_a_provider_is_told_when_no_sentence_fits_in_it(given: str, expected: str | None) -> None:
    seen = Seen()
    completed = Completed(text="a", response_id=given, response_model=given)
    builder, _ = describe([completed], watch=[seen])
    answered(run(builder.build().run("go")))
    (told,) = seen.of(ModelCallEnded)
    assert (told.response_id, told.response_model) == (expected, expected)


class Word(str):
    """A text of a class of its own."""

    __slots__ = ()


def test_a_text_of_another_class_is_a_text_in_rows_and_events(tmp_path: Path) -> None:
    def act() -> str:
        return "did"

    odd: Any = Word
    ids = {"response_id": odd("id"), "response_model": odd("model"), "stop_reason": odd("max_tokens")}
    calls = [ToolCall(id=odd(id), name=odd("act"), args_json=odd("{}")) for id in ("c", "d")]
    replies = [
        msgspec.structs.replace(reply(calls=calls), **ids),
        msgspec.structs.replace(reply(calls=calls[:1]), **ids),
        reply(text=odd("ok")),
    ]
    seen = Seen()

    async def story() -> Any:
        async with SqliteLedger(tmp_path / "rows.db") as ledger:
            return await describe(replies, act, ledger=ledger, watch=[seen])[0].build().run("go")

    assert answered(run(story())).text == "ok"
    told = [getattr(event, name) for event in seen.events for name in event.__struct_fields__]
    assert {"id", "model", "max_tokens", "act", "c", "d"} <= {one for one in told if type(one) is str}
    assert [one for one in told if isinstance(one, Word)] == []


def test_arguments_with_half_a_character_break_no_pause() -> None:
    @before_tool("gate")
    def gate(call: ToolCallContext) -> Any:
        return ask("?") if call.tool_name == "act" else allow()

    def act() -> str:
        return "did"

    ledger = MemoryLedger()
    half = ToolCall(id="h", name="other", args_json='"\ud800')
    replies = [Completed(tool_calls=(half, call("c", "act", {}))), reply(text="ok")]
    builder, _ = describe(replies, act, ledger=ledger, act={"before_tool": [gate]})
    agent = builder.build()

    async def go() -> None:
        pause = await agent.run("go")
        assert isinstance(pause, AskPause)
        assert answered(await agent.resume(pause.checkpoint, check_in_approved(by="dana"))).text == "ok"

    run(go())
    facts = [entry.fact for entry in ledger.entries(str(agent.last_run_id))]
    assert [fact.outcome for fact in facts if isinstance(fact, SegmentEnded)] == ["paused", "answered"]
    assert any(isinstance(fact, ModelReplied) for fact in facts)


class Asking:
    """A provider that tries to ask a person."""

    name = "asking"

    def reply(self, request: object, /) -> AsyncIterator[Any]:
        ask_human("who?")


@pytest.mark.parametrize("where", ["check_in", "evidence", "schema", "window", "provider"])
def test_only_a_tool_pauses_itself_wherever_else_a_program_tries_to(where: str) -> None:
    def asks(*_: object) -> Any:
        ask_human("who?")

    @(
        tool(
            check_in=asks if where == "check_in" else "always" if where == "evidence" else None,
            evidence=asks if where == "evidence" else None,
        )
        if where in {"check_in", "evidence"}
        else tool
    )
    def act() -> str:
        return "did"

    class Odd:
        name = "odd"
        instruction = ""
        plan = check = staticmethod(asks)

    builder, _ = describe([reply(calls=[call("c", "act", {})]), reply(text="{}")], act)
    odd: Any = Odd()
    if where == "schema":
        outcome = answered(run(builder.output_schema(odd).build().run("go")))
        assert outcome.schema_met is False
    elif where == "window":
        with pytest.raises(Exception, match="odd") as raised:
            run(builder.window(odd).build().run("go"))
        assert type(raised.value).__name__ == "RunError"
    elif where == "provider":
        builder, _ = describe([], act)
        builder._provider = Asking()
        with pytest.raises(ProviderError):
            run(builder.build().run("go"))
    else:
        paused = run(builder.build().run("go"))
        assert isinstance(paused, CheckInPause)


def test_a_reply_in_one_piece_is_given_once() -> None:
    async def read() -> list[Any]:
        return [piece async for piece in Whole(Completed(text="a"))]

    assert [piece.text for piece in run(read())] == ["a"]

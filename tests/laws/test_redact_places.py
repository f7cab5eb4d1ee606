"""What a policy removes is in no place where a ledger can be read; without one it is in each of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from click.testing import CliRunner

from file_ledger import file_bytes, on_file, select
from footprint_core import (
    Answer,
    AskPause,
    MemoryLedger,
    MessageContext,
    MessageOutcome,
    Redactor,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    on_message,
)
from footprint_core.providers import Scripted, call, reply
from footprint_observe import Redaction
from footprint_observe.cli import main
from story import answered, describe, run

TYPED = "canary-typed-51c0"
CARD = "canary-card-9e21"
HELD = "canary-held-7f3b"

POLICY = Redaction.of(
    fields=["before", "after.card", "detail.card", "args.card", "result.card", "result.more.held"]
)
"""Names every value in which the story below puts a canary."""

YES = check_in_approved(by="dana@ops")
Places: TypeAlias = dict[str, str]


@on_message("scrub")
def scrub(message: MessageContext) -> MessageOutcome:
    return (
        allow(message.content.replace(TYPED, "[typed]"), why="scrubbed")
        if TYPED in message.content
        else allow()
    )


@before_tool("tag")
def tag(call: ToolCallContext) -> ToolOutcome:
    return allow({**call.args, "note": "tagged"}, why="tagged")


@before_tool("four-eyes")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    return ask("Charge it?", detail={"card": call.args["card"], "amount": 5})


@after_tool("strip")
def strip(call: ToolResultContext) -> ToolResultOutcome:
    return allow({"charged": True}, why="the card is not for the model")


class Charges:
    """A tool that remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str]] = []

    def tool(self) -> Any:
        def charge(card: str, note: str) -> dict[str, Any]:
            self.given.append((card, note))
            return {"card": card, "more": [{"held": HELD, "n": 1}]}

        return charge


def story(ledger: Any) -> tuple[Any, Scripted, Charges]:
    charges = Charges()
    act: Any = {
        "input": [scrub],
        "before_tool": [tag, four_eyes],
        "after_tool": [strip],
    }
    args = {"card": CARD, "note": ""}
    replies = [reply(calls=[call("c1", "charge", args)]), reply(text="done")]
    builder, model = describe(replies, charges.tool(), act=act, ledger=ledger)
    return builder.build(), model, charges


async def play(agent: Any) -> tuple[AskPause, Answer]:
    pause = await agent.run(f"my name is {TYPED}")
    assert isinstance(pause, AskPause)
    checkpoint = json.loads(json.dumps(pause.checkpoint))
    return pause, answered(await agent.resume(checkpoint, YES))


def of_rows(pause: AskPause, answer: Answer) -> Places:
    return {
        "answer.decisions": str(answer.decisions),
        "answer.decisions as JSON": json.dumps([row.to_dict() for row in answer.decisions]),
        "the rows a pause shows": str(pause.decisions),
        "the rows a checkpoint carries": json.dumps(pause.checkpoint["rows"]),
    }


def in_memory(policy: Redactor) -> Places:
    ledger = MemoryLedger(redact=policy)
    agent, _, _ = story(ledger)
    pause, answer = run(play(agent))
    return {
        **of_rows(pause, answer),
        "entries": str(ledger.entries(answer.run_id)),
        "decisions": str(ledger.decisions(answer.run_id)),
    }


VIEWS = ("decisions", "runs", "tool_calls", "model_calls", "pauses", "window_records", "facts", "vals")


def in_a_file(path: Path, policy: Redactor) -> Places:
    ledger = on_file(path, redact=policy)
    agent, _, _ = story(ledger)
    places: Places = {}

    async def go() -> tuple[AskPause, Answer]:
        async with agent:
            pause, answer = await play(agent)
            places["bytes, while it is open"] = file_bytes(path).decode(errors="replace")
            return pause, answer

    pause, answer = run(go())
    places |= of_rows(pause, answer)
    places["bytes, closed"] = file_bytes(path).decode(errors="replace")
    places["entries"] = str(ledger.entries(answer.run_id))
    places["decisions"] = str(ledger.decisions(answer.run_id))
    for view in VIEWS:
        places[f"SQL: {view}"] = str(select(path, f"SELECT * FROM {view}"))
    for words in (
        ["decisions"],
        ["show", "last"],
        ["timeline", "last"],
        ["why", "c1"],
        ["sql", "select * from decisions"],
    ):
        told = CliRunner().invoke(main, [*words, "--db", str(path)], env={"COLUMNS": "400"})
        assert told.exit_code == 0, told.output
        places[f"footprint {words[0]}"] = told.output
    return places


def holding(places: Places) -> dict[str, list[str]]:
    """The places that hold a canary, and which."""
    found = {name: [c for c in (TYPED, CARD, HELD) if c in text] for name, text in places.items()}
    return {name: canaries for name, canaries in found.items() if canaries}


def test_what_a_policy_removes_is_nowhere_in_memory() -> None:
    assert holding(in_memory(POLICY)) == {}


def test_what_a_policy_removes_is_in_no_byte_view_or_command_of_a_file(tmp_path: Path) -> None:
    assert holding(in_a_file(tmp_path / "l.db", POLICY)) == {}


def test_without_a_policy_every_one_of_these_places_holds_it(tmp_path: Path) -> None:
    kept = in_a_file(tmp_path / "l.db", Redaction.none())
    # Tables without values of this story.
    empty = {f"SQL: {view}" for view in ("runs", "model_calls", "pauses", "window_records", "facts")}
    assert set(kept) - set(holding(kept)) == empty
    in_this_process = in_memory(Redaction.none())
    assert set(holding(in_this_process)) == set(in_this_process)


@pytest.mark.parametrize("policy", [POLICY, Redaction.standard()])
def test_what_runs_gets_what_it_would_get_without_a_policy(tmp_path: Path, policy: Redactor) -> None:
    bare_agent, bare, bare_charges = story(MemoryLedger())
    agent, model, charges = story(on_file(tmp_path / "l.db", redact=policy))
    _, expected = run(play(bare_agent))
    pause, answer = run(play(agent))
    run(agent.close())
    assert [request.messages[:] for request in model.requests] == [r.messages[:] for r in bare.requests]
    assert charges.given == bare_charges.given == [(CARD, "tagged")]
    assert answer.text == expected.text
    assert (pause.args, pause.detail) == ({"card": CARD, "note": "tagged"}, {"card": CARD, "amount": 5})


def test_a_checkpoint_keeps_the_args_that_will_run_and_the_file_never_has_them(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    agent, _, charges = story(on_file(path, redact=POLICY))

    async def go() -> None:
        async with agent:
            pause = await agent.run(f"my name is {TYPED}")
            assert isinstance(pause, AskPause)
            assert pause.checkpoint["call"]["args"] == {"card": CARD, "note": "tagged"}
            assert CARD.encode() not in file_bytes(path)
            answered(await agent.resume(pause.checkpoint, YES))
            assert CARD.encode() not in file_bytes(path)

    run(go())
    assert charges.given == [(CARD, "tagged")]


def test_an_abandoned_pause_leaves_nothing_of_the_call_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    agent, _, _ = story(on_file(path, redact=POLICY))

    async def go() -> None:
        async with agent:
            await agent.run("hello")
            assert agent.abandon_pause() is not None

    run(go())
    assert CARD.encode() not in file_bytes(path)

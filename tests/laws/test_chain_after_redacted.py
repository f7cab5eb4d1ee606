"""A conversation that lost a message is refused; what no request of it holds may be redacted or erased."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from file_ledger import on_file
from footprint_core import (
    Agent,
    Answer,
    MemoryLedger,
    MessageLostError,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    sliding_window,
    summarize_oldest,
)
from footprint_core.facts import Fact
from footprint_core.ledger import Marks
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger
from laws.test_chain_after import PAGE, Ten, read, reads
from laws.test_chain_after_refused import refusal
from story import answered, describe, run


class Masks:
    """Masks one value of one kind of entry, whole or a part of it."""

    def __init__(self, kind: str, field: str, *, held: str = "") -> None:
        self.kind, self.field, self.held = kind, field, held
        self.masked = 0

    def redact(self, fact: Fact) -> tuple[Fact, Marks]:
        value = getattr(fact, self.field, msgspec.UNSET)
        if type(fact).__struct_config__.tag != self.kind or not value or self.held not in str(value):
            return fact, ()
        self.masked += 1
        kept: Any = () if self.field == "calls" else "[redacted]"
        return msgspec.structs.replace(fact, **{self.field: kept}), ((f"{self.field}.0.args", "mask"),)


NEEDED = [
    ("message.taken", "text"),
    ("model.replied", "text"),
    ("model.replied", "calls"),
    ("tool.finished", "result"),
    ("call.answered", "text"),
    ("window.visited", "notice"),
    ("window.visited", "summary"),
    ("budget.exhausted", "instruction"),
    ("output.judged", "text"),
    ("output.judged", "correction"),
    ("segment.ended", "text"),
]
"""Every value that is a message, or a part of one."""

UNNEEDED = [
    ("run.configured", "identity"),
    ("run.configured", "system"),
    ("decision", "before"),
    ("decision", "after"),
    ("decision", "why"),
    ("output.judged", "error"),
    ("tool.intended", "args"),
]
"""Values that no request holds."""


@after_tool("shortens")
def shortens(ended: ToolResultContext) -> ToolResultOutcome:
    return allow("short", why="long") if not ended.failed and ended.args["page"] == 2 else allow()


def agent_of(ledger: Any, said: Any, *, window: str = "") -> tuple[Agent, Scripted]:
    """An agent whose turn leaves every value there is; a window takes some of them out again."""
    builder, model = describe(
        said,
        read,
        ledger=ledger,
        act={"after_tool": [shortens]},
        max_iterations=4,
        keep_last_tool_results=0,
    )
    if window == "notice":
        builder.window(sliding_window(keep_recent_turns=2))
    elif window == "summary":
        small = Scripted([reply(text="in short")] * 9)
        builder.window(summarize_oldest(threshold_tokens=1, keep_recent_turns=2, summarizer=small, model="s"))
    return builder.system("Be exact.").output_schema(Ten(), retries=1).build(), model


async def played(ledger: Any, field: str) -> Answer:
    # The first answer is no ten, and is asked for again; the last calls come when the budget is spent.
    said = [reply(text="ten"), reads(1, 2), reads(0), reads(1), reply(text="10")]
    agent, _ = agent_of(ledger, said, window=field)
    return answered(await agent.run("go", identity={"who": "ada"}))


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize(("kind", "field"), NEEDED)
def test_a_message_that_was_redacted_is_refused_by_run_kind_and_field(
    tmp_path: Path, kind: str, field: str, on_disk: bool
) -> None:
    masks = Masks(kind, field)
    ledger = on_file(tmp_path / "l.db", redact=masks) if on_disk else MemoryLedger(redact=masks)
    run_id = run(played(ledger, field)).run_id
    run(ledger.close())
    assert masks.masked
    refused_for(ledger, run_id, kind, field)


def refused_for(ledger: Any, run_id: str, kind: str, field: str) -> None:
    agent, model = agent_of(ledger, [])
    assert refusal(agent, run_id) == (
        f"The {field} of a {kind} entry of the run {run_id} was redacted or erased, so its conversation "
        "cannot go on from the ledger; begin a new one."
    )
    with pytest.raises(MessageLostError) as lost:
        agent.session(after=run_id)
    assert (lost.value.run_id, lost.value.kind, lost.value.field) == (run_id, kind, field)
    assert model.requests == []


def erase(path: Path, kind: str, field: str) -> int:
    """Take values out of a file as an erasure does; how many."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("DROP TRIGGER vals_no_delete")
        done = connection.execute(
            "DELETE FROM vals WHERE field = ? AND fact_id IN (SELECT id FROM facts WHERE kind = ?)",
            (field, kind),
        )
        connection.commit()
        return done.rowcount
    finally:
        connection.close()


@pytest.mark.parametrize(("kind", "field"), NEEDED)
def test_a_message_that_was_erased_is_refused_by_run_kind_and_field(
    tmp_path: Path, kind: str, field: str
) -> None:
    path = tmp_path / "l.db"
    ledger = on_file(path)
    run_id = run(played(ledger, field)).run_id
    run(ledger.close())
    assert erase(path, kind, field)
    refused_for(ledger, run_id, kind, field)


@pytest.mark.parametrize("how", ["redacted", "erased"])
@pytest.mark.parametrize(("kind", "field"), UNNEEDED)
def test_what_no_request_holds_may_be_gone(tmp_path: Path, kind: str, field: str, how: str) -> None:
    path, masks = tmp_path / "l.db", Masks(kind, field)
    ledger = on_file(path, redact=masks if how == "redacted" else None)

    async def go() -> None:
        run_id = (await played(ledger, field)).run_id
        await ledger.close()
        assert masks.masked if how == "redacted" else erase(path, kind, field)
        agent, model = agent_of(on_file(path), [reply(text="10")])
        answered(await agent.session(after=run_id).follow_up("and?"))
        await agent.close()
        whole = MemoryLedger()
        run_id = (await played(whole, field)).run_id
        other, expected = agent_of(whole, [reply(text="10")])
        answered(await other.session(after=run_id).follow_up("and?"))
        assert model.requests[0].messages == expected.requests[0].messages

    run(go())


@pytest.mark.parametrize(
    ("kind", "field", "held"),
    [("tool.finished", "result", PAGE), ("model.replied", "text", "second"), ("message.taken", "text", "go")],
)
def test_a_message_that_left_the_window_may_be_gone(kind: str, field: str, held: str) -> None:
    masks = Masks(kind, field, held=held)
    pages = [reply(text=text, calls=[call("c", "read", {"page": 1})]) for text in ("first", "second")]
    plain, redacting = MemoryLedger(), MemoryLedger(redact=masks)
    requests: list[Any] = []

    async def go(ledger: MemoryLedger) -> None:
        window = sliding_window(keep_recent_turns=1)
        builder, model = describe(
            [*pages, *[reply(text=f"answer {n}") for n in range(3)]],
            read,
            ledger=ledger,
            keep_last_tool_results=0,
        )
        agent = builder.window(window).build()
        run_id = answered(await agent.run("go")).run_id
        if ledger is redacting:
            # Its first turn has not left yet.
            assert f"The {field} of a {kind} entry" in refusal(agent, run_id)
        run_id = answered(await agent.follow_up("more")).run_id
        run_id = answered(await agent.session(after=run_id).follow_up("and?")).run_id
        requests.append(model.requests[-1].messages)

    for ledger in (plain, redacting):
        run(go(ledger))
    assert masks.masked
    assert requests[0] == requests[1]
    assert held not in [message.text for message in requests[0]]


def test_a_result_that_a_rule_replaced_may_be_gone() -> None:
    masks = Masks("tool.finished", "result", held="'page': 2")
    ledger = MemoryLedger(redact=masks)
    agent, model = agent_of(ledger, [reads(2), reply(text="10"), reply(text="10")])
    run_id = answered(run(agent.run("go"))).run_id
    answered(run(agent.session(after=run_id).follow_up("and?")))
    assert masks.masked
    assert model.requests[-1].messages[2].text == "short"


def test_a_credential_in_a_message_ends_what_can_go_on_from_a_file_and_nothing_else(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    builder, _ = describe([reply(text="fine"), reply(text="noted"), reply(text="well")], ledger=ledger)
    agent = builder.build()

    async def go() -> None:
        first = answered(await agent.run("hello")).run_id
        second = answered(await agent.follow_up("the key is sk-ant-api03-" + "Zx9_" * 8)).run_id
        assert "The text of a message.taken entry" in refusal(agent, second)
        # The session that has it in mind goes on, and so does what came before.
        answered(await agent.session(after=first).follow_up("and?"))
        await agent.close()

    run(go())


def test_entries_read_back_say_what_was_taken_out_of_them(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    for ledger in (
        on_file(path, redact=Masks("segment.ended", "text")),
        MemoryLedger(redact=Masks("segment.ended", "text")),
    ):
        builder, _ = describe([reply(text="fine")], ledger=ledger)
        run_id = answered(run(builder.build().run("hello"))).run_id
        run(ledger.close())
        marks = {e.fact.__struct_config__.tag: e.marks for e in ledger.entries(run_id) if e.marks}
        assert marks == {"segment.ended": (("text.0.args", "mask"),)}
        if isinstance(ledger, SqliteLedger):
            assert erase(path, "message.taken", "text")
            marks = {e.fact.__struct_config__.tag: e.marks for e in ledger.entries(run_id) if e.marks}
            assert marks["message.taken"] == (("text", "erased"),)

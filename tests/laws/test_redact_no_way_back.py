"""Once redacted, a value is given back by nothing: no later row, no view, no replay, no other ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from file_ledger import file_bytes, on_file, select
from footprint_core import (
    AskPause,
    MemoryLedger,
    MessageLostError,
)
from footprint_core.providers import reply
from footprint_observe import Redaction
from laws.test_redact_places import (
    CARD,
    HELD,
    POLICY,
    TYPED,
    YES,
    Charges,
    four_eyes,
    scrub,
    story,
    strip,
    tag,
)
from story import answered, describe, run

CANARIES = (TYPED, CARD, HELD)


def dump(path: Path) -> str:
    """Every table and every view of a file."""
    names = select(path, "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
    assert len(names) >= 8
    return "\n".join(str(select(path, f'SELECT * FROM "{name}"')) for (name,) in names)


def read_back(ledger: Any, *runs: str) -> str:
    """All that a ledger gives of runs, to a program."""
    given = [(ledger.entries(run_id), ledger.decisions(run_id)) for run_id in runs]
    return repr(given) + json.dumps([row.to_dict() for _, rows in given for row in rows])


def held(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


async def conversation(path: Path, policy: Any) -> tuple[list[str], str]:
    """A run that pauses, a resume in an agent of its own, and a turn behind it: the runs, and their rows."""
    agent, _, _ = story(on_file(path, redact=policy))
    async with agent:
        pause = await agent.run(f"my name is {TYPED}")
    assert isinstance(pause, AskPause)
    act: Any = {"input": [scrub], "before_tool": [tag, four_eyes], "after_tool": [strip]}
    said = [reply(text="done"), reply(text="and done")]
    builder, _ = describe(said, Charges().tool(), act=act, ledger=on_file(path, redact=policy))
    async with builder.build() as agent:
        first = answered(await agent.resume(json.loads(json.dumps(pause.checkpoint)), YES))
        second = answered(await agent.follow_up(f"as {TYPED} said"))
    rows = repr((pause.decisions, first.decisions, second.decisions, pause.checkpoint["rows"]))
    return [first.run_id, second.run_id], rows


@pytest.mark.parametrize("later", [POLICY, Redaction.none()], ids=["the same policy", "no policy any more"])
def test_no_later_row_view_or_reading_gives_a_redacted_value_back(tmp_path: Path, later: Any) -> None:
    path = tmp_path / "l.db"
    runs, rows = run(conversation(path, POLICY))
    again = on_file(path, redact=later)
    assert held(rows) == []
    assert held(read_back(again, *runs)) == []
    assert held(dump(path)) == []
    assert held(file_bytes(path).decode(errors="replace")) == []
    run(again.close())
    # The same story without a policy has each of them in all of these places.
    bare = tmp_path / "bare.db"
    runs, rows = run(conversation(bare, Redaction.none()))
    kept = on_file(bare)
    assert held(rows) == [TYPED, CARD, HELD]
    assert held(read_back(kept, *runs)) == held(dump(bare)) == [TYPED, CARD, HELD]
    run(kept.close())


def test_a_checkpoint_carries_redacted_rows_as_they_are_into_a_ledger_that_keeps_everything(
    tmp_path: Path,
) -> None:
    here, there = on_file(tmp_path / "here.db", redact=POLICY), on_file(tmp_path / "there.db")
    agent, _, _ = story(here)

    async def go() -> str:
        async with agent:
            pause = await agent.run(f"my name is {TYPED}")
            assert isinstance(pause, AskPause)
        # What was typed was only ever in a value that is redacted.
        assert TYPED not in json.dumps(pause.checkpoint)
        other, _, _ = story(there)
        async with other:
            await other.resume(pause.checkpoint, YES)
        return pause.run_id

    run_id = run(go())
    rows = {row.middleware: row for row in there.decisions(run_id) if row.imported}
    assert (rows["scrub"].before, dict(rows["scrub"].redacted)["before"]) == ("[redacted]", "mask")
    assert CARD not in repr(rows)
    assert TYPED not in dump(tmp_path / "there.db") + read_back(there, run_id)


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_conversation_that_is_replayed_gives_no_redacted_value_back(tmp_path: Path, on_disk: bool) -> None:
    ledger: Any = on_file(tmp_path / "l.db", redact=POLICY) if on_disk else MemoryLedger(redact=POLICY)
    agent, _, _ = story(ledger)
    builder, model = describe(
        [reply(text="hello"), reply(text="well")], act={"input": [scrub]}, ledger=ledger
    )
    other = builder.build()

    async def go() -> None:
        pause = await agent.run(f"my name is {TYPED}")
        assert isinstance(pause, AskPause)
        await agent.resume(pause.checkpoint, YES)
        # The model was shown the card in its own call, so this conversation cannot be replayed at all.
        with pytest.raises(MessageLostError) as lost:
            agent.session(after=agent.last_run_id)
        assert held(repr(lost.value) + repr(vars(lost.value))) == []
        # This one can; only what the rule made of the message was ever in it.
        run_id = answered(await other.run(f"my name is {TYPED}")).run_id
        answered(await other.session(after=run_id).follow_up("and?"))

    run(go())
    run(ledger.close())
    assert [message.text for message in model.requests[-1].messages] == [
        "my name is [typed]",
        "hello",
        "and?",
    ]

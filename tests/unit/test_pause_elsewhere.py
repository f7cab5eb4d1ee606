"""A pause is answered where the ledger does not have its run; and a key that signs checkpoints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from footprint_core import (
    Agent,
    AskPause,
    ForeignCheckpointError,
    MemoryLedger,
    StaleDecisionError,
    ToolCallContext,
    ToolOutcome,
    Watcher,
    allow,
    ask,
    before_tool,
    check_in_approved,
)
from footprint_core.providers import call, reply
from story import Seen, answered, describe, facts_of, run

YES = check_in_approved(by="dana")


@before_tool("four-eyes")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    return ask("Really?") if call.args["amount"] > 100 else allow()


@before_tool("look")
def look(call: ToolCallContext) -> ToolOutcome:
    return allow(why="seen")


class Pays:
    """A tool that remembers what it paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def pay(self, amount: int) -> int:
        self.paid.append(amount)
        return amount


def story(
    *,
    ledger: MemoryLedger | None = None,
    watch: Sequence[Watcher] = (),
    key: bytes | None = None,
    first: bool = True,
) -> tuple[Agent, Pays]:
    """An agent that asks before it pays; one that goes on with a run elsewhere has only the last reply."""
    pays = Pays()
    replies = [reply(calls=[call("c0", "pay", {"amount": 500})]), reply(text="done")]
    builder, _ = describe(
        replies if first else replies[1:],
        pays.pay,
        ledger=ledger or MemoryLedger(),
        watch=watch,
        act={"before_tool": [four_eyes, look]},
        checkpoint_key=key,
    )
    return builder.build(), pays


async def paused(agent: Agent) -> AskPause:
    outcome = await agent.run("go")
    assert isinstance(outcome, AskPause)
    return outcome


def through_json(checkpoint: Any) -> Any:
    return json.loads(json.dumps(checkpoint))


def test_a_ledger_that_does_not_have_the_run_is_given_its_rows_and_answers_the_pause_once() -> None:
    pause = run(paused(story()[0]))
    ledger = MemoryLedger()
    seen = Seen()
    agent, pays = story(ledger=ledger, watch=[seen], first=False)

    async def go() -> None:
        out = answered(await agent.resume(through_json(pause.checkpoint), YES))
        rows = ledger.decisions(out.run_id)
        assert out.run_id == pause.run_id
        assert rows == out.decisions
        assert [row.imported for row in rows] == [True, False, False]
        assert facts_of(rows[0]) == {**facts_of(pause.decisions[0]), "imported": True, "position": 1}
        assert rows[0].recorded_us == pause.decisions[0].recorded_us
        assert [entry.position for entry in ledger.entries(out.run_id)] == list(
            range(1, len(ledger.entries(out.run_id)) + 1)
        )
        with pytest.raises(StaleDecisionError):
            await agent.session().resume(pause.checkpoint, YES)

    run(go())
    assert pays.paid == [500]
    assert seen.types[:3] == ["agent.run_configured", "pause.resume", "middleware.decision"]


@pytest.mark.parametrize("theirs", [None, b"another key of 16 bytes or more"])
def test_an_agent_with_a_key_refuses_a_checkpoint_that_is_not_signed_with_it(theirs: bytes | None) -> None:
    ours = b"a key of 16 bytes or more"
    checkpoint = run(paused(story(key=theirs)[0])).checkpoint
    agent, pays = story(key=ours, first=False)
    with pytest.raises(ForeignCheckpointError, match="key"):
        run(agent.resume(checkpoint, YES))
    signed = through_json(run(paused(story(key=ours)[0])).checkpoint)
    forged = json.loads(json.dumps(signed).replace('"amount": 500', '"amount": 5'))
    with pytest.raises(ForeignCheckpointError):
        run(agent.resume(forged, YES))
    with pytest.raises(ForeignCheckpointError, match="key"):
        run(agent.resume({**signed, "rows": []}, YES))
    assert pays.paid == []

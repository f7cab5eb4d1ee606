"""What somebody may do to a checkpoint on its way, and who finds it: a ledger, a key, the digest inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from asked import DONE, YES, Rule, Till, adds, asks, edited, paths, pays, posted, seal, until_asked
from footprint_core import ForeignCheckpointError, MemoryLedger, ResumeError, allow, deny, pause_here, tool
from footprint_core.session import Session
from story import answered, run

ROOT = Path(__file__).parents[2]
KEY = b"a key of sixteen bytes and more"


def waiting(till: Till, **options: Any) -> Any:
    """A question that is open."""
    return run(until_asked(till.agent(pays(500), [asks(), adds(-1)], **options), identity={"user": "ada"}))


def elsewhere(**options: Any) -> tuple[Till, Any]:
    """An agent of the same description that goes on with the run, over a ledger of its own."""
    till = Till()
    return till, till.agent(DONE, [asks(), adds(-1)], **options)


FORGED = [
    ("call.tool_name", "wire"),
    ("call.tool_source", "elsewhere"),
    ("call.args", {"amount": 1}),
    ("call.args.amount", 501),
    ("call.args.to", "mallory"),
    ("state.calls.0.args_json", '{"amount": 501}'),
    ("identity.user", "root"),
    ("call.link", 1),
    ("agent_id", "other"),
    ("held", [[1, {}]]),
    ("expires_us", 4102444800000000),
]


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize(("path", "value"), FORGED)
def test_an_edit_under_a_fresh_digest_is_refused_by_a_ledger_that_remembers_the_pause(
    path: str, value: Any, key: bytes | None
) -> None:
    till = Till()
    pause = waiting(till, checkpoint_key=key)
    forged = edited(pause.checkpoint, path, value, sealed=True)
    assert forged != pause.checkpoint
    before = till.facts(pause.run_id)
    again = till.agent(DONE, [asks(), adds(-1)], checkpoint_key=key)
    with pytest.raises(ForeignCheckpointError):
        run(again.resume(forged, YES))
    assert (till.paid, till.facts(pause.run_id)) == ([], before)
    answered(run(again.resume(pause.checkpoint, YES)))


def test_the_refusal_of_an_edit_says_that_the_ledger_recorded_another_checkpoint() -> None:
    till = Till()
    pause = waiting(till)
    forged = edited(pause.checkpoint, "call.args.amount", 501, sealed=True)
    again = till.agent(DONE, [asks(), adds(-1)])
    with pytest.raises(ForeignCheckpointError, match="ledger recorded") as caught:
        run(again.resume(forged, YES))
    assert "501" not in str(caught.value)


async def tried(agent: Any, checkpoint: Any, answer: Any) -> Any:
    """What comes of a resume, its refusal included."""
    try:
        return await agent.resume(checkpoint, answer)
    except ResumeError as refused:
        return refused


def test_with_a_key_any_edit_anywhere_is_refused_also_by_a_ledger_that_never_heard_of_the_run() -> None:
    checkpoint = posted(waiting(Till(), checkpoint_key=KEY).checkpoint)
    till, agent = elsewhere(checkpoint_key=KEY)

    async def go() -> None:
        for path in paths(checkpoint):
            for value in ("edited", ...):
                if path.startswith("signature") and value is ...:
                    continue
                forged = edited(checkpoint, path, value)
                outcome = await tried(agent, forged, YES)
                assert isinstance(outcome, ForeignCheckpointError), path
                if path not in ("salt", "digest"):
                    outcome = await tried(agent, seal(forged), YES)
                    assert isinstance(outcome, ForeignCheckpointError), path

    run(go())
    assert till.paid == []
    assert till.ledger.entries(checkpoint["run_id"]) == ()
    answered(run(agent.resume(checkpoint, YES)))


@pytest.mark.parametrize("theirs", [None, KEY[::-1]])
def test_with_a_key_a_checkpoint_of_another_key_or_of_none_is_refused(theirs: bytes | None) -> None:
    pause = waiting(Till(), checkpoint_key=theirs)
    till, agent = elsewhere(checkpoint_key=KEY)
    with pytest.raises(ForeignCheckpointError, match="not signed with this agent's key"):
        run(agent.resume(pause.checkpoint, YES))
    for signature in (None, "", "é", "00" * 32):
        with pytest.raises(ForeignCheckpointError):
            run(agent.resume({**pause.checkpoint, "signature": signature}, YES))
    assert till.ledger.entries(pause.run_id) == ()


def test_with_neither_the_digest_finds_an_accident_anywhere_but_in_the_rows() -> None:
    checkpoint = posted(waiting(Till()).checkpoint)
    till, agent = elsewhere()

    async def go() -> None:
        for path in paths(checkpoint):
            if path.partition(".")[0] in {"rows", "signature"}:
                continue
            outcome = await tried(agent, edited(checkpoint, path, "damaged"), YES)
            assert isinstance(outcome, ForeignCheckpointError), path

    run(go())
    assert till.ledger.entries(checkpoint["run_id"]) == ()


def test_with_neither_intent_is_not_found_and_the_documentation_says_so() -> None:
    checkpoint = edited(waiting(Till()).checkpoint, "call.args.amount", 9, sealed=True)
    till, agent = elsewhere()
    answered(run(agent.resume(checkpoint, YES)))
    assert till.paid == [8]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "digest inside a checkpoint finds accidents there, not intent" in readme
    assert "checkpoint_key=" in readme


ODD: list[Any] = [None, True, -1, 2**63, "é", [[0, {"held": "ran"}]]]


def test_nothing_in_a_checkpoint_can_crash_a_resume_whatever_somebody_wrote_there() -> None:
    @tool(name="person")
    def person(amount: int) -> Any:
        pause_here(amount)

    rule = Rule("rule", lambda c: allow() if c.tool_name == "person" else deny("no"))
    first = Till().agent(pays(7, 8, name="person"), [rule], person, parallel_tools=True)
    checkpoint = posted(run(until_asked(first)).checkpoint)
    assert checkpoint["held"]
    spec = Till().agent([DONE] * 99, [rule], person, parallel_tools=True)._spec
    found = set[str]()

    async def go() -> None:
        for path in paths(checkpoint):
            for value in ODD:
                forged = edited(checkpoint, path, value, sealed=path not in ("salt", "digest"))
                ledger = MemoryLedger()
                session = Session(msgspec.structs.replace(spec, ledger=ledger))
                outcome = await tried(session, forged, "an answer")
                found.add(type(outcome).__name__)
                if isinstance(outcome, ForeignCheckpointError):
                    assert ledger._runs == {}, path

    run(go())
    assert found == {"ForeignCheckpointError", "HumanPause", "StaleDecisionError"}

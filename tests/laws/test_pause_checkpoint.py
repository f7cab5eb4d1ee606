"""A checkpoint says what it belongs to; one that is foreign, edited, newer or broken is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asked import (
    DONE,
    YES,
    Rule,
    Till,
    adds,
    asks,
    edited,
    pays,
    posted,
    seal,
    until_asked,
)
from footprint_core import (
    ForeignCheckpointError,
    ResumeError,
    allow,
    on_message,
    sliding_window,
)
from footprint_core.mcp import mock_mcp_client
from story import answered, describe, run


def waiting(till: Till, **options: Any) -> Any:
    """A question that is open."""
    return run(until_asked(till.agent(pays(500), [asks(), adds(-1)], **options), identity={"user": "ada"}))


def elsewhere(**options: Any) -> tuple[Till, Any]:
    """An agent of the same description that goes on with the run, over a ledger of its own."""
    till = Till()
    return till, till.agent(DONE, [asks(), adds(-1)], **options)


def test_a_checkpoint_carries_its_version_run_pause_rules_and_a_digest_and_is_plain_json() -> None:
    till = Till()
    builder, _ = describe(
        pays(500),
        till.pay(),
        ledger=till.ledger,
        act={
            "input": [on_message("scrub")(lambda m: allow())],
            "before_tool": [Rule("first"), asks()],
            "after_tool": [],
            "window": sliding_window(keep_recent_turns=9),
            "output": [on_message("names")(lambda m: allow())],
        },
    )
    pause = run(until_asked(builder.build()))
    checkpoint = pause.checkpoint
    assert checkpoint["version"] == 1
    assert (checkpoint["run_id"], checkpoint["pause_id"]) == (pause.run_id, pause.pause_id)
    assert len({pause.run_id, pause.pause_id}) == 2
    assert checkpoint["rules"] == {
        "input": ["scrub", "names"],
        "before-tool": ["first", "four-eyes"],
        "after-tool": [],
        "window": ["sliding-window"],
        "output": ["scrub", "names"],
    }
    assert len(bytes.fromhex(checkpoint["digest"])) == 32
    assert posted(checkpoint) == checkpoint
    assert json.dumps(posted(checkpoint)) == json.dumps(checkpoint)


@pytest.mark.parametrize("path", ["call.tool_name", "call.tool_source", "call.args.amount"])
def test_the_digest_covers_tool_source_and_args_and_is_salted(path: str) -> None:
    checkpoint = waiting(Till()).checkpoint
    assert seal(checkpoint) == checkpoint
    assert edited(checkpoint, path, "other", sealed=True)["digest"] != checkpoint["digest"]
    other = edited(checkpoint, "salt", "00" * 16, sealed=True)
    assert other["digest"] != checkpoint["digest"]
    assert waiting(Till()).checkpoint["salt"] != checkpoint["salt"]


def ruled(act: Any, *, first: bool) -> tuple[Till, Any]:
    """An agent with these rules, which asks about the call or goes on behind the question."""
    till = Till()
    builder, _ = describe(pays(500) if first else [DONE], till.pay(), act=act, ledger=till.ledger)
    return till, builder.build()


def says(name: str) -> Any:
    return on_message(name)(lambda m: allow())


def reads(name: str) -> Any:
    from asked import Reads

    return Reads(name)


THEN: dict[str, Any] = {
    "input": [says("in-1"), says("in-2")],
    "before_tool": [asks(), Rule("before")],
    "after_tool": [reads("after-1"), reads("after-2")],
    "window": sliding_window(keep_recent_turns=9),
    "output": [says("out")],
}

CHANGED: dict[str, tuple[dict[str, Any], str, str]] = {
    "an input rule was renamed": ({"input": [says("in-1"), says("in-3")]}, "input", "in-3"),
    "input rules changed places": ({"input": [says("in-2"), says("in-1")]}, "input", "in-2, in-1"),
    "a tool rule was added in front": (
        {"before_tool": [Rule("new"), asks(), Rule("before")]},
        "before-tool",
        "new",
    ),
    "a tool rule was added behind": (
        {"before_tool": [asks(), Rule("before"), Rule("new")]},
        "before-tool",
        "new",
    ),
    "the rule behind is gone": ({"before_tool": [asks()]}, "before-tool", "before"),
    "the rule that asked is gone": ({"before_tool": [Rule("before")]}, "before-tool", "four-eyes"),
    "tool rules changed places": (
        {"before_tool": [Rule("before"), asks()]},
        "before-tool",
        "before, four-eyes",
    ),
    "a result rule is gone": ({"after_tool": [reads("after-1")]}, "after-tool", "after-2"),
    "result rules changed places": (
        {"after_tool": [reads("after-2"), reads("after-1")]},
        "after-tool",
        "after-2",
    ),
    "the window is gone": ({"window": None}, "window", "none"),
    "an output rule was renamed": ({"output": [says("out-2")]}, "input", "out-2"),
    "an output rule is gone": ({"output": []}, "input", "out"),
}


@pytest.mark.parametrize("how", CHANGED)
def test_an_agent_whose_rules_or_their_order_differ_at_any_moment_is_refused_by_name(how: str) -> None:
    change, moment, name = CHANGED[how]
    pause = run(until_asked(ruled(THEN, first=True)[1]))
    till, agent = ruled({**THEN, **change}, first=False)
    with pytest.raises(ForeignCheckpointError) as caught:
        run(agent.resume(pause.checkpoint, YES))
    assert f" {moment} " in str(caught.value)
    assert name in str(caught.value)
    assert (till.paid, till.model.requests) == ([], [])
    assert till.ledger.entries(pause.run_id) == ()
    same, unchanged = ruled(THEN, first=False)
    answered(run(unchanged.resume(pause.checkpoint, YES)))
    assert same.paid == [500]


def test_a_checkpoint_of_another_agent_is_refused_by_the_names_of_both() -> None:
    pause = waiting(Till(), id="here")
    till, agent = elsewhere(id="there")
    with pytest.raises(ForeignCheckpointError, match=r"'here'.*'there'"):
        run(agent.resume(pause.checkpoint, YES))
    assert till.ledger.entries(pause.run_id) == ()


def test_a_tool_of_another_server_is_not_the_one_a_person_was_asked_about() -> None:
    till = Till()
    (theirs,) = mock_mcp_client("bank", [till.pay()]).tools_now()
    pause = run(until_asked(till.agent(pays(500), [asks()], theirs)))
    other = Till(till.ledger)
    (another,) = mock_mcp_client("thief", [other.pay()]).tools_now()
    with pytest.raises(ForeignCheckpointError, match="thief"):
        run(other.agent(DONE, [asks()], another).resume(pause.checkpoint, YES))
    assert other.paid == []


async def tried(agent: Any, checkpoint: Any) -> Any:
    """What comes of a resume, its refusal included."""
    try:
        return await agent.resume(checkpoint, YES)
    except ResumeError as refused:
        return refused


NONE: list[Any] = [
    None,
    True,
    7,
    "a text",
    b"bytes",
    [],
    [1],
    (),
    {},
    {"version": 1},
    {1: 2},
    {"version": 1, "state": object()},
    {"messages": [], "model": "m"},
    {"version": float("nan")},
]


@pytest.mark.parametrize("data", NONE)
def test_what_is_no_checkpoint_is_refused_by_name(data: Any) -> None:
    till, agent = elsewhere()
    with pytest.raises(ForeignCheckpointError, match="checkpoint"):
        run(agent.resume(data, YES))
    assert till.model.requests == []


@pytest.mark.parametrize("version", [2, 3, 2**70, 10**4000, "2", 0, -1, 1.5, None])
def test_a_checkpoint_of_another_version_is_refused_and_a_newer_one_says_to_update(version: Any) -> None:
    pause = waiting(Till())
    till, agent = elsewhere()
    for sealed in (False, True):
        with pytest.raises(ForeignCheckpointError) as caught:
            run(agent.resume(edited(pause.checkpoint, "version", version, sealed=sealed), YES))
        assert "version" in str(caught.value)
        assert ("update" in str(caught.value)) == (isinstance(version, int) and version > 1)
    assert till.ledger.entries(pause.run_id) == ()


def test_a_truncated_checkpoint_is_refused_at_whatever_byte_it_ends() -> None:
    pause = waiting(Till())
    till, agent = elsewhere()
    text = json.dumps(pause.checkpoint)

    async def go() -> None:
        for length in range(0, len(text), 97):
            # What a lenient reader hands on of a text that was cut off: the text itself.
            outcome = await tried(agent, text[:length])
            assert isinstance(outcome, ForeignCheckpointError)
        for key in pause.checkpoint:
            cut = edited(pause.checkpoint, key, ...)
            outcome = await tried(agent, cut)
            assert isinstance(outcome, ForeignCheckpointError), key
            assert key == "version" or key in str(outcome)

    run(go())
    assert till.ledger.entries(pause.run_id) == ()

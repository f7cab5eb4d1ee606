"""A call in events: taken up once, ended once, with a status that says what became of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from footprint_core import (
    HumanPause,
    Permission,
    ToolContext,
    after_tool,
    allow,
    ask_human,
    before_tool,
    check_in_approved,
    check_in_declined,
    deny,
    is_paused,
    static_credentials,
    tool,
)
from footprint_core.events import (
    CheckInDecided,
    CheckInRequested,
    IterationFinished,
    ModelCallStarted,
    ToolCallEnded,
    ToolCallStarted,
    ToolsOffered,
)
from footprint_core.providers import Completed, call, reply
from permits import Checker
from planted_stories import played
from story import Seen, answered, describe, run

DONE = reply(text="done")


def look(q: str) -> str:
    return q * 2


def breaks() -> None:
    raise LookupError("no")


def asks() -> None:
    ask_human("Which one?")


@tool(needs="bank")
def pay(context: ToolContext) -> None:
    """Pay."""


@tool(check_in="always")
def wire() -> None:
    """Wire."""


def called(name: str, id: str = "c1", **args: Any) -> Completed:
    return reply(calls=[call(id, name, args)])


def ended(seen: Seen) -> list[tuple[str, str, bool]]:
    return [(event.tool_name, event.status, event.executed) for event in seen.of(ToolCallEnded)]


@pytest.mark.parametrize(
    ("first", "act", "status"),
    [
        (called("look", q="x"), {}, ("look", "ran", True)),
        (called("breaks"), {}, ("breaks", "failed", True)),
        (
            called("look", q="x"),
            {"before_tool": [before_tool("r")(lambda _: deny("no"))]},
            ("look", "denied", False),
        ),
        (
            called("look", q="x"),
            {"after_tool": [after_tool("r")(lambda _: deny("no"))]},
            ("look", "ran", True),
        ),
        (
            called("breaks"),
            {"after_tool": [after_tool("r")(lambda _: deny("no"))]},
            ("breaks", "failed", True),
        ),
        (called("look", q=3), {}, ("look", "invalid", False)),
        (called("nothing"), {}, ("nothing", "unknown", False)),
        (called("pay"), {}, ("pay", "blocked", False)),
    ],
)
def test_the_end_of_a_call_says_what_became_of_it(
    first: Completed, act: Any, status: tuple[str, str, bool]
) -> None:
    seen = Seen()
    run(describe([first, DONE], look, breaks, pay, act=act, watch=[seen])[0].build().run("go"))
    assert ended(seen) == [status]


def test_a_call_that_permission_refuses_is_denied_and_a_repeated_id_is_blocked() -> None:
    seen = Seen()
    twice = reply(calls=[call("c1", "look", {"q": "x"}), call("c1", "look", {"q": "y"})])
    builder = describe([twice, DONE], look, watch=[seen])[0]
    run(builder.permission(Checker(Permission(result="deny"))).build().run("go"))
    assert ended(seen) == [("look", "denied", False), ("look", "blocked", False)]
    assert seen.types.count("permission.check") == 1


def test_a_call_a_person_answered_ran_and_one_they_declined_is_denied() -> None:
    seen = Seen()
    agent = describe([called("asks"), DONE, called("wire"), DONE], asks, wire, watch=[seen])[0].build()

    async def story() -> None:
        question = await agent.run("go")
        assert isinstance(question, HumanPause)
        await agent.resume(question.checkpoint, "that one")
        question = await agent.run("go")
        assert is_paused(question)
        await agent.resume(question.checkpoint, check_in_declined(by="dana"))

    run(story())
    assert ended(seen) == [("asks", "ran", True), ("wire", "denied", False)]


def test_a_second_consent_gate_about_one_call_is_blocked() -> None:
    from footprint_core import ask

    seen = Seen()
    act: Any = {"before_tool": [before_tool("four-eyes")(lambda _: ask("Really?"))]}
    agent = describe([called("wire"), DONE], wire, act=act, watch=[seen])[0].build()
    paused = run(agent.run("go"))
    assert is_paused(paused)
    answered(run(agent.resume(paused.checkpoint, check_in_approved(by="dana"))))
    assert ended(seen) == [("wire", "blocked", False)]


def test_every_call_taken_up_starts_once_and_unless_its_run_breaks_off_ends_once() -> None:
    starts: Counter[tuple[str, int, str]] = Counter()
    ends: Counter[tuple[str, int, str]] = Counter()
    outcomes: dict[str, str] = {}
    for event in played().seen.events:
        if isinstance(event, ToolCallStarted):
            starts[event.run_id, event.iteration, event.tool_call_id] += 1
        if isinstance(event, ToolCallEnded):
            ends[event.run_id, event.iteration, event.tool_call_id] += 1
            assert starts[event.run_id, event.iteration, event.tool_call_id] == 1
        outcomes[event.run_id] = getattr(event, "outcome", "")
    assert set(starts.values()) == set(ends.values()) == {1}
    open_calls = {outcomes[run_id] for run_id, _, _ in set(starts) - set(ends)}
    assert open_calls <= {"failed", "cancelled", "abandoned"}
    assert len(ends) > 30


def test_a_call_that_pauses_starts_in_one_segment_and_ends_in_a_later_one() -> None:
    seen = Seen()
    first = reply(calls=[call("c1", "wire", {}), call("c2", "wire", {})])
    agent = describe([first, DONE], wire, watch=[seen])[0].build()

    async def story() -> None:
        paused = await agent.run("go")
        for _ in range(2):
            assert is_paused(paused)
            paused = await agent.resume(paused.checkpoint, check_in_approved(by="dana"))

    run(story())
    begun = [(event.tool_call_id, event.segment) for event in seen.of(ToolCallStarted)]
    over = [(event.tool_call_id, event.segment) for event in seen.of(ToolCallEnded)]
    assert (begun, over) == ([("c1", 1), ("c2", 2)], [("c1", 2), ("c2", 3)])


def test_a_check_in_is_told_before_its_pause_and_its_answer_behind_the_resume() -> None:
    seen = Seen()
    agent = describe([called("wire"), DONE], wire, watch=[seen])[0].build()
    paused = run(agent.run("go"))
    assert is_paused(paused)
    assert seen.types[-4:] == ["stream.tool_start", "checkin.request", "pause.request", "agent.turn_end"]
    seen.events.clear()
    run(agent.resume(paused.checkpoint, check_in_approved(by="dana")))
    assert seen.types[:4] == ["agent.run_configured", "pause.resume", "checkin.decision", "stream.tool_end"]
    assert seen.of(CheckInDecided)[0].approved
    assert not seen.of(CheckInRequested)


def test_the_tools_offered_are_named_before_every_model_call() -> None:
    seen = Seen()
    builder, model = describe(
        [called("look", q="x"), called("look", "c2", q="x"), DONE],
        look,
        breaks,
        watch=[seen],
        max_iterations=2,
    )
    run(builder.build().run("go"))
    offered = [event.offered for event in seen.of(ToolsOffered)]
    assert offered == [tuple(offer.name for offer in request.tools) for request in model.requests]
    assert offered == [("look", "breaks"), ("look", "breaks"), ()]
    assert [event.count for event in seen.of(ToolsOffered)] == [2, 2, 0]
    told = [event.type for event in seen.events if isinstance(event, ToolsOffered | ModelCallStarted)]
    assert told == ["tools.offered", "stream.llm_start"] * 3


def test_a_call_is_told_of_before_anything_decides_about_it() -> None:
    seen = Seen()
    first = reply(calls=[call(f"c{i}", name, {}) for i, name in enumerate(("look", "nothing", "wire"))])
    act: Any = {"before_tool": [before_tool("r")(lambda _: allow())]}
    builder = describe([first], look, wire, act=act, watch=[seen])[0].permission(Checker())
    run(builder.build().run("go"))
    about: dict[str, list[str]] = defaultdict(list)
    for event in seen.events:
        about[getattr(event, "tool_call_id", None) or ""].append(event.type)
    gates = ["stream.tool_start", "permission.check", "middleware.decision"]
    assert about["c0"] == [*gates, "validation.args_invalid", "stream.tool_end"]
    assert about["c1"] == [*gates, "stream.tool_end"]
    assert about["c2"] == [*gates, "checkin.request", "pause.request"]


def test_how_many_calls_a_turn_has_is_told_only_when_it_has_several() -> None:
    seen = Seen()
    two = reply(calls=[call("c1", "look", {"q": "x"}), call("c2", "nothing", {})])
    run(describe([two, called("look", q="x"), DONE], look, watch=[seen])[0].build().run("go"))
    assert [event.parallel_count for event in seen.of(ToolCallStarted)] == [2, 2, None]


@pytest.mark.parametrize("together", [False, True])
def test_the_end_of_an_iteration_counts_the_calls_before_a_pause_too(together: bool) -> None:
    seen = Seen()
    names = ("look", "asks", "nothing")
    batch = reply(
        calls=[call(f"c{i}", name, {"q": "x"} if name == "look" else {}) for i, name in enumerate(names)]
    )
    agent = describe([batch, DONE], look, asks, watch=[seen], parallel_tools=together)[0].build()
    paused = run(agent.run("go"))
    assert is_paused(paused)
    assert not seen.of(IterationFinished)
    run(agent.resume(paused.checkpoint, "that one"))
    counts = [(event.segment, event.iteration, event.tool_call_count) for event in seen.of(IterationFinished)]
    assert counts == [(2, 1, 3), (2, 2, 0)]


def test_without_a_checker_or_a_need_nothing_is_told_of_permission_or_credentials() -> None:
    bare, governed = Seen(), Seen()
    two = reply(calls=[call("c1", "look", {"q": "x"}), call("c2", "pay", {})])
    builder = describe([called("look", q="x"), DONE], look, watch=[bare])[0]
    run(builder.credentials(static_credentials({"bank": "secret"})).build().run("go"))
    assert not [name for name in bare.types if name.startswith(("permission.", "credential."))]
    builder = describe([two, DONE], look, pay, watch=[governed])[0].permission(Checker())
    run(builder.credentials(static_credentials({"bank": "secret"})).build().run("go"))
    about = [event for event in governed.events if event.type.startswith(("permission.", "credential."))]
    assert [(event.type, getattr(event, "tool_call_id", None)) for event in about] == [
        ("permission.check", "c1"),
        ("permission.check", "c2"),
        ("credential.requested", "c2"),
        ("credential.acquired", "c2"),
    ]

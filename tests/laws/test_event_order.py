"""The order of the events of a turn: undisturbed, asked about, approved, declined, refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from footprint_core import (
    Agent,
    AskPause,
    MessageContext,
    MessageDeniedError,
    MessageOutcome,
    ToolCallContext,
    ToolContext,
    ToolOutcome,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    check_in_declined,
    deny,
    on_message,
    sliding_window,
    static_credentials,
    tool,
)
from footprint_core.events import Event
from footprint_core.providers import Completed, Scripted, call, reply
from permits import Checker
from story import Seen, answered, run

WORD_OF = {
    "middleware.decision": ("moment", "middleware", "outcome"),
    "context.injected": ("slot",),
    "context.slot_composed": ("slot",),
    "agent.route_decided": ("chosen",),
    "stream.tool_start": ("tool_call_id",),
    "stream.tool_end": ("tool_call_id", "status"),
    "pause.resume": ("answer",),
    "agent.turn_end": ("outcome",),
}
"""The fields that tell one event from another of its name."""


def order(events: Sequence[Event]) -> list[str]:
    """The events, each in a few words."""
    return [
        " ".join([event.type, *(str(getattr(event, name)) for name in WORD_OF.get(event.type, ()))])
        for event in events
    ]


@tool(needs="bank")
async def pay(amount: int, context: ToolContext) -> int:
    """Pay."""
    return amount


ONE = reply(calls=[call("c1", "pay", {"amount": 1})])
TWO = reply(calls=[call("c1", "pay", {"amount": 1}), call("c2", "pay", {"amount": 2})])
DONE = reply(tokens=["do", "ne"])


def governed(first: tuple[Completed, ...], seen: Seen, **act: Any) -> Agent:
    """An agent with a tool that needs a credential, a checker, a system prompt, and a streaming model."""
    model = Scripted([*first, DONE], streaming=True)
    builder = Agent.create(provider=model, model="m", name="governed", keep_last_tool_results=0)
    builder.system("sys").tool(pay).permission(Checker()).credentials(static_credentials({"bank": "token"}))
    return builder.act(**act).watch(seen).build()


def composed(*gained: str) -> list[str]:
    """The context events of one model call, given the slots that gained pieces."""
    slots = ("system-prompt", "messages", "tools")
    injected = {slot: [f"context.injected {slot}"] if slot in gained else [] for slot in slots}
    return [event for slot in slots for event in (*injected[slot], f"context.slot_composed {slot}")]


FIRST = composed("system-prompt", "messages", "tools")
CALLED = ["tools.offered", "agent.iteration_start", "stream.llm_start"]
ASKED_FOR_TOOLS = [*FIRST, *CALLED, "stream.llm_end", "agent.route_decided tool-calls"]
RAN = ["credential.requested", "credential.acquired", "middleware.decision after-tool a allow"]
SAID = [*CALLED, "stream.token", "stream.token", "stream.llm_end", "agent.route_decided final"]
ENDED = ["agent.iteration_end", "agent.turn_end answered"]


def test_the_events_of_a_governed_turn_come_in_this_order() -> None:
    seen = Seen()
    agent = governed(
        (DONE, ONE),
        seen,
        input=[on_message("i")(lambda _: allow())],
        before_tool=[before_tool("b")(lambda _: allow())],
        after_tool=[after_tool("a")(lambda _: allow())],
        output=[only("output", "o")],
        window=sliding_window(keep_recent_turns=3),
    )
    run(agent.run("a turn before it, so long that it may leave the window " * 10))
    seen.events.clear()
    assert answered(run(agent.follow_up("go"))).text == "done"
    assert order(seen.events) == [
        "agent.run_configured",
        *message_decisions("input"),
        "agent.turn_start",
        *ASKED_FOR_TOOLS,
        "stream.tool_start c1",
        "permission.check",
        "middleware.decision before-tool b allow",
        *RAN,
        "stream.tool_end c1 ran",
        "agent.iteration_end",
        "context.evicted",
        *composed("messages"),
        *SAID,
        *message_decisions("output"),
        *ENDED,
    ]


def message_decisions(moment: str) -> list[str]:
    """Both message rules file a row at both moments; the one of the other moment is passed through."""
    return [f"middleware.decision {moment} {name} allow" for name in ("i", "o")]


def only(moment: str, name: str) -> Any:
    """A message rule that is asked at one moment; it raises at the other."""

    def hook(msg: MessageContext) -> MessageOutcome:
        assert msg.phase == moment
        return allow()

    return on_message(name)(hook)


def asks(asked: ToolCallContext) -> ToolOutcome:
    """Asks about the first call."""
    return ask("Really?") if asked.tool_call_id == "c1" else allow()


def asking() -> dict[str, Any]:
    """A rule that asks, one behind it, and one for results."""
    return {
        "before_tool": [before_tool("asks")(asks), before_tool("later")(lambda _: allow())],
        "after_tool": [after_tool("a")(lambda _: allow())],
    }


OTHER_CALL = [
    "stream.tool_start c2",
    "permission.check",
    "middleware.decision before-tool asks allow",
    "middleware.decision before-tool later allow",
    *RAN,
    "stream.tool_end c2 ran",
]


@pytest.mark.parametrize("approved", [True, False])
def test_the_events_around_a_question_come_in_this_order(approved: bool) -> None:
    seen = Seen()
    agent = governed((TWO,), seen, **asking())
    paused = run(agent.run("go"))
    assert isinstance(paused, AskPause)
    assert order(seen.events) == [
        "agent.run_configured",
        "agent.turn_start",
        *ASKED_FOR_TOOLS,
        "stream.tool_start c1",
        "permission.check",
        "middleware.decision before-tool asks ask",
        "pause.request",
        "agent.turn_end paused",
    ]
    seen.events.clear()
    decision = check_in_approved(by="dana") if approved else check_in_declined(by="dana")
    answered(run(agent.resume(paused.checkpoint, decision)))
    went_on = [
        "middleware.decision before-tool asks allow",
        "permission.check",
        "middleware.decision before-tool later allow",
        *RAN,
        "stream.tool_end c1 ran",
    ]
    declined = ["middleware.decision before-tool asks deny", "stream.tool_end c1 denied"]
    assert order(seen.events) == [
        "agent.run_configured",
        "pause.resume approved" if approved else "pause.resume declined",
        *(went_on if approved else declined),
        *OTHER_CALL,
        "agent.iteration_end",
        *composed("messages"),
        *SAID,
        *ENDED,
    ]


def test_the_events_of_a_message_that_is_refused_come_in_this_order() -> None:
    seen = Seen()
    no = on_message("no")(lambda _: deny("no"))
    with pytest.raises(MessageDeniedError):
        run(governed((), seen, input=[no]).run("go"))
    assert order(seen.events) == [
        "agent.run_configured",
        "middleware.decision input no deny",
        "agent.turn_start",
        "agent.turn_end denied",
    ]


def test_the_events_of_an_answer_that_is_refused_come_in_this_order() -> None:
    seen = Seen()
    with pytest.raises(MessageDeniedError):
        run(governed((), seen, output=[on_message("no")(lambda _: deny("no"))]).run("go"))
    assert order(seen.events) == [
        "agent.run_configured",
        "middleware.decision input no allow",
        "agent.turn_start",
        *FIRST,
        *SAID,
        "middleware.decision output no deny",
        "agent.iteration_end",
        "agent.turn_end denied",
    ]

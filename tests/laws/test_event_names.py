"""The names in events: those of the registry, those the program declared, and none that a model made up."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec
import pytest

from event_table import TABLE
from footprint_core import (
    Ledger,
    MemoryLedger,
    ToolMessage,
    allow,
    ask,
    before_tool,
    check_in_approved,
    is_paused,
    tool,
)
from footprint_core.events import EVENTS, DecisionFiled, Event, ModelCallEnded, ToolCallEnded, ToolCallStarted
from footprint_core.providers import call, reply
from permits import Checker
from planted import Mumbles
from planted_stories import played
from story import Seen, answered, describe, run

DONE = reply(text="done")


@tool
def look(q: str = "", limit: int = 3) -> str:
    """Look."""
    return q * 2


def test_names_are_a_domain_and_an_action_and_all_that_are_told_are_in_the_registry() -> None:
    assert list(EVENTS) == list(TABLE)
    assert len(EVENTS) == 32
    assert all(re.fullmatch(r"[a-z]+\.[a-z_]+", name) for name in EVENTS)
    assert all(EVENTS[event.type] is type(event) for event in played().seen.events)


def test_whatever_is_told_can_be_subscribed_to_by_class_by_name_and_by_domain() -> None:
    seen = Seen()
    agent = describe([reply(calls=[call("1", "look", {"q": "x"})]), DONE], look, watch=[seen])[0].build()
    heard: dict[str, list[Event]] = {}
    for name, kind in EVENTS.items():
        for pattern in (name, kind, f"{name.partition('.')[0]}.*"):
            place = heard.setdefault(f"{pattern} of {name}", [])
            agent.on(cast("Any", pattern), place.append)
    run(agent.run("go"))
    assert len(set(seen.types)) > 10
    for name, kind in EVENTS.items():
        exact = [event for event in seen.events if event.type == name]
        assert heard[f"{name} of {name}"] == heard[f"{kind} of {name}"] == exact
        domain = name.partition(".")[0] + "."
        assert heard[f"{domain}* of {name}"] == [e for e in seen.events if e.type.startswith(domain)]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("delete_everything", "delete_everything"),
        ("Ab9_.-", "Ab9_.-"),
        ("n" * 64, "n" * 64),
        ("n" * 65, "(invalid)"),
        ("", "(invalid)"),
        ("the card is 4111", "(invalid)"),
        ("sök", "(invalid)"),
        ("٣", "(invalid)"),
        ("look\n", "(invalid)"),
        ("a:b", "(invalid)"),
    ],
)
def test_the_name_of_an_unknown_tool_is_shown_only_when_it_can_hold_nothing_else(
    name: str, shown: str
) -> None:
    seen = Seen()
    act: Any = {"before_tool": [before_tool("asks")(lambda _: ask("Really?"))]}
    builder, model = describe([reply(calls=[call("c1", name, {})]), DONE], look, act=act, watch=[seen])
    agent = builder.permission(Checker()).build()
    paused = run(agent.run("go"))
    assert is_paused(paused)
    assert paused.tool_name == name
    answered(run(agent.resume(paused.checkpoint, check_in_approved(by="dana"))))
    names = {
        event.type: getattr(event, "tool_name", getattr(event, "target", None))
        for event in seen.events
        if getattr(event, "tool_call_id", None) is not None
    }
    assert names == dict.fromkeys(
        (
            *("stream.tool_start", "permission.check", "middleware.decision", "pause.request"),
            *("pause.resume", "stream.tool_end"),
        ),
        shown,
    )
    read = model.requests[1].messages[-1]
    assert isinstance(read, ToolMessage)
    assert name in read.text


@pytest.mark.parametrize(
    ("id", "kept"),
    [
        ("toolu_01AbC.d:e-f", True),
        ("i" * 64, True),
        ("i" * 65, False),
        ("", False),
        ("the card is 4111", False),
        ("ü1", True),
        ("ключ от дома", False),
        ("c1\n", False),
        ("c/1", False),
    ],
)
def test_a_call_id_that_could_hold_more_than_an_id_is_replaced_everywhere(id: str, kept: bool) -> None:
    seen = Seen()
    ledger: Ledger = MemoryLedger()
    act: Any = {"before_tool": [before_tool("r")(lambda _: allow())]}
    said = reply(calls=[call(id, "look", {"q": "x"})])
    builder, model = describe([said, DONE], look, act=act, watch=[seen], ledger=ledger)
    ran = answered(run(builder.build().run("go")))
    told = {event.tool_call_id for event in seen.events if isinstance(event, DecisionFiled)}
    told |= {e.tool_call_id for e in seen.events if isinstance(e, ToolCallStarted | ToolCallEnded)}
    (shown,) = told
    assert shown is not None
    assert (shown == id) is kept
    assert re.fullmatch(r"[\w.:-]{1,64}", shown)
    assert ran.decisions[0].tool_call_id == shown
    asked, read = model.requests[1].messages[-2:]
    assert [one.id for one in cast("Any", asked).calls] == [cast("Any", read).call_id] == [shown]
    if not kept and id:
        assert id.encode() not in msgspec.json.encode(seen.events)


@pytest.mark.parametrize(
    ("args", "known", "unknown"),
    [
        ({}, 0, 0),
        ({"q": "x"}, 1, 0),
        ({"q": "x", "limit": 4}, 2, 0),
        ({"q": "x", "the card is 4111": 1, "another": 2}, 1, 2),
    ],
)
def test_the_keys_of_arguments_are_counted_and_not_listed(
    args: dict[str, Any], known: int, unknown: int
) -> None:
    seen = Seen()
    run(describe([reply(calls=[call("1", "look", args)]), DONE], look, watch=[seen])[0].build().run("go"))
    (ended,) = seen.of(ToolCallEnded)
    assert (ended.status, ended.args_unknown_keys) == ("invalid" if unknown else "ran", unknown)
    # What the tool ran with has its defaults.
    assert ended.args_known_keys == (known if unknown else 2)
    assert b"4111" not in msgspec.json.encode(seen.events)


def test_why_a_model_stopped_is_one_of_the_words_whatever_its_provider_says() -> None:
    from footprint_core import Agent

    seen = Seen()
    answered(run(Agent.create(provider=Mumbles(), model="m", name="n").watch(seen).build().run("go")))
    assert [event.stop_reason for event in seen.of(ModelCallEnded)] == ["other"]

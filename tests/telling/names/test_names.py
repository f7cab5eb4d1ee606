"""What of a name leaves the process: a declared tool, an id that looks like one, a class that is a name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from footprint_core import Agent, allow, before_tool
from footprint_core.events import AgentConfigured, Event, ToolCallEnded, ToolCallStarted
from footprint_core.providers import Scripted, call, reply
from footprint_observe.recording import Names
from story import Seen, run

SECRET = "sk-live-4242424242424242"


GIVEN = (
    "call_abcDEF123",
    "call_00_O9ScVSNNFsrN02tk8FfA7113",
    "call_9f594179-b783-437f-84fe-51a14a433f25",
    "fc_9f594179-b783-437f-84fe-51a14a433f25",
    "9f594179-b783-437f-84fe-51a14a433f25",
    "toolu_01A09q90qw90lq917835lq9",
    "toolu_bdrk_011dsXUGnEnR84WXf49XdJ1p",
    "tooluse_HPDKhe_NSMyVyE53Cw-dKQ",
    "chatcmpl-tool-b120ab7bad790b75",
    "chatcmpl-tool-23c5c0da71854f9bbd8774f7d0113a69",
    "functions.lookup:0",
    "lookup:12",
    "call-1-2x",
    "0" * 32,
)
"""Forms in which ids are given."""


def lookup(key: str) -> str:
    """Look something up."""
    return key


def told(*calls: Any) -> list[Event]:
    """What a watcher is told of a run in which the model asks for these calls."""
    seen = Seen()
    model = Scripted([reply(calls=list(calls)), reply(text="Done.")])
    agent = Agent.create(provider=model, model="m", name="shop").tool(lookup).watch(seen)
    run(agent.act(before_tool=[before_tool("looks")(lambda _: allow())]).build().run("hello"))
    return seen.events


def shown(*calls: Any) -> list[Event]:
    """The same, as it may be shipped."""
    names = Names()
    return [names.shown(event) for event in told(*calls)]


def of(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_a_declared_tool_is_shipped_by_its_name_and_one_the_model_made_up_is_not() -> None:
    events = shown(call("c1", "lookup", {"key": "a"}), call("c2", SECRET, {}))
    assert [event.tool_name for event in of(events, ToolCallStarted)] == ["lookup", "(unknown)"]
    assert SECRET.encode() not in msgspec.json.encode(events)


def test_an_id_that_looks_like_one_is_kept() -> None:
    for id in ("c1", "ü1", *GIVEN):
        assert {
            event.tool_call_id for event in of(shown(call(id, "lookup", {"key": "a"})), ToolCallEnded)
        } == {id}


def test_any_other_id_has_an_alias_that_keeps_together_what_belongs_together() -> None:
    given = [call(SECRET, "lookup", {"key": "a"}), call(f"{SECRET}-2", "lookup", {"key": "b"})]
    events = shown(*given)
    assert [event.tool_call_id for event in of(events, ToolCallStarted)] == ["(id 1)", "(id 2)"]
    assert [event.tool_call_id for event in of(events, ToolCallEnded)] == ["(id 1)", "(id 2)"]
    assert SECRET.encode() not in msgspec.json.encode(events)


def test_an_event_in_which_nothing_is_replaced_is_the_same_object() -> None:
    names, events = Names(), told(call("c1", "lookup", {"key": "a"}))
    assert all(names.shown(event) is event for event in events)


def test_of_a_segment_whose_beginning_was_not_told_no_tool_is_declared() -> None:
    names, events = Names(), told(call("c1", "lookup", {"key": "a"}))
    later = [names.shown(event) for event in events if not isinstance(event, AgentConfigured)]
    assert {event.tool_name for event in of(later, ToolCallStarted)} == {"(unknown)"}


def test_a_class_made_at_run_time_cannot_be_called_a_sentence() -> None:
    ended = of(told(call("c1", "lookup", {"key": "a"})), ToolCallEnded)[0]
    for name, expected in ((f"the {SECRET}", "(invalid)"), ("LookupError", "LookupError")):
        event = msgspec.structs.replace(ended, error_class=name)
        (shipped,) = of([Names().shown(event)], ToolCallEnded)
        assert shipped.error_class == expected


@pytest.mark.parametrize("kind", [AgentConfigured, ToolCallStarted])
def test_segments_that_never_end_are_not_kept_for_ever(kind: type[Any]) -> None:
    names, event = Names(), of(told(call("c1", "lookup", {"key": "a"})), kind)[0]
    for number in range(5_000):
        names.shown(msgspec.structs.replace(event, run_id=f"{number:032x}"))
    assert len(names._open) == 4_096


def test_ids_stay_different_in_a_segment_whose_beginning_was_not_told() -> None:
    names, events = Names(), told(call(SECRET, "lookup", {"key": "a"}), call(f"{SECRET}-2", "lookup", {}))
    later = [names.shown(event) for event in events if not isinstance(event, AgentConfigured)]
    assert [event.tool_call_id for event in of(later, ToolCallStarted)] == ["(id 1)", "(id 2)"]
    assert [event.tool_call_id for event in of(later, ToolCallEnded)] == ["(id 1)", "(id 2)"]
    assert names._open == {}


@pytest.mark.parametrize(
    "name",
    [
        "toolu",
        "call_" + "x" * 49,
        "sk_live_abcdefgh",
        "password1",
        f"functions.{SECRET}:0",
        f"functions.lookup:{'4' * 16}",
        f"chatcmpl-tool-{SECRET}",
        f"tooluse_{SECRET}",
        "call_00_sk-live-42",
        SECRET,
    ],
)
def test_what_only_begins_like_an_id_is_none(name: str) -> None:
    events = shown(call(name, "lookup", {"key": "a"}))
    kept = {event.tool_call_id for event in of(events, ToolCallEnded)}
    assert kept == ({name} if name == "toolu" else {"(id 1)"})

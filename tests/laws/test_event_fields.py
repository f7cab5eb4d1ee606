"""What an event can hold at all: the fields of the table, and none that could carry a value."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

import msgspec
import pytest
from msgspec.structs import replace

from event_table import CARRIED, TABLE, WORDS, columns, fields, words
from footprint_core.events import EVENTS, Event, FrozenDict, ObserverError, TokenStreamed
from footprint_core.facts import Decided, Fact, OutputJudged, PauseOpened
from footprint_core.ledger import Entry
from footprint_core.projection import events_for
from samples import FULL

FORBIDDEN = (
    *("why", "reason", "rationale", "question", "note", "detail", "prompt", "content", "args", "arguments"),
    *("result", "before", "after", "evidence", "error", "message", "text", "answer", "summary", "notice"),
    *("system", "correction", "secret", "credential", "payload", "value", "data", "decided_by", "by"),
    *("identity", "history", "description", "instruction", "output", "input", "schema"),
)
"""Names of fields that would hold a value; one of them may hold a word of a closed set, or a number."""


@pytest.mark.parametrize("name", sorted({*TABLE, *EVENTS}))
def test_an_event_has_exactly_the_fields_of_the_table(name: str) -> None:
    assert fields(EVENTS[name]) == columns(TABLE[name])
    assert EVENTS[name].__struct_config__.frozen
    assert EVENTS[name].type == name == EVENTS[name].__struct_config__.tag


def test_every_event_says_what_it_is_where_it_comes_from_and_when_it_was_noted() -> None:
    carried = columns(CARRIED)
    for event in EVENTS.values():
        own = {field.name: field for field in msgspec.structs.fields(event)}
        assert all(own[name].required for name in carried)
        assert {name: own[name].type.__name__ for name in carried} == carried
        assert event.__struct_config__.tag_field == "type"


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_an_enum_has_exactly_the_words_of_the_table(name: str) -> None:
    found = {field.name: words(field.type) for field in msgspec.structs.fields(EVENTS[name])}
    enums = {field: told for field, told in found.items() if told and field not in {"rules", "stopped_early"}}
    assert enums == WORDS.get(name, {})


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_no_event_has_a_field_that_would_hold_a_value(name: str) -> None:
    def check(struct: type[msgspec.Struct]) -> None:
        for field in msgspec.structs.fields(struct):
            kinds = {kind for kind in _flat(field.type) if kind is not type(None)}
            for kind in kinds:
                if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                    check(kind)
            if str in kinds:
                assert field.name not in FORBIDDEN, f"{struct.__name__}.{field.name}"
            assert not {object, bytes, Any, msgspec.Raw} & kinds, f"{struct.__name__}.{field.name}"

    check(EVENTS[name])


def _flat(annotation: Any) -> set[Any]:
    """A type and every type in it; the words of an enum are none."""
    inner = [one for one in get_args(annotation) if not isinstance(one, str) and one is not ...]
    return {annotation, *(kind for one in inner for kind in _flat(one))} if inner else {annotation}


def told(fact: Fact) -> tuple[Event, ...]:
    """The events of a fact that was committed with two fields masked."""
    entry = Entry(position=7, time=1_700_000_000_000_000, fact=fact)
    marks = (("before.token", "mask"), ("after", "mask"))
    return events_for(entry, run_id="r" * 32, segment=2, marks=marks)


def test_every_field_of_an_event_comes_from_its_fact() -> None:
    here: dict[Any, dict[str, Any]] = {Decided: {"imported": None}, PauseOpened: {"imported": False}}
    spent = [replace(fact, outcome="exhausted") for fact in FULL if isinstance(fact, OutputJudged)]
    facts = [*(replace(fact, **here.get(type(fact), {})) for fact in FULL), *spent]
    assert {type(fact) for fact in facts} == set(get_args(Fact))
    events = [event for fact in facts for event in told(fact)]
    assert {type(event) for event in events} == set(EVENTS.values()) - {TokenStreamed, ObserverError}
    for kind in {type(event) for event in events}:
        optional = [field for field in msgspec.structs.fields(kind) if not field.required]
        # At one moment or the other: a decision is about a call or about a message.
        missing = {
            field.name
            for field in optional
            if all(getattr(one, field.name) == field.default for one in events if isinstance(one, kind))
        }
        assert missing <= {"recorded", "phase"}, kind
    assert {(event.run_id, event.segment, event.sequence) for event in events} == {("r" * 32, 2, 7)}


def test_a_fact_gives_none_one_or_several_events_and_the_silent_ones_are_these() -> None:
    # What another ledger filed was told when it was filed, and a judgement that passed is no news.
    passed = [replace(fact, outcome="passed", stage=None) for fact in FULL if isinstance(fact, OutputJudged)]
    gives = Counter({type(fact).__name__: len(told(fact)) for fact in FULL})
    assert {name for name, count in gives.items() if count == 0} == {
        *("ToolIntended", "ToolPaused", "ToolFinished", "PauseClosed"),
        *("Decided", "PauseOpened", "RunRecovered", "RunAbandoned"),
    }
    assert {name: count for name, count in gives.items() if count > 1} == {
        "WindowVisited": 4,
        "ModelAsked": 9,
        "ModelReplied": 2,
        "PermissionChecked": 2,
        "CallAnswered": 2,
        "SegmentEnded": 2,
    }
    assert [told(fact) for fact in passed] == [()]


def test_what_does_not_apply_is_absent_where_an_event_is_written_out() -> None:
    for event in (event for fact in FULL for event in told(fact)):
        kind: type[Any] = type(event)
        bare = {
            field.name: getattr(event, field.name) for field in msgspec.structs.fields(kind) if field.required
        }
        written = msgspec.json.decode(msgspec.json.encode(kind(**bare)))
        assert set(written) == {"type", *bare}
        assert not [name for name, value in written.items() if value is None]


def test_what_an_event_holds_of_dicts_cannot_be_changed() -> None:
    frozen: FrozenDict[str, int] = FrozenDict({"mask": 1})
    changed: Any = frozen
    for change in (
        lambda: changed.update(mask=2),
        changed.clear,
        lambda: changed.pop("mask"),
        lambda: changed.__setitem__("mask", 2),
        lambda: changed.__delitem__("mask"),
        lambda: changed.setdefault("drop", 1),
        changed.popitem,
        lambda: changed.__ior__({"drop": 1}),
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            change()
    assert frozen == {"mask": 1}
    held = [getattr(event, name) for fact in FULL for event in told(fact) for name in event.__struct_fields__]
    assert [value for value in held if isinstance(value, dict) and not isinstance(value, FrozenDict)] == []
    assert not any(isinstance(value, list | set | bytearray) for value in held)

"""Tools that take their arguments in one dict, checked by the whole of a JSON Schema."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from footprint_core import (
    BuilderError,
    MemoryLedger,
    Tool,
    ToolContext,
    ToolMessage,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    before_tool,
    tool,
)
from footprint_core.events import ToolCallEnded
from footprint_core.facts import ToolIntended
from footprint_core.providers import Scripted, call, reply
from footprint_core.tools.json_schema import validator
from story import Seen, answered, describe, run

REFUND: dict[str, Any] = {
    "properties": {
        "amount": {"type": "integer", "minimum": 1},
        "currency": {"enum": ["EUR", "USD"], "default": "EUR"},
        "to": {"type": "object", "required": ["iban"], "properties": {"iban": {"type": "string"}}},
    },
    "required": ["amount"],
    "additionalProperties": False,
}


def told(model: Scripted) -> list[str]:
    """What the model read of its calls."""
    return [m.text for m in model.requests[-1].messages if isinstance(m, ToolMessage)]


def keeping(ran: list[object]) -> Callable[[object], None]:
    """A body that says it ran."""

    def body(args: object) -> None:
        ran.append(args)

    return body


def wrong(schema: dict[str, Any], value: object) -> list[str]:
    """What a schema says is wrong, a line each."""
    return [f"{p.path}: {p.expected}, not {p.came}" for p in validator(schema, "it")(value)]


def test_a_function_takes_the_whole_dict_and_the_context_beside_it() -> None:
    ran: list[object] = []

    @tool(name="refund", schema=REFUND)
    def refund(args: dict[str, Any], context: ToolContext) -> str:
        """Pay it back."""
        ran.append(args)
        return context.call_id

    @tool(name="later", schema={"properties": {"n": {}}})
    async def later(context: ToolContext, given: dict[str, Any]) -> object:
        ran.append(given)
        return context.iteration

    calls = [call("1", "refund", {"amount": 3, "to": {"iban": "x"}}), call("2", "later", {"more": [None]})]
    ledger = MemoryLedger()
    builder, model = describe([reply(calls=calls), reply(text="ok")], refund, later, ledger=ledger)
    answer = answered(run(builder.build().run("go")))
    assert ran == [{"amount": 3, "to": {"iban": "x"}}, {"more": [None]}]
    assert told(model) == ["1", "1"]
    # Defaults of a schema are not filled in, neither for the body nor on record.
    intents = [e.fact.args for e in ledger.entries(answer.run_id) if isinstance(e.fact, ToolIntended)]
    assert intents == ran
    offered = model.requests[0].tools[0]
    assert (offered.name, offered.description) == ("refund", "Pay it back.")
    assert offered.schema == {"type": "object", **REFUND}
    assert refund.keys == {"amount", "currency", "to"}


def test_rejected_arguments_are_told_by_path_and_type_and_never_by_value() -> None:
    ran: list[object] = []
    refund = tool(name="refund", schema=REFUND)(keeping(ran))
    args = {"amount": "hunter2", "currency": "hunter2", "to": {"other": "hunter2"}, "who": ["hunter2"]}
    seen = Seen()
    builder, model = describe(
        [reply(calls=[call("1", "refund", args)]), reply(text="ok")], refund, watch=[seen]
    )
    run(builder.build().run("go"))
    assert ran == []
    (text,) = told(model)
    assert text == (
        "The arguments for refund are not valid, so it was not run. "
        "amount: expected integer, got string; currency: expected one of the listed values, got string; "
        "to.iban: expected a value, got nothing; who: expected no such argument, got array. "
        "Correct them and call it again."
    )
    (ended,) = seen.of(ToolCallEnded)
    assert (ended.status, ended.args_known_keys, ended.args_unknown_keys) == ("invalid", 3, 1)


def test_at_most_ten_problems_are_told_and_the_others_counted() -> None:
    wide = tool(name="wide", schema={"additionalProperties": False})(lambda args: args)
    builder, model = describe(
        [reply(calls=[call("1", "wide", {f"k{n:02}": n for n in range(13)})]), reply(text="ok")], wide
    )
    run(builder.build().run("go"))
    assert told(model)[0].count("no such argument") == 10
    assert "and 3 more" in told(model)[0]


PROBLEMS: list[tuple[dict[str, Any], object, list[str]]] = [
    ({"type": "integer"}, 1.5, ["(arguments): integer, not number"]),
    ({"type": "number"}, True, ["(arguments): number, not boolean"]),
    ({"type": ["string", "null"]}, 1, ["(arguments): string or null, not number"]),
    ({"required": ["a", "b"]}, {}, ["a: a value, not nothing", "b: a value, not nothing"]),
    ({"items": {"type": "string"}}, ["a", 1, {}], ["1: string, not number", "2: string, not object"]),
    ({"const": 5}, 6, ["(arguments): the listed value, not number"]),
    ({"minimum": 5, "multipleOf": 2}, 3, ["a larger number", "a multiple of the listed number"]),
    ({"exclusiveMaximum": 5}, 5, ["a smaller number"]),
    ({"minLength": 3, "pattern": "^a"}, "b", ["a longer text", "a text of the listed pattern"]),
    ({"maxItems": 1, "uniqueItems": True}, [1, 1], ["fewer items", "items that differ"]),
    ({"contains": {"type": "string"}}, [1], ["an item of the listed kind"]),
    ({"prefixItems": [True], "items": False}, [1, 2], ["fewer items"]),
    ({"propertyNames": {"pattern": "^x"}}, {"hunter2": 1}, ["property names its schema allows, not object"]),
    ({"properties": {"a": True}, "unevaluatedProperties": False}, {"b": 1}, ["only the listed properties"]),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, ["the properties that go with those given"]),
    ({"not": {"type": "string"}}, "x", ["something its schema does not rule out"]),
    ({"properties": {"a": False}}, {"a": "x"}, ["nothing where its schema says so"]),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", ["integer or null"]),
    ({"anyOf": [{"type": "integer"}, {"required": ["k"]}]}, {}, ["one of the listed shapes"]),
    ({"oneOf": [{"type": "integer"}, {"minimum": 1}]}, 5, ["only one of the listed shapes"]),
    ({"if": {"type": "string"}, "then": {"minLength": 3}}, "a", ["a longer text"]),
    ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"x1": 1, "y": 2}, ["y: no such arg"]),
    ({"$ref": "#/$defs/t", "$defs": {"t": {"items": {"required": ["id"]}}}}, [{}], ["0.id: a value"]),
    ({"minContains": 2, "contains": True}, [1], ["more items of the listed kind"]),
    ({"minProperties": 1}, {}, ["more properties"]),
]


@pytest.mark.parametrize(("schema", "value", "expected"), PROBLEMS)
def test_a_problem_is_told_in_words_of_the_keyword(
    schema: dict[str, Any], value: object, expected: list[str]
) -> None:
    found = wrong(schema, value)
    assert len(found) == len(expected)
    assert all(part in line for part, line in zip(expected, found, strict=True)), found


def test_an_older_dialect_counts_when_it_is_named() -> None:
    draft4 = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}
    assert wrong(draft4, 3) == ["(arguments): a larger number, not number"]
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema", "items": [{"type": "string"}]}
    assert wrong(draft7, [1]) == ["0: string, not number"]
    draft3 = {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"a": {"required": True}}}
    assert wrong(draft3, {}) == ["a: a value, not nothing"]


def test_formats_are_not_asserted() -> None:
    assert wrong({"properties": {"mail": {"format": "email"}}}, {"mail": "no mail"}) == []


def test_a_schema_that_leads_to_itself_for_ever_rejects_and_does_not_hang() -> None:
    assert wrong({"$ref": "#"}, {}) == ["(arguments): what its schema allows, not object"]


def schema_tool(schema: Any) -> Tool:
    return tool(name="t", schema=schema)(lambda args: args)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "objekt"}, "type 'object'"),
        ({"type": "string"}, "type 'object'"),
        ({"properties": {"a": {"type": "hunter2"}}}, "at properties.a.type"),
        ({"properties": {"a": {"pattern": "("}}}, "at properties.a.pattern"),
        ({"patternProperties": {"(": {}}}, "at patternProperties"),
        ({"required": "hunter2"}, "at required"),
        ({"$schema": "https://hunter2.example/dialect"}, "dialect"),
        ({"$schema": 7}, "dialect"),
        ({"properties": {"a": {"$ref": "#/$defs/hunter2"}}}, "not in it"),
        ({"properties": {"a": {"$ref": "https://hunter2.example/s"}}}, "nothing is fetched"),
        ({"properties": {"a": {"$ref": "http://["}}}, "not in it"),
        ({"$defs": {"x": {"items": {"$dynamicRef": "#hunter2"}}}}, "not in it"),
        ({"oddly": {"$ref": 1}, "allOf": [{"$ref": "#/oddly/far"}]}, "not in it"),
        ({"properties": {"a": {"default": object()}}}, "dict of JSON values"),
        ([], "dict of JSON values"),
        (True, "dict of JSON values"),
    ],
)
def test_a_bad_schema_is_refused_when_the_tool_is_made(schema: Any, says: str) -> None:
    with pytest.raises(BuilderError) as refused:
        schema_tool(schema)
    assert says in str(refused.value)
    assert "the tool t" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_reference_is_followed_where_a_schema_names_its_parts_by_ids_and_anchors() -> None:
    named = {
        "$id": "https://here.example/root",
        "properties": {"a": {"$ref": "part"}, "b": {"$ref": "#other"}},
        "$defs": {
            "p": {"$id": "part", "$ref": "#/$defs/q", "$defs": {"q": {"type": "integer"}}},
            "o": {"$anchor": "other", "type": "null"},
        },
    }
    assert wrong(named, {"a": "x", "b": 1}) == ["a: integer, not string", "b: null, not number"]
    # The dialect's own schema is known without a connection.
    meta = {"properties": {"s": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}
    assert wrong(meta, {"s": {"type": "object"}}) == []
    assert wrong(meta, {"s": {"type": "x"}}) != []


def test_nothing_is_fetched_when_a_tool_is_made_or_its_arguments_are_checked() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.setblocking(False)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/schema"
        with pytest.raises(BuilderError, match="nothing is fetched"):
            schema_tool({"properties": {"a": {"$ref": url}}})
        # What stands under no keyword of the dialect is no reference, and none is followed later either.
        hidden = schema_tool({"$comment": url, "examples": [{"$ref": url}], "properties": {"$ref": {}}})
        assert not isinstance(hidden.check({"$ref": url, "a": 1}), tuple)
        with pytest.raises(BlockingIOError):
            listening.accept()


def no_parameter() -> None:
    """Takes nothing."""


def two_parameters(a: object, b: object) -> None:
    """Takes two."""


def only_context(context: ToolContext) -> None:
    """Takes no arguments."""


def positional(args: object, /) -> None:
    """Cannot be called by name."""


def starred(**args: object) -> None:
    """Takes what comes."""


@pytest.mark.parametrize("body", [no_parameter, two_parameters, only_context, positional, starred])
def test_a_function_that_takes_no_one_dict_is_refused(body: Callable[..., object]) -> None:
    with pytest.raises(BuilderError, match=r"one (plain )?parameter"):
        tool(name="t", schema={})(body)


def test_what_a_tool_does_to_its_arguments_changes_nothing_on_record() -> None:
    read: list[Any] = []

    @tool(name="spoil", schema={})
    def spoil(args: dict[str, Any]) -> str:
        args["list"].append(2)
        args["new"] = 1
        return "spoiled"

    ledger = MemoryLedger()

    @after_tool("look")
    def look(result: ToolResultContext) -> ToolResultOutcome:
        read.append(result.args)
        return allow()

    builder, _ = describe(
        [reply(calls=[call("1", "spoil", {"list": [1]})]), reply(text="ok")], spoil, ledger=ledger
    )
    answer = answered(run(builder.act(after_tool=[look]).build().run("go")))
    (intent,) = [e.fact for e in ledger.entries(answer.run_id) if isinstance(e.fact, ToolIntended)]
    assert intent.args == {"list": [1]}
    assert read == [{"list": [1]}]


def test_a_rule_that_changes_the_arguments_into_what_the_schema_rejects_is_caught() -> None:
    ran: list[object] = []
    refund = tool(name="refund", schema=REFUND)(keeping(ran))
    rule = before_tool("half")(lambda asked: allow({"amount": asked.args["amount"] / 2}, why="half"))
    builder, model = describe([reply(calls=[call("1", "refund", {"amount": 5})]), reply(text="ok")], refund)
    run(builder.act(before_tool=[rule]).build().run("go"))
    assert ran == []
    assert "amount: expected integer, got number" in told(model)[0]


@pytest.mark.parametrize("error", [StopIteration, StopAsyncIteration, GeneratorExit, RecursionError])
def test_an_unusual_exception_is_answered_like_any_other(error: type[BaseException]) -> None:
    @tool(name="plain", schema={})
    def in_a_thread(args: object) -> None:
        raise error("odd")

    @tool(name="async", schema={})
    async def in_the_loop(args: object) -> None:
        raise error("odd")

    calls = [call("1", "plain", {}), call("2", "async", {})]
    builder, model = describe([reply(calls=calls), reply(text="ok")], in_a_thread, in_the_loop)
    assert answered(run(builder.build().run("go"))).text == "ok"
    in_thread, in_loop = told(model)
    assert in_thread == "odd"
    # Python makes an error of its own of a StopIteration that leaves a coroutine.
    assert in_loop == ("coroutine raised StopIteration" if error is StopIteration else "odd")


def test_what_cannot_be_written_as_json_is_told_by_its_type() -> None:
    odd = tool(name="odd", schema={})(lambda _: {"ok": 1, "bad": object()})
    builder, model = describe([reply(calls=[call("1", "odd", {})]), reply(text="ok")], odd)
    run(builder.build().run("go"))
    assert told(model) == ['{"ok":1,"bad":"[not JSON: object]"}']


CANARY = "hunter2"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.just(CANARY),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
LEAVES = st.sampled_from(
    [
        True,
        False,
        {"type": "integer"},
        {"type": ["string", "object"]},
        {"enum": [1, "a"]},
        {"const": None},
        {"minimum": 1},
        {"maxLength": 3},
        {"pattern": "^a"},
        {"required": ["a", "b"]},
        {"minItems": 2},
        {"uniqueItems": True},
        {"maxProperties": 1},
        {"propertyNames": {"enum": ["a"]}},
    ]
)


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({}, optional={"properties": named, "additionalProperties": inner}),
        st.fixed_dictionaries({}, optional={"prefixItems": some, "items": inner, "contains": inner}),
        st.fixed_dictionaries({}, optional={"properties": named, "unevaluatedProperties": inner}),
        st.builds(lambda parts: {"anyOf": parts}, some),
        st.builds(lambda parts: {"oneOf": parts}, some),
        st.builds(lambda parts: {"allOf": parts}, some),
        st.builds(lambda part: {"not": part}, inner),
        st.builds(lambda one, two: {"if": one, "then": two}, inner, inner),
    )


@settings(max_examples=300, deadline=None)
@given(schema=st.recursive(LEAVES, _combined, max_leaves=8), value=VALUES)
def test_all_of_a_schema_counts_and_no_problem_holds_a_value(schema: Any, value: Any) -> None:
    whole = {"properties": {"x": schema}}
    found = validator(whole, "it")({"x": value})
    assert bool(found) != Draft202012Validator(schema).is_valid(value)
    assert CANARY not in repr(found)
    assert list(found) == sorted(found, key=lambda problem: (problem.path, problem.expected))


def test_the_library_is_loaded_by_the_first_tool_with_a_schema() -> None:
    code = (
        "import sys; from footprint_core import tool; tool(name='t')(lambda: 1); "
        "print('jsonschema' in sys.modules); tool(name='t', schema={})(lambda args: 1); "
        "print('jsonschema' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["False", "True"]

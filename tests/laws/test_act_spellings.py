"""Each key of `.act()` is its door: the same rules, spelled either way, are the same turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import pytest

from footprint_core import (
    ACT_KEYS,
    LOOP_MOMENTS,
    ActKey,
    AgentBuilder,
    Answer,
    AskPause,
    MessageDeniedError,
    act_key_for,
    allow,
    ask,
    check_in_approved,
    check_in_declined,
    deny,
    sliding_window,
)
from footprint_core.chain import calls, contents, results
from footprint_core.facts import WindowVisited
from footprint_core.providers import call, reply
from ruled import (
    ANSWER,
    MESSAGE,
    PAYS,
    REPLACEMENTS,
    RULED,
    Hook,
    Played,
    RuledMoment,
    answers,
    paying,
    play,
    rule_at,
)
from story import run

Given: TypeAlias = dict[ActKey, Any]

LONG = (
    *(reply(calls=[call(f"c{n}", "pay", {"amount": n})], text="thinking " * 40) for n in range(1, 6)),
    reply(text=ANSWER),
)
"""A turn long enough for a window to move."""


def by_act(builder: AgentBuilder, given: Given) -> AgentBuilder:
    """Spelled as keys of `.act()`."""
    options: dict[str, Any] = {key: one if key == "window" else [one] for key, one in given.items()}
    return builder.act(**options)


def by_doors(builder: AgentBuilder, given: Given) -> AgentBuilder:
    """Spelled by the doors, in the order in which the keys are attached."""
    for key in ("input", "output"):
        if key in given:
            builder.message_middleware(given[key])
    for key in ("before_tool", "after_tool"):
        if key in given:
            builder.tool_middleware(given[key])
    return builder.window(given["window"]) if "window" in given else builder


def said(played: Played) -> Any:
    """What the caller got, without what differs between equal runs."""
    match played.outcome, played.error:
        case Answer() as answer, None:
            return answer.text, answer.stopped_early, answer.value
        case AskPause() as pause, None:
            return pause.middleware, pause.question, pause.detail, pause.args, pause.tool_call_id
        case None, MessageDeniedError() as error:
            return str(error), error.reason, error.phase, error.middleware
        case _:
            raise AssertionError


def compare(given: Given, *, answer: Any = None, **options: Any) -> Played:
    """Play the turn spelled both ways, and answer its question; all that can be seen must be the same."""
    turns: list[Played] = []
    for spelled in (by_act, by_doors):
        builder, model = paying(LONG, keep_last_tool_results=0, **options)
        played = Played(spelled(builder, given), model).go()
        if answer is not None:
            assert isinstance(played.outcome, AskPause)
            played.outcome = run(played.agent.resume(played.outcome.checkpoint, answer))
        turns.append(played)
    act, doors = turns
    assert said(act) == said(doors)
    assert act.requests == doors.requests
    assert visits(act) == visits(doors)
    assert act.rows == doors.rows
    assert act.events == doors.events
    assert act.ran == doors.ran
    return act


def visits(played: Played) -> list[WindowVisited]:
    """The window records of a run."""
    return [fact for fact in played.facts if isinstance(fact, WindowVisited)]


def at(moment: RuledMoment, hook: Hook, name: str = "rule") -> Any:
    """A rule of a moment, which a door asks at the other message too."""

    def asked(context: Any) -> Any:
        return hook(context) if getattr(context, "phase", moment) == moment else allow()

    return rule_at(moment, asked, name)


DECISIONS: dict[str, Callable[[RuledMoment], Hook]] = {
    "an allow": lambda _: answers(allow()),
    "an allow with a reason": lambda _: answers(allow(why="seen")),
    "a replacement": lambda moment: answers(allow(REPLACEMENTS[moment], why="less")),
    "a denial": lambda _: answers(deny("no")),
    "an error": lambda _: answers(ValueError("broken")),
    "no answer": lambda _: answers(None),
}
ALLOWED = {"an allow", "an allow with a reason", "a replacement"}


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize("decision", DECISIONS)
def test_a_key_and_its_door_are_the_same_turn(moment: RuledMoment, decision: str) -> None:
    played = compare({act_key_for(moment): at(moment, DECISIONS[decision](moment))})
    decided = [row for row in played.rows if row["moment"] == moment]
    assert decided
    allowed = decision in ALLOWED
    assert {row["outcome"] for row in decided} == {"allow" if allowed else "deny"}
    changed = decision == "a replacement" or (moment == "after-tool" and not allowed)
    assert {row["changed"] for row in decided} == {changed}


@pytest.mark.parametrize("answer", [None, check_in_approved(by="ada"), check_in_declined(by="ada")])
def test_a_question_is_the_same_turn_by_key_and_by_door(answer: Any) -> None:
    def hook(context: Any) -> Any:
        return ask("May it?", detail={"key": 1}) if context.args["amount"] == 3 else allow()

    played = compare({"before_tool": at("before-tool", hook)}, answer=answer)
    assert [row["outcome"] for row in played.rows][:3] == ["allow", "allow", "ask"]
    assert (len(played.rows) > 3) is (answer is not None)


@pytest.mark.parametrize("kept", [1, 2, 99])
def test_a_window_is_the_same_turn_by_key_and_by_door(kept: int) -> None:
    played = compare({"window": sliding_window(keep_recent_turns=kept)})
    assert bool(visits(played)) is (kept < 99)
    assert (sum(visit.removed_messages for visit in visits(played)) > 0) is (kept < 99)


@pytest.mark.parametrize("moment", [None, *RULED])
@pytest.mark.parametrize("decision", DECISIONS)
def test_all_five_keys_together_and_their_doors_are_the_same_turn(
    moment: RuledMoment | None, decision: str
) -> None:
    given: Given = {
        act_key_for(one): at(one, DECISIONS["a replacement"](one), f"{one}-rule") for one in RULED
    }
    if moment is not None:
        given[act_key_for(moment)] = at(moment, DECISIONS[decision](moment), f"{moment}-rule")
    given["window"] = sliding_window(keep_recent_turns=2)
    assert set(given) == set(ACT_KEYS)
    played = compare(given)
    if moment is None or decision in ALLOWED:
        assert {row["moment"] for row in played.rows} == set(LOOP_MOMENTS) - {"window"}
        assert visits(played)


@pytest.mark.parametrize("pair", [("input", "output"), ("before_tool", "after_tool")])
def test_a_rule_in_both_buckets_of_a_pair_is_the_same_turn_by_its_door(pair: tuple[str, str]) -> None:
    class Both:
        name = "both"

        def on_message(self, message: Any) -> Any:
            return allow(f"{message.content} ({message.phase})", why="said where")

        def on_tool_call(self, call: Any) -> Any:
            return allow({"amount": call.args["amount"] + 1}, why="more")

        def on_tool_result(self, call: Any) -> Any:
            return allow(call.result["paid"], why="the sum alone")

    rule: Any = Both()
    turns: list[Played] = []
    for spell in ("act", "door"):
        builder, model = paying(LONG)
        if spell == "act":
            options: dict[str, Any] = {key: [rule] for key in pair}
            builder.act(**options)
        else:
            getattr(builder, "message_middleware" if "input" in pair else "tool_middleware")(rule)
        turns.append(Played(builder, model).go())
    act, door = turns
    assert act.rows == door.rows
    assert (said(act), act.requests, act.events) == (said(door), door.requests, door.events)
    assert any(row["changed"] for row in act.rows)


UNRULED: dict[str, Callable[[AgentBuilder], Any]] = {
    "act, empty": lambda builder: builder.act(),
    "act, None for every key": lambda builder: builder.act(**_each(None)),
    "act, empty buckets": lambda builder: builder.act(**{**_each([]), "window": None}),
    "doors without rules": lambda builder: builder.tool_middleware().message_middleware(),
    "all of it": lambda builder: builder.tool_middleware().act().message_middleware().tool_middleware(),
}


def _each(value: Any) -> dict[str, Any]:
    return dict.fromkeys(ACT_KEYS, value)


@pytest.mark.parametrize("unruled", UNRULED)
def test_an_agent_without_rules_is_one_that_never_heard_of_them(unruled: str) -> None:
    builder, model = paying(LONG)
    UNRULED[unruled](builder)
    played, bare = Played(builder, model).go(), play(replies=LONG)
    assert played.requests == bare.requests
    assert played.rows == bare.rows == []
    assert played.events == bare.events
    assert said(played) == said(bare)
    assert msgspec.to_builtins(played.facts[0]) == msgspec.to_builtins(bare.facts[0])


@pytest.mark.parametrize("unruled", UNRULED)
def test_without_rules_no_chain_is_walked_and_the_request_is_the_conversation(
    unruled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError

    for module, context in (
        (calls, "ToolCallContext"),
        (results, "ToolResultContext"),
        (contents, "MessageContext"),
    ):
        monkeypatch.setattr(module, context, never)
        monkeypatch.setattr(module, "judge", never)
    builder, model = paying()
    UNRULED[unruled](builder)
    played = Played(builder, model).go()
    assert (played.rows, "middleware.decision" in played.seen.types) == ([], False)
    assert played.requests == [
        b'{"system":"","messages":[%b],%b}' % (b",".join(said), TOOLS) for said in CONVERSATION
    ]


TOOLS = (
    b'"tools":[{"name":"pay","description":"Pay.","schema":{"additionalProperties":false,"properties":'
    b'{"amount":{"title":"Amount","type":"integer"}},"required":["amount"],"type":"object"}}],"model":"m"'
)
_ASKED = b'{"role":"user","text":"please pay","kind":"request"}'
_CALLED = (
    b'{"role":"assistant","text":"","calls":[{"id":"c1","name":"pay","args_json":"{\\"amount\\":5}",'
    b'"repeats":null}]}'
)
_READ = (
    b'{"role":"tool","call_id":"c1","tool_name":"pay","text":"{\\"paid\\":5,\\"card\\":\\"4111\\"}",'
    b'"refused":false}'
)
CONVERSATION = ([_ASKED], [_ASKED, _CALLED, _READ])


def test_a_chain_that_only_lets_pass_changes_no_request_either() -> None:
    ruled = play({act_key_for(moment): [rule_at(moment, answers(allow()), moment)] for moment in RULED})
    assert ruled.requests == play().requests
    assert len(ruled.rows) == 6
    assert (MESSAGE, len(PAYS)) == ("please pay", 2)

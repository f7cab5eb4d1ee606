"""A gate that is described wrongly is refused when the agent is built; one that never ran can be found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from file_ledger import on_file, select
from footprint_core import (
    AgentBuilder,
    AskPause,
    BuilderError,
    Permission,
    PermissionPolicy,
    allow,
    approve_once,
    ask,
    before_tool,
    check_in_declined,
    deny,
    on_message,
    sliding_window,
    tool,
)
from footprint_core.providers import call, reply
from story import answered, describe, run


def pay(amount: int) -> int:
    return amount


def _wrong(build: Callable[[AgentBuilder], object]) -> Callable[[], object]:
    return lambda: build(describe([], pay)[0])


def _rule(**hooks: Any) -> Any:
    return SimpleNamespace(name="gate", **hooks)


def _yes(_: Any) -> Any:
    return allow()


WRONG: dict[str, Callable[[], object]] = {
    "a misspelled key": _wrong(lambda b: b.act(before_tools=[before_tool("g")(_yes)])),  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    "a misspelled hook": _wrong(lambda b: b.act(before_tool=[_rule(on_toolcall=_yes)])),
    "a hook that is none": _wrong(lambda b: b.act(before_tool=[_rule(on_tool_call=None)])),
    "a hook that is no function": _wrong(lambda b: b.act(before_tool=[_rule(on_tool_call="ask")])),
    "a misspelled hook at the door": _wrong(lambda b: b.tool_middleware(_rule(on_tool_calls=_yes))),
    "a hook of another moment": _wrong(lambda b: b.act(before_tool=[_rule(on_message=_yes)])),
    "a message rule without a hook": _wrong(lambda b: b.message_middleware(_rule(on_messages=_yes))),
    "a rule that is a class": _wrong(lambda b: b.act(before_tool=[type("Gate", (), {"name": "gate"})])),  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    "a rule without a name": _wrong(lambda b: b.tool_middleware(before_tool(" ")(_yes))),
    "a rule that is no list": _wrong(lambda b: b.act(before_tool=before_tool("g")(_yes))),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    "two gates of one name": _wrong(
        lambda b: b.act(before_tool=[before_tool("g")(_yes), before_tool("g")(_yes)])
    ),
    "no time to answer": _wrong(lambda b: b.tool_middleware(before_tool("g", timeout=0)(_yes))),
    "a time that is no number": _wrong(lambda b: b.tool_middleware(_rule(on_tool_call=_yes, timeout="1 s"))),
    "a consent that is misspelled": lambda: tool(check_in="allways")(pay),  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    "a consent nobody awaits": lambda: tool(check_in=_never)(pay),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    "evidence of no consent": lambda: tool(evidence=lambda args: args)(pay),
    "a role there is not": lambda: PermissionPolicy.from_roles({"desk": ["pay"]}, role="dsk"),
    "a role whose tools are a text": lambda: PermissionPolicy.from_roles({"desk": "pay"}, role="desk"),
    "a checker without a check": _wrong(lambda b: b.permission(_rule(cheque=_yes))),
    "a second checker": _wrong(
        lambda b: [b.permission(PermissionPolicy.from_roles({"a": []}, role="a")) for _ in range(2)]
    ),
    "approvals that cover what?": lambda: approve_once(by="calls"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    "approvals about the letters of a word": lambda: approve_once(tools="pay"),
    "approvals about nothing": lambda: approve_once(tools=[]),
    "a blank question": lambda: ask(" "),
    "a question that is never open": lambda: ask("Pay?", expires_in=0),
    "a window that was not made": _wrong(lambda b: b.window(sliding_window)),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    "a schema that is none": _wrong(lambda b: b.output_schema({"type": "objekt"})),
    "a key that signs nothing": lambda: describe([], pay, checkpoint_key=b"short"),
}


async def _never(_: Any) -> bool:
    return True


@pytest.mark.parametrize("build", WRONG.values(), ids=WRONG)
def test_c004_a_gate_that_is_described_wrongly_is_refused_when_it_is_made(
    build: Callable[[], object],
) -> None:
    with pytest.raises(BuilderError):
        build()


class _Odd:
    """A checker whose answer is misspelled."""

    name = "odd"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def check(self, _: Any, /) -> Any:
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [None, True, "allow", Permission(result="alow")],  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ids=["none", "true", "a word", "a misspelled word"],
)
@pytest.mark.parametrize("gate", ["permission", "rule"])
def test_c004_a_gate_whose_answer_is_none_there_is_stays_closed(gate: str, answer: Any) -> None:
    ran: list[int] = []

    def counts(amount: int) -> int:
        ran.append(amount)
        return amount

    builder, _ = describe([reply(calls=[call("c1", "counts", {"amount": 5})]), reply(text="done")], counts)
    if gate == "permission":
        builder.permission(_Odd(answer))
    else:
        builder.tool_middleware(before_tool("odd")(lambda _: answer))
    answered(run(builder.build().run("go")))
    assert ran == []


NEVER_RAN = """
SELECT DISTINCT m.key AS moment, json_extract(r.value, '$.name') AS rule
FROM facts AS f, json_each(f.extra, '$.rules') AS m, json_each(m.value) AS r
WHERE f.kind = 'run.configured'
  AND NOT EXISTS (
    SELECT 1 FROM decisions AS d
    WHERE d.moment = m.key AND d.middleware = json_extract(r.value, '$.name') AND d.answer <> 'person'
  )
  AND NOT EXISTS (
    SELECT 1 FROM window_records AS w
    WHERE m.key = 'window' AND w.strategy = json_extract(r.value, '$.name')
  )
ORDER BY 1, 2
"""


def test_c019_rules_that_never_ran_are_a_query(tmp_path: Path) -> None:
    path = tmp_path / "f.db"
    replies = [
        reply(calls=[call("c1", "pay", {"amount": 500})]),
        reply(text="declined"),
        reply(calls=[call("c1", "pay", {"amount": 5})]),
        reply(text="paid"),
    ]
    large = before_tool("large")(lambda c: ask("So much?") if c.args["amount"] > 100 else allow())
    builder, _ = describe(
        replies,
        pay,
        ledger=on_file(path),
        act={
            "input": [on_message("scrub")(_yes)],
            "before_tool": [large, before_tool("behind")(_yes)],
            "window": sliding_window(keep_recent_turns=50),
        },
    )
    agent = builder.build()

    async def until_declined() -> None:
        paused = await agent.run("pay much")
        assert isinstance(paused, AskPause)
        answered(await agent.resume(paused.checkpoint, check_in_declined(by="dana")))

    run(until_declined())
    assert select(path, NEVER_RAN) == [("before-tool", "behind"), ("window", "sliding-window")]
    answered(run(agent.run("pay little")))
    assert select(path, NEVER_RAN) == [("window", "sliding-window")]


HOOKS = {
    "on_message": {"input": ["input"], "output": ["output"]},
    "on_tool_call": {"before_tool": ["before-tool"]},
    "on_tool_result": {"after_tool": ["after-tool"]},
}
"""By hook and key, the moments at which a rule with that hook alone is asked."""


@pytest.mark.parametrize("key", ["input", "before_tool", "after_tool", "output"])
@pytest.mark.parametrize("hook", HOOKS)
def test_c019_a_rule_under_a_key_is_asked_there_or_refused(hook: str, key: str) -> None:
    asked: list[str] = []

    def note(_: Any) -> Any:
        asked.append(hook)
        return allow()

    act: Any = {key: [_rule(**{hook: note})]}
    builder, _ = describe([reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")], pay)
    moments = HOOKS[hook].get(key)
    if moments is None:
        with pytest.raises(BuilderError, match="gate"):
            builder.act(**act)
        return
    rows = answered(run(builder.act(**act).build().run("go"))).decisions
    assert asked == [hook]
    assert [row.moment for row in rows if row.duration_us is not None] == moments


def test_c019_a_rule_with_every_hook_is_asked_at_every_moment_of_its_doors() -> None:
    asked: list[str] = []

    def noting(moment: str) -> Any:
        def note(_: Any) -> Any:
            asked.append(moment)
            return allow()

        return note

    whole = _rule(
        on_message=noting("message"),
        on_tool_call=noting("call"),
        on_tool_result=noting("result"),
    )
    replies = [reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")]
    builder, _ = describe(replies, pay)
    builder.tool_middleware(whole).message_middleware(whole)
    rows = answered(run(builder.build().run("go"))).decisions
    assert asked == ["message", "call", "result", "message"]
    assert [row.moment for row in rows] == ["input", "before-tool", "after-tool", "output"]
    with pytest.raises(BuilderError, match="gate"):
        describe([], pay)[0].tool_middleware(before_tool("gate")(lambda _: deny("no")), _rule(on_call=_yes))

"""What cannot go on is refused by name: nothing acts, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from file_ledger import on_file
from footprint_core import (
    Agent,
    FootprintError,
    Ledger,
    MemoryLedger,
    MessageDeniedError,
    MessageLostError,
    NoConversationError,
    Pause,
    PendingQuestionError,
    ProviderError,
    RecoverError,
    StaleDecisionError,
    Tool,
    abandon_run,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    check_in_declined,
    deny,
    on_message,
    tool,
)
from footprint_core.facts import (
    CallTaken,
    Decided,
    Fact,
    MessageTaken,
    ModelAsked,
    ModelReplied,
    RunConfigured,
    ToolFinished,
    ToolIntended,
)
from footprint_core.ledger import Batch
from footprint_core.mcp import mcp_serve
from footprint_core.providers import Scripted, call, reply
from footprint_observe import Redaction
from prefixes import Photographed, cut_behind, facts_of_run
from served import Kept, served
from story import answered, describe, run

PAYS = (reply(calls=[call("1", "pay", {"amount": 5})]), reply(text="ok"))


@tool
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
async def tell() -> str:
    """Tell."""
    return "told"


def agent_of(
    ledger: Ledger, *tools: Tool, replies: Any = PAYS, act: Any = None, **options: Any
) -> tuple[Agent, Scripted]:
    builder, model = describe(replies, *(tools or (pay,)), ledger=ledger, act=act, **options)
    return builder.build(), model


def died(kind: type[Any] = ModelAsked, nth: int = 1, act: Any = None) -> tuple[MemoryLedger, str]:
    whole = MemoryLedger()
    run_id = answered(run(agent_of(whole, act=act)[0].run("go"))).run_id
    return cut_behind(whole, run_id, kind, nth), run_id


def refused(ledger: Ledger, run_id: str, agent: Agent, error: type[FootprintError] = RecoverError) -> str:
    """The refusal of a recovery, which wrote nothing."""
    before = ledger.entries(run_id)
    with pytest.raises(error) as caught:
        run(agent.recover(run_id))
    assert ledger.entries(run_id) == before
    return str(caught.value)


def test_a_run_that_is_not_in_the_ledger_is_refused_and_a_strange_id_is_not_quoted() -> None:
    agent, model = agent_of(MemoryLedger())
    assert "The run abc is not in this ledger" in refused(MemoryLedger(), "abc", agent)
    assert "hunter2 " not in refused(MemoryLedger(), "my password is hunter2 !", agent)
    no_text: Any = 5
    with pytest.raises(RecoverError, match="as a text"):
        run(agent.recover(no_text))
    assert not model.requests


@pytest.mark.parametrize("how", ["answered", "denied", "failed"])
def test_a_run_that_is_over_is_refused_and_told_how_it_ended(how: str) -> None:
    ledger = MemoryLedger()
    decides: Any = deny("no") if how == "denied" else allow()
    rule = on_message("rule", version="1")(lambda _: decides)
    replies = [] if how == "failed" else [reply(text="ok")]
    agent, _ = agent_of(ledger, replies=replies, act={"output": [rule]})
    if how == "answered":
        run(agent.run("go"))
    else:
        with pytest.raises((MessageDeniedError, ProviderError)):
            run(agent.run("go"))
    assert agent.last_run_id
    assert f"is over, it is {how}" in refused(ledger, agent.last_run_id, agent)


def asking() -> Any:
    return {"before_tool": [before_tool("asks", version="1")(lambda _: ask("Pay?"))]}


def test_a_run_that_waits_for_a_person_is_refused_and_answered_with_resume() -> None:
    ledger = MemoryLedger()
    paused = run(agent_of(ledger, act=asking())[0].run("go"))
    assert isinstance(paused, Pause)
    agent, _ = agent_of(ledger, act=asking(), replies=PAYS[1:])
    said = refused(ledger, paused.run_id, agent)
    assert "waits for a person's answer about pay (call 1); answer it with resume()" in said
    # Also when a process died that was about to take the answer.
    shorter = MemoryLedger()
    for entry in ledger.entries(paused.run_id):
        shorter.append_inline(Batch(run_id=paused.run_id, segment=1, entries=(entry,)))
    out = run(agent.resume(paused.checkpoint, check_in_approved(by="dana")))
    opening = [e for e in ledger.entries(paused.run_id) if isinstance(e.fact, RunConfigured)][1]
    shorter.append_inline(Batch(run_id=paused.run_id, segment=2, entries=(opening,)))
    other, _ = agent_of(shorter, act=asking(), replies=PAYS[1:])
    assert "waits for a person" in refused(shorter, paused.run_id, other)
    again = answered(run(other.resume(paused.checkpoint, check_in_approved(by="dana"))))
    assert again.text == answered(out).text == "ok"


def test_a_session_with_an_open_question_recovers_nothing() -> None:
    ledger, run_id = died()
    builder, _ = describe([*PAYS, *PAYS], pay, ledger=ledger, act=asking())
    agent = builder.build()
    run(agent.run("go"))
    refused(ledger, run_id, agent, PendingQuestionError)


def test_a_run_whose_question_expired_cannot_go_on() -> None:
    class Late:
        """A clock that is far ahead."""

        def __init__(self) -> None:
            self.time = 10**18

        def now(self) -> int:
            self.time += 1
            return self.time

    ledger = MemoryLedger()
    rule = before_tool("asks", version="1")(lambda _: ask("Pay?", expires_in=1))
    paused = run(agent_of(ledger, act={"before_tool": [rule]})[0].run("go"))
    assert isinstance(paused, Pause)
    agent, _ = agent_of(ledger, act={"before_tool": [rule]})
    spec: Any = agent._spec
    agent._session._spec = msgspec.structs.replace(spec, clock=Late)
    with pytest.raises(StaleDecisionError):
        run(agent.resume(paused.checkpoint, check_in_approved(by="dana")))
    assert "did not come in time" in refused(ledger, paused.run_id, agent)


def test_a_run_a_person_gave_up_is_refused() -> None:
    ledger, run_id = died()
    run(abandon_run(ledger, run_id, by="dana", reason="stuck"))
    assert "was abandoned by a person" in refused(ledger, run_id, agent_of(ledger)[0])


def test_a_run_of_another_agent_is_refused_and_both_are_named() -> None:
    ledger, run_id = died()
    other = Agent.create(provider=Scripted([]), model="m", name="other").tool(pay).ledger(ledger).build()
    assert "belongs to the agent 'tested', not to 'other'" in refused(ledger, run_id, other)


def test_a_run_that_took_no_message_did_nothing_and_is_to_be_started_again() -> None:
    ledger, run_id = died(RunConfigured)
    assert "took no message before its process died" in refused(ledger, run_id, agent_of(ledger)[0])
    ledger, run_id = died(Decided, act={"input": [on_message("in", version="1")(lambda _: allow())]})
    assert "took no message" in refused(ledger, run_id, agent_of(ledger)[0])


def test_a_message_that_was_refused_does_not_go_on() -> None:
    ledger = MemoryLedger()
    act: Any = {"input": [on_message("in", version="1")(lambda _: deny("no"))]}
    agent, _ = agent_of(ledger, act=act)
    with pytest.raises(MessageDeniedError):
        run(agent.run("go"))
    assert agent.last_run_id
    shorter = cut_behind(ledger, agent.last_run_id, MessageTaken)
    refused(shorter, agent.last_run_id, agent_of(shorter, act=act)[0])


def test_the_call_of_a_client_is_refused() -> None:
    kept = Kept()
    run(served(mcp_serve(name="till", tools=[pay], ledger=kept), "pay", {"amount": 5}))
    (run_id,) = (one for one in kept.runs if one != "closed")
    ledger = cut_behind(kept.kept, run_id, CallTaken)
    builder = Agent.create(provider=Scripted([]), model="m", name="till", id=_agent_id(ledger, run_id))
    assert "is a call of a client" in refused(ledger, run_id, builder.tool(pay).ledger(ledger).build())


def _agent_id(ledger: Ledger, run_id: str) -> str:
    opening = facts_of_run(ledger, run_id)[0]
    assert isinstance(opening, RunConfigured)
    return opening.agent_id


def rule(name: str, version: str = "1") -> Any:
    return before_tool(name, version=version)(lambda _: allow())


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ([rule("a")], [rule("b")], "had the rules a at before-tool, and here they are b"),
        ([rule("a"), rule("b")], [rule("b"), rule("a")], "rules a, b at before-tool, and here they are b, a"),
        ([rule("a")], [], "had the rules a at before-tool, and here they are none"),
        ([rule("a")], [rule("a", "2")], "had another version of the rule a at before-tool"),
    ],
)
def test_an_agent_whose_rules_differ_is_refused_by_the_moment(
    then: list[Any], now: list[Any], said: str
) -> None:
    ledger, run_id = died(act={"before_tool": then})
    assert said in refused(ledger, run_id, agent_of(ledger, act={"before_tool": now})[0])


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ((tell,), "had the tool pay"),
        ((pay, tell), "did not have the tool tell"),
    ],
)
def test_an_agent_whose_tools_differ_is_refused_by_the_tool(tools: tuple[Tool, ...], said: str) -> None:
    ledger, run_id = died()
    assert said in refused(ledger, run_id, agent_of(ledger, *tools)[0])


def test_tools_in_another_order_make_other_requests_and_are_refused() -> None:
    whole = MemoryLedger()
    run_id = answered(run(agent_of(whole, pay, tell)[0].run("go"))).run_id
    ledger = cut_behind(whole, run_id, ModelAsked)
    assert "offered the tool pay at another place" in refused(ledger, run_id, agent_of(ledger, tell, pay)[0])


def test_a_call_that_was_taken_up_is_not_made_with_the_tool_of_another_server() -> None:
    ledger, run_id = died(CallTaken)
    elsewhere = msgspec.structs.replace(pay, source="billing")
    assert "comes from billing" in refused(ledger, run_id, agent_of(ledger, elsewhere)[0])


class Takes:
    """A redactor that takes one value of one kind of fact."""

    def __init__(self, kind: type[Any], field: str, only: Callable[[Any], bool] = lambda _: True) -> None:
        self._kind, self._field, self._only = kind, field, only

    def redact(self, fact: Fact) -> tuple[Fact, Any]:
        if not isinstance(fact, self._kind) or not self._only(fact):
            return fact, ()
        gone: dict[str, Any] = {self._field: "[redacted]"}
        return msgspec.structs.replace(fact, **gone), ((f"{self._field}.x", "mask"),)


def changes() -> Any:
    doubles = before_tool("doubles", version="1")(lambda c: allow({"amount": c.args["amount"] * 2}, why="x"))
    return {"before_tool": [doubles, *asking()["before_tool"]]}


def redacted(taken: Takes, kind: type[Any], nth: int, act: Any, **options: Any) -> tuple[MemoryLedger, str]:
    """A run that was kept without a value and cut off."""
    idempotent = tool(name="pay", idempotent=options.pop("idempotent", False))(pay.body)
    answer: Any = options.pop("answer", check_in_approved(by="dana"))
    whole = MemoryLedger(redact=taken)
    agent, _ = agent_of(whole, idempotent, act=act)
    out = run(agent.run("go", identity={"user": "ada"}))
    if isinstance(out, Pause):
        out = run(agent.resume(out.checkpoint, answer))
    cut_off = cut_behind(whole, out.run_id, kind, nth)
    return cut_off, out.run_id


WRAPS: Any = {"after_tool": [after_tool("wraps", version="1")(lambda ended: allow([ended.result], why="x"))]}
LOST: list[tuple[str, str, Takes, type[Any], int, Any, dict[str, Any]]] = [
    ("message.taken", "text", Takes(MessageTaken, "text"), ModelAsked, 1, None, {}),
    ("model.replied", "calls", Takes(ModelReplied, "calls"), CallTaken, 1, None, {}),
    ("run.configured", "identity", Takes(RunConfigured, "identity"), ModelAsked, 1, None, {}),
    ("tool.finished", "result", Takes(ToolFinished, "result"), ToolFinished, 1, None, {}),
    ("tool.intended", "args", Takes(ToolIntended, "args"), ToolFinished, 1, WRAPS, {}),
    ("tool.intended", "args", Takes(ToolIntended, "args"), ToolIntended, 1, None, {"idempotent": True}),
    ("decision", "after", Takes(Decided, "after", lambda f: f.changed), Decided, 3, changes(), {}),
    ("model.replied", "text", Takes(ModelReplied, "text"), ModelReplied, 2, None, {}),
    (
        "decision",
        "why",
        Takes(Decided, "why", lambda f: f.answer == "person"),
        Decided,
        2,
        asking(),
        {"answer": check_in_declined(by="dana", note="no")},
    ),
]


@pytest.mark.parametrize(("kind", "field", "taken", "behind", "nth", "act", "options"), LOST)
def test_a_value_that_is_needed_and_was_redacted_is_named(
    kind: str, field: str, taken: Takes, behind: type[Any], nth: int, act: Any, options: Any
) -> None:
    ledger, run_id = redacted(taken, behind, nth, act, **options)
    # Read back with its marks, as a file gives them.
    marked = _with_marks(ledger, run_id, taken)
    same = tool(name="pay", idempotent=options.get("idempotent", False))(pay.body)
    said = refused(marked, run_id, agent_of(marked, same, act=act)[0], MessageLostError)
    assert f"The {field} of a {kind} entry of the run {run_id}" in said


def _with_marks(ledger: MemoryLedger, run_id: str, taken: Takes) -> MemoryLedger:
    marked = MemoryLedger(redact=taken)
    segment = 0
    for entry in ledger.entries(run_id):
        segment += isinstance(entry.fact, RunConfigured)
        marked.append_inline(Batch(run_id=run_id, segment=segment, entries=(entry,)))
    return marked


@pytest.mark.parametrize("behind", [ToolFinished, ToolIntended])
def test_a_value_that_nobody_is_shown_again_may_be_gone(behind: type[Any]) -> None:
    taken = Takes(ToolIntended, "args")
    ledger, run_id = redacted(taken, behind, 1, None)
    marked = _with_marks(ledger, run_id, taken)
    assert answered(run(agent_of(marked, replies=PAYS[1:])[0].recover(run_id))).text == "ok"


def test_a_run_behind_one_that_is_not_here_is_refused() -> None:
    whole = MemoryLedger()
    agent, _ = agent_of(whole, replies=[reply(text="one"), reply(text="two")])
    run(agent.run("go"))
    second = answered(run(agent.follow_up("on"))).run_id
    alone = MemoryLedger()
    for entry in whole.entries(second)[:3]:
        alone.append_inline(Batch(run_id=second, segment=1, entries=(entry,)))
    refused(alone, second, agent_of(alone)[0], NoConversationError)


@pytest.mark.parametrize(("field", "kind"), [("args.amount", "model.replied"), ("result", "tool.finished")])
def test_what_the_policy_of_a_file_took_is_named(tmp_path: Path, field: str, kind: str) -> None:
    whole = Photographed(tmp_path / "l.db", redact=Redaction.of(fields=[field]))
    wraps: Any = {"after_tool": [after_tool("wraps", version="1")(lambda _: allow())]}
    run_id = answered(run(agent_of(whole, act=wraps)[0].run("go"))).run_id
    run(whole.close())
    copies = [on_file(copy) for copy in whole.copies]
    finished = [any(isinstance(f, ToolFinished) for f in facts_of_run(one, run_id)) for one in copies]
    ledger = copies[finished.index(True)]
    said = refused(ledger, run_id, agent_of(ledger, act=wraps)[0], MessageLostError)
    assert f"of a {kind} entry" in said

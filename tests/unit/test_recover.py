"""A run whose process died goes on: nothing that is on record happens again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from footprint_core import (
    Agent,
    Ledger,
    MemoryLedger,
    Tool,
    ToolCallContext,
    ToolContext,
    ToolResultContext,
    after_tool,
    allow,
    before_tool,
    sliding_window,
    static_credentials,
    tool,
)
from footprint_core.facts import (
    CallAnswered,
    CallTaken,
    Decided,
    IterationEnded,
    MessageTaken,
    ModelAsked,
    ModelReplied,
    RunRecovered,
    ToolFinished,
    ToolIntended,
    WindowVisited,
)
from footprint_core.providers import Completed, Scripted, call, reply
from prefixes import cut, cut_behind, facts_of_run, read
from story import answered, describe, run

PAYS = (
    reply(calls=[call("1", "pay", {"amount": 5}), call("2", "pay", {"amount": 6})]),
    reply(calls=[call("1", "pay", {"amount": 7})]),
    reply(text="paid"),
)


class Till:
    """A tool that pays, and agents over it."""

    def __init__(self, *, idempotent: bool = False, **options: Any) -> None:
        self.paid: list[int] = []
        self.keys: list[str] = []
        self.idempotent = idempotent
        self.options = options

    def agent(self, replies: Any, ledger: Ledger | None = None, act: Any = None) -> tuple[Agent, Scripted]:
        builder, model = describe(replies, self._tool(), ledger=ledger, act=act, **self.options)
        return builder.build(), model

    def _tool(self) -> Tool:
        @tool(idempotent=self.idempotent)
        async def pay(amount: int, context: ToolContext, note: str = "-") -> dict[str, Any]:
            self.paid.append(amount)
            self.keys.append(context.idempotency_key)
            return {"paid": amount, "note": note}

        return pay


def died(
    kind: type[Any], nth: int = 1, *, replies: Any = PAYS, act: Any = None, **options: Any
) -> tuple[MemoryLedger, str]:
    """What a process left that died behind the nth fact of a kind, and the run."""
    ledger = MemoryLedger()
    agent, _ = Till(**options).agent(replies, ledger, act)
    out = answered(run(agent.run("pay", identity={"user": "ada"})))
    return cut_behind(ledger, out.run_id, kind, nth), out.run_id


def test_a_finished_call_does_not_run_again_and_its_result_is_the_one_on_record() -> None:
    ledger, run_id = died(ToolFinished)
    till = Till()
    agent, model = till.agent(PAYS[1:], ledger)
    out = answered(run(agent.recover(run_id)))
    assert (out.text, out.run_id) == ("paid", run_id)
    assert till.paid == [6, 7]
    assert read(model, 0) == ['{"paid":5,"note":"-"}', '{"paid":6,"note":"-"}']
    assert agent.last_run_id == run_id


def test_a_call_that_may_have_run_is_not_run_again_and_the_model_is_told_so_by_name() -> None:
    ledger, run_id = died(ToolIntended)
    till = Till()
    agent, model = till.agent(PAYS[1:], ledger)
    answered(run(agent.recover(run_id)))
    assert till.paid == [6, 7]
    assert read(model, 0)[0] == (
        "The tool pay may have run before the process died, so it was not run again; find out what it did "
        "before you call it again."
    )
    first = next(fact for fact in facts_of_run(ledger, run_id) if isinstance(fact, CallAnswered))
    assert (first.status, first.executed, first.refused) == ("blocked", False, True)


def test_a_call_in_doubt_of_an_idempotent_tool_runs_again_with_its_first_key_and_its_args() -> None:
    ledger, run_id = died(ToolIntended, 2, idempotent=True)
    intents = [(e.position, e.fact) for e in ledger.entries(run_id) if isinstance(e.fact, ToolIntended)]
    till = Till(idempotent=True)
    agent, model = till.agent(PAYS[1:], ledger)
    answered(run(agent.recover(run_id)))
    assert till.paid == [6, 7]
    assert till.keys[0] == f"{run_id}:{intents[1][0]}"
    assert read(model, 0) == ['{"paid":5,"note":"-"}', '{"paid":6,"note":"-"}']
    # The first attempt's intent is the only one, and another fact was durable before the second.
    facts = facts_of_run(ledger, run_id)
    assert sum(isinstance(fact, ToolIntended) for fact in facts) == 3
    recovered = next(i for i, fact in enumerate(facts) if isinstance(fact, RunRecovered))
    assert recovered < [i for i, fact in enumerate(facts) if isinstance(fact, ToolFinished)][1]


def test_what_makes_an_attempt_known_is_durable_before_it_begins() -> None:
    ledger, run_id = died(ToolIntended, idempotent=True)
    found: list[bool] = []

    @tool(idempotent=True)
    async def pay(amount: int, note: str = "-") -> str:
        found.append(any(isinstance(fact, RunRecovered) for fact in facts_of_run(ledger, run_id)))
        return f"{amount} {note}"

    run(describe(PAYS[1:], pay, ledger=ledger)[0].build().recover(run_id))
    assert found[0]


@pytest.mark.parametrize("together", [True, False])
def test_calls_in_doubt_run_together_where_calls_do(together: bool) -> None:
    running, most = 0, 0

    @tool(idempotent=True)
    async def pay(amount: int, note: str = "-") -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return f"{amount} {note}"

    def agent(replies: Any, ledger: Ledger, *, parallel: bool) -> Agent:
        return describe(replies, pay, ledger=ledger, parallel_tools=parallel)[0].build()

    whole = MemoryLedger()
    run_id = answered(run(agent(PAYS, whole, parallel=True).run("pay"))).run_id
    ledger = cut_behind(whole, run_id, ToolIntended, 2)
    running, most = 0, 0
    assert answered(run(agent(PAYS[1:], ledger, parallel=together).recover(run_id))).text == "paid"
    assert most == (2 if together else 1)


def test_a_body_that_was_cancelled_may_have_run_where_nothing_says_that_the_run_ended() -> None:
    async def play() -> None:
        whole = MemoryLedger()
        entered = asyncio.Event()

        @tool
        async def pay(amount: int) -> str:
            entered.set()
            await asyncio.sleep(60)
            return f"{amount}"

        first = describe(PAYS, pay, ledger=whole)[0].build()
        running = asyncio.ensure_future(first.run("pay"))
        await entered.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        run_id = first.last_run_id or ""
        ledger = cut_behind(whole, run_id, ToolFinished)
        builder, model = describe([reply(text="ok")], Till()._tool(), ledger=ledger)
        answered(await builder.build().recover(run_id))
        assert "may have run" in read(model)[0]

    run(play())


def test_what_a_recovery_found_is_on_record_as_numbers() -> None:
    ledger, run_id = died(ToolIntended, 3)
    agent, _ = Till().agent(PAYS[2:], ledger)
    run(agent.recover(run_id))
    (fact,) = (fact for fact in facts_of_run(ledger, run_id) if isinstance(fact, RunRecovered))
    assert (fact.finished, fact.in_doubt) == (2, 1)


def test_a_call_in_doubt_does_not_run_with_other_args_than_those_on_record() -> None:
    ledger, run_id = died(ToolIntended, idempotent=True)
    ran: list[tuple[int, bool]] = []

    @tool(idempotent=True)
    async def pay(amount: int, note: str = "-", urgent: bool = True) -> str:
        ran.append((amount, urgent))
        return note

    builder, model = describe([reply(text="ok")], pay, ledger=ledger)
    answered(run(builder.build().recover(run_id)))
    assert ran == [(6, True)]
    assert "may have run" in read(model)[0]


def test_a_credential_is_asked_for_again_and_a_call_in_doubt_is_not_run_without_one() -> None:
    seen: list[Any] = []

    def agent(ledger: MemoryLedger, replies: Any, secrets: Any) -> tuple[Agent, Scripted]:
        @tool(idempotent=True, needs="bank")
        async def pay(amount: int, context: ToolContext) -> str:
            seen.append((amount, context.credential))
            return "paid"

        builder, model = describe(replies, pay, ledger=ledger)
        return builder.credentials(secrets).build(), model

    whole = MemoryLedger()
    one = [reply(calls=[call("1", "pay", {"amount": 5})]), reply(text="ok")]
    out = answered(run(agent(whole, one, static_credentials({"bank": "hunter22"}))[0].run("go")))
    for secrets, runs in (({"bank": "hunter22"}, 1), ({}, 0)):
        seen.clear()
        ledger = cut_behind(whole, out.run_id, ToolIntended)
        again, model = agent(ledger, one[1:], static_credentials(secrets))
        run(again.recover(out.run_id))
        assert len(seen) == runs
        assert ("may have run" in read(model)[0]) is not bool(runs)


def test_a_request_without_a_reply_goes_out_again_at_the_same_iteration() -> None:
    ledger, run_id = died(ModelAsked, 2)
    agent, model = Till().agent(PAYS[1:], ledger)
    answered(run(agent.recover(run_id)))
    assert len(model.requests) == 2
    iterations = [f.iteration for f in facts_of_run(ledger, run_id) if isinstance(f, ModelAsked)]
    assert iterations == [1, 2, 2, 3]


def test_a_request_that_goes_out_again_spends_no_budget() -> None:
    options: Any = {"max_iterations": 3}
    ledger, run_id = died(ModelAsked, 3, **options)
    agent, _ = Till(**options).agent(PAYS[2:], ledger)
    out = answered(run(agent.recover(run_id)))
    assert (out.text, out.stopped_early) == ("paid", None)


def test_the_window_of_a_request_that_goes_out_again_is_not_shaped_twice() -> None:
    def agent(ledger: MemoryLedger, replies: Any) -> tuple[Agent, Scripted]:
        builder, model = describe(replies, Till()._tool(), ledger=ledger)
        return builder.window(sliding_window(keep_recent_turns=1)).build(), model

    whole = MemoryLedger()
    first, undisturbed = agent(whole, PAYS)
    run_id = answered(run(first.run("pay"))).run_id
    ledger = cut_behind(whole, run_id, ModelAsked, 3)
    again, model = agent(ledger, PAYS[2:])
    run(again.recover(run_id))
    visits = [f for f in facts_of_run(ledger, run_id) if isinstance(f, WindowVisited)]
    assert [f for f in facts_of_run(whole, run_id) if isinstance(f, WindowVisited)] == visits
    assert [m.text for m in model.requests[0].messages] == [m.text for m in undisturbed.requests[2].messages]


@pytest.mark.parametrize("kind", [MessageTaken, ModelReplied, CallTaken, CallAnswered, IterationEnded])
def test_what_is_on_record_is_not_asked_for_again(kind: type[Any]) -> None:
    ledger, run_id = died(kind)
    before = facts_of_run(ledger, run_id)
    replied = sum(isinstance(fact, ModelReplied) for fact in before)
    till = Till()
    agent, model = till.agent(PAYS[replied:], ledger)
    assert answered(run(agent.recover(run_id))).text == "paid"
    model.assert_used()
    ran = sum(isinstance(fact, ToolFinished) for fact in before)
    assert till.paid == [5, 6, 7][ran:]
    taken = [fact for fact in facts_of_run(ledger, run_id) if isinstance(fact, CallTaken)]
    assert len(taken) == 3


def test_rules_that_had_decided_about_a_call_without_an_intent_are_asked_again_from_the_top() -> None:
    asked: list[int] = []

    @before_tool("doubles", version="1")
    def doubles(given: ToolCallContext) -> Any:
        asked.append(given.args["amount"])
        return allow({"amount": given.args["amount"] * 2}, why="doubled")

    act: Any = {"before_tool": [doubles]}
    # A cut behind the row alone: no barrier stood behind it.
    whole = MemoryLedger()
    out = answered(run(Till().agent(PAYS, whole, act)[0].run("pay")))
    rows = [entry.position for entry in whole.entries(out.run_id) if isinstance(entry.fact, Decided)]
    ledger = cut(whole, out.run_id, rows[0])
    asked.clear()
    till = Till()
    agent, _ = till.agent(PAYS[1:], ledger, act)
    run(agent.recover(out.run_id))
    assert asked == [5, 6, 7]
    assert till.paid == [10, 12, 14]


def test_a_result_that_no_rule_had_seen_goes_through_the_rules_with_the_args_that_ran() -> None:
    shown: list[Any] = []

    @after_tool("looks", version="1")
    def looks(ended: ToolResultContext) -> Any:
        shown.append((ended.args, ended.result, ended.failed, ended.identity))
        return allow("seen", why="looked")

    act: Any = {"after_tool": [looks]}
    ledger, run_id = died(ToolFinished, act=act)
    shown.clear()
    till = Till()
    agent, model = till.agent(PAYS[1:], ledger, act)
    run(agent.recover(run_id))
    args = {"amount": 5, "note": "-"}
    assert shown[0] == (args, {"paid": 5, "note": "-"}, False, {"user": "ada"})
    assert till.paid == [6, 7]
    assert read(model, 0) == ["seen", "seen"]


def test_a_tool_that_failed_is_read_as_failed() -> None:
    def agent(ledger: MemoryLedger, replies: list[Completed]) -> tuple[Agent, Scripted]:
        @tool
        async def breaks() -> None:
            raise LookupError("no such account")

        builder, model = describe(replies, breaks, ledger=ledger)
        return builder.build(), model

    whole = MemoryLedger()
    said = [reply(calls=[call("1", "breaks", {})]), reply(text="ok")]
    run_id = answered(run(agent(whole, said)[0].run("go"))).run_id
    ledger = cut_behind(whole, run_id, ToolFinished)
    again, model = agent(ledger, said[1:])
    run(again.recover(run_id))
    assert read(model) == ["no such account"]
    (fact,) = (f for f in facts_of_run(ledger, run_id) if isinstance(f, CallAnswered))
    assert (fact.status, fact.error_class, fact.executed) == ("failed", "LookupError", True)

"""A pause is answered once: a refusal uses nothing up, and the answer is on record before anything acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asked import DONE, NO, YES, Checker, Rule, Till, asks, edited, pays, posted, until_asked
from file_ledger import on_file
from footprint_core import (
    LedgerBusyError,
    MemoryLedger,
    PendingQuestionError,
    Permission,
    ResumeError,
    StaleDecisionError,
    ToolCallContext,
    allow,
    ask,
    check_in_approved,
    pause_here,
    tool,
)
from footprint_core.facts import PauseAnswered, PauseClosed, ToolFinished
from footprint_core.mcp import mock_mcp_client
from footprint_core.session import Session
from story import answered, run

KEY = b"a key of sixteen bytes and more"


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made = MemoryLedger() if request.param == "memory" else on_file(tmp_path / "l.db")
    yield made
    run(made.close())


def same(till: Till, **options: Any) -> Any:
    """An agent of the description that asked."""
    return till.agent([DONE] * 3, [asks()], **options)


def of_another_source(till: Till) -> Any:
    return till.agent(DONE, [asks()], mock_mcp_client("elsewhere", [till.pay()]).tools_now()[0])


def left(checkpoint: Any) -> Any:
    return checkpoint


REFUSED: dict[str, tuple[Callable[[Till], Any], Callable[[Any], Any], Any]] = {
    "no checkpoint": (same, lambda _: {"version": 1}, YES),
    "an edit": (same, lambda c: edited(c, "call.args.amount", 1), YES),
    "an edit under a fresh digest": (same, lambda c: edited(c, "call.args.amount", 1, sealed=True), YES),
    "calls that are damaged": (same, lambda c: edited(c, "held", [[1, {}]], sealed=True), YES),
    "another agent": (lambda till: same(till, id="other"), left, YES),
    "other rules": (lambda till: till.agent(DONE, [asks(), Rule("new")]), left, YES),
    "another source": (of_another_source, left, YES),
    "a key it is not signed with": (lambda till: same(till, checkpoint_key=KEY), left, YES),
    "no decision": (same, left, "yes"),
    "a decision of nobody": (same, left, check_in_approved(by=" ")),
    "nothing": (same, left, None),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_resume_that_is_refused_leaves_the_ledger_as_it_was_and_the_pause_answerable(
    why: str, ledger: Any
) -> None:
    build, damage, answer = REFUSED[why]
    till, permission = Till(ledger), Checker()
    pause = run(until_asked(till.agent(pays(500), [asks()], permission=permission)))
    entries, told = ledger.entries(pause.run_id), len(till.seen.events)
    with pytest.raises(ResumeError):
        run(build(till).resume(damage(posted(pause.checkpoint)), answer))
    assert ledger.entries(pause.run_id) == entries
    assert len(till.seen.events) == told
    assert (till.paid, till.model.requests) == ([], [])
    answered(run(same(till).resume(pause.checkpoint, YES)))
    assert till.paid == [500]


def test_a_session_with_another_question_open_refuses_and_leaves_the_pause_answerable(ledger: Any) -> None:
    till, other = Till(ledger), Till(ledger)
    pause = run(until_asked(till.agent(pays(500), [asks()])))
    busy = other.agent(pays(600), [asks()])
    run(until_asked(busy))
    entries = ledger.entries(pause.run_id)
    with pytest.raises(PendingQuestionError):
        run(busy.resume(pause.checkpoint, YES))
    assert ledger.entries(pause.run_id) == entries
    answered(run(same(till).resume(pause.checkpoint, YES)))


@pytest.mark.parametrize("kind", ["ask", "check-in", "human"])
def test_a_second_answer_to_one_pause_is_stale_whoever_gives_it_and_runs_nothing(
    kind: str, ledger: Any
) -> None:
    def agent(till: Till, said: Any) -> Any:
        @tool(name="pay", check_in="always" if kind == "check-in" else None)
        def pay(amount: int) -> Any:
            till.paid.append(amount)
            return pause_here("how?") if kind == "human" else amount

        return till.agent(said, [asks(above=100 if kind == "ask" else 1000)], pay)

    till, other = Till(ledger), Till(ledger)
    first = agent(till, pays(500))
    pause = run(until_asked(first))
    answered(run(first.resume(pause.checkpoint, YES)))
    paid, entries = list(till.paid), ledger.entries(pause.run_id)
    for again, answer in ((first, NO), (first, YES), (agent(other, DONE), YES)):
        with pytest.raises(StaleDecisionError, match="answered before"):
            run(again.resume(posted(pause.checkpoint), answer))
    assert (till.paid, other.paid) == (paid, [])
    assert ledger.entries(pause.run_id) == entries
    assert (len(till.model.requests), other.model.requests) == (2, [])


def test_the_answer_is_on_record_before_permission_rules_and_tool_are_asked(ledger: Any) -> None:
    till = Till(ledger)
    seen: dict[str, bool] = {}

    def look(who: str, run_id: str) -> None:
        seen[who] = any(isinstance(e.fact, PauseAnswered) for e in ledger.entries(run_id))

    class Looks(Checker):
        def check(self, call: ToolCallContext, /) -> Permission:
            look("checker", pause.run_id)
            return Permission(result="allow")

    def behind(call: ToolCallContext) -> Any:
        look("rule", pause.run_id)
        return allow()

    @tool(name="pay")
    def pay(amount: int) -> int:
        look("tool", pause.run_id)
        return amount

    rules = [asks(), Rule("behind", behind)]
    pause = run(until_asked(till.agent(pays(500), rules, pay)))
    answered(run(till.agent(DONE, rules, pay, permission=Looks()).resume(pause.checkpoint, YES)))
    assert seen == {"checker": True, "rule": True, "tool": True}


def test_an_answer_the_ledger_did_not_take_has_answered_nothing_and_nothing_acts() -> None:
    class Busy(MemoryLedger):
        busy = False

        def append_inline(self, batch: Any, /) -> Any:
            if self.busy and any(isinstance(entry.fact, PauseAnswered) for entry in batch.entries):
                raise LedgerBusyError("busy")
            return super().append_inline(batch)

    ledger = Busy()
    till, checker, behind = Till(ledger), Checker(), Rule("behind")
    agent = till.agent(pays(500), [asks(), behind], permission=checker)

    async def go() -> None:
        pause = await until_asked(agent)
        ledger.busy = True
        with pytest.raises(LedgerBusyError):
            await agent.resume(pause.checkpoint, YES)
        assert (till.paid, behind.shown, len(checker.asked)) == ([], [], 1)
        ledger.busy = False
        answered(await agent.resume(pause.checkpoint, YES))

    run(go())
    assert till.paid == [500]


class Died(BaseException):
    """The process ends."""


def test_a_pause_whose_process_died_behind_the_answer_stays_answered(ledger: Any) -> None:
    def dies(call: ToolCallContext) -> Any:
        raise Died

    till = Till(ledger)
    agent = till.agent(pays(500), [asks(), Rule("behind", dies)])
    pause = run(until_asked(agent))
    with pytest.raises(Died):
        run(agent.resume(pause.checkpoint, YES))
    with pytest.raises(StaleDecisionError):
        run(till.agent(DONE, [asks(), Rule("behind")]).resume(pause.checkpoint, YES))
    assert till.paid == []


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = 1_700_000_000_000_000

    def now(self) -> int:
        return self.time

    def move(self, seconds: float) -> None:
        self.time += int(seconds * 1_000_000)


def under(clock: Hand, agent: Any) -> Session:
    """A session of an agent whose time is a clock's."""
    return Session(msgspec.structs.replace(agent._spec, clock=lambda: clock))


@pytest.mark.parametrize("late", [YES, NO])
def test_an_answer_behind_its_time_is_stale_and_the_pause_is_closed_on_record(late: Any, ledger: Any) -> None:
    clock, till = Hand(), Till(ledger)
    agent = till.agent([*pays(500), DONE], [asks(expires_in=60)])
    session = under(clock, agent)
    pause = run(until_asked(session))
    entries = ledger.entries(pause.run_id)
    clock.move(60.001)
    with pytest.raises(StaleDecisionError, match="expired"):
        run(session.resume(posted(pause.checkpoint), late))
    *before, closed = ledger.entries(pause.run_id)
    assert tuple(before) == entries
    assert closed.fact == PauseClosed(
        pause_id=pause.pause_id, reason="expired", tool_name="pay", call_id="c0"
    )
    for again in (session, under(clock, same(Till(ledger))), same(Till(ledger))):
        with pytest.raises(StaleDecisionError):
            run(again.resume(pause.checkpoint, YES))
    assert len(ledger.entries(pause.run_id)) == len(entries) + 1
    assert till.paid == []
    assert answered(run(session.run("another"))).text == "done"


def test_an_answer_in_time_counts_and_a_question_without_an_expiry_waits_for_years(ledger: Any) -> None:
    clock, till = Hand(), Till(ledger)
    for expires, waited in ((60.5, 60.4), (None, 50 * 366 * 86400)):
        gate = Rule("four-eyes", lambda c, e=expires: ask("Really?", expires_in=e))  # type: ignore[misc]
        session = under(clock, till.agent(pays(500), [gate]))
        pause = run(until_asked(session))
        clock.move(waited)
        answered(run(session.resume(pause.checkpoint, YES)))
    assert till.paid == [500, 500]


def test_an_expired_pause_is_closed_on_record_also_where_its_run_was_not_known(ledger: Any) -> None:
    clock, first, till = Hand(), Till(), Till(ledger)
    pause = run(until_asked(under(clock, first.agent(pays(500), [asks(expires_in=60)]))))
    clock.move(61)
    elsewhere = under(clock, till.agent(DONE, [asks(expires_in=60)]))
    with pytest.raises(StaleDecisionError, match="expired"):
        run(elsewhere.resume(pause.checkpoint, YES))
    assert isinstance(ledger.entries(pause.run_id)[-1].fact, PauseClosed)
    clock.move(-61)
    with pytest.raises(StaleDecisionError, match="before"):
        run(elsewhere.resume(pause.checkpoint, YES))
    assert not [e for e in ledger.entries(pause.run_id) if isinstance(e.fact, ToolFinished)]
    assert till.paid == []

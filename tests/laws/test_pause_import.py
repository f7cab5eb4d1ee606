"""A paused run goes on in its own ledger, or in one that never heard of it: then its rows come along."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asked import DONE, NO, YES, Rule, Till, adds, asks, edited, paused, pays, posted, until_asked
from file_ledger import on_file
from footprint_core import (
    Batch,
    ForeignCheckpointError,
    LedgerError,
    MemoryLedger,
    Receipt,
    StaleDecisionError,
    allow,
    pause_here,
    tool,
)
from footprint_core.facts import Decided, PauseOpened
from footprint_observe import Redaction
from story import answered, facts_of, run


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made = MemoryLedger() if request.param == "memory" else on_file(tmp_path / "l.db")
    yield made
    run(made.close())


RULES = [adds(-1), asks(detail={"key": 1}), adds(-2, "more")]


def test_a_ledger_that_has_the_run_is_appended_to(ledger: Any) -> None:
    till, other = Till(ledger), Till(ledger)
    pause = run(until_asked(till.agent(pays(500), RULES)))
    before = ledger.entries(pause.run_id)
    ended = answered(run(other.agent(DONE, RULES).resume(posted(pause.checkpoint), YES)))
    after = ledger.entries(pause.run_id)
    assert after[: len(before)] == before
    assert [entry.position for entry in after] == list(range(1, len(after) + 1))
    assert not any(row.imported for row in ended.decisions)
    assert ended.decisions == ledger.decisions(pause.run_id)
    assert ended.decisions[: len(pause.decisions)] == pause.decisions
    assert len([e for e in after if isinstance(e.fact, PauseOpened)]) == 1


def test_a_ledger_that_does_not_have_the_run_is_given_the_rows_marked_as_imported(ledger: Any) -> None:
    first, till = Till(), Till(ledger)
    pause = run(until_asked(first.agent(pays(1, 500), RULES)))
    agent = till.agent(DONE, RULES)
    ended = answered(run(agent.resume(posted(pause.checkpoint), YES)))
    assert till.paid == [497]
    count = len(pause.decisions)
    assert count == 5
    assert [row.imported for row in ended.decisions] == [True] * count + [False] * 2
    place = {"position", "imported"}

    def bare(rows: Any) -> list[dict[str, Any]]:
        return [{n: v for n, v in facts_of(row).items() if n not in place} for row in rows]

    assert bare(ended.decisions[:count]) == bare(pause.decisions)
    imported = ended.decisions[:count]
    assert [row.recorded_us for row in imported] == [row.recorded_us for row in pause.decisions]
    assert [row.duration_us for row in imported] == [row.duration_us for row in pause.decisions]
    assert ended.decisions == ledger.decisions(pause.run_id)
    entries = ledger.entries(pause.run_id)
    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    opened = [e.fact for e in entries if isinstance(e.fact, PauseOpened)]
    assert [(f.pause_id, f.imported) for f in opened] == [(pause.pause_id, True)]
    # Nobody is told again what was told when it was filed.
    assert [event.type for event in till.seen.events][:3] == [
        "agent.run_configured",
        "pause.resume",
        "middleware.decision",
    ]
    with pytest.raises(StaleDecisionError):
        run(agent.session().resume(pause.checkpoint, YES))


def test_the_rows_of_every_segment_come_along_and_keep_their_segment(ledger: Any) -> None:
    first, till = Till(), Till(ledger)
    agent = first.agent(pays(500, 600), RULES)

    async def go() -> Any:
        return paused(await agent.resume((await until_asked(agent)).checkpoint, NO))

    pause = run(go())
    ended = answered(run(till.agent(DONE, RULES).resume(posted(pause.checkpoint), YES)))
    imported = [row for row in ended.decisions if row.imported]
    assert [(row.segment, row.outcome, row.decided_by) for row in imported] == [
        (row.segment, row.outcome, row.decided_by) for row in pause.decisions
    ]
    assert {row.segment for row in imported} == {1, 2}
    assert {row.segment for row in ended.decisions if not row.imported} == {3}
    assert till.paid == [597]


@pytest.mark.parametrize("appends", [1, 2])
def test_an_import_that_did_not_come_to_its_end_goes_on_where_it_stopped(appends: int) -> None:
    class Breaking(MemoryLedger):
        left = appends

        def append_inline(self, batch: Batch, /) -> Receipt:
            if self.left == 0:
                raise OSError("the disk is full")
            self.left -= 1
            return super().append_inline(batch)

    first, held = Till(), Breaking()
    agent, till = first.agent(pays(500, 600), RULES), Till(held)

    async def go() -> Any:
        return paused(await agent.resume((await until_asked(agent)).checkpoint, NO))

    pause = run(go())
    with pytest.raises(LedgerError):
        run(till.agent(DONE, RULES).resume(posted(pause.checkpoint), YES))
    assert till.paid == []
    held.left = 1_000
    ended = answered(run(till.agent(DONE, RULES).resume(posted(pause.checkpoint), YES)))
    assert till.paid == [597]
    assert sum(row.imported for row in ended.decisions) == len(pause.decisions)
    entries = held.entries(pause.run_id)
    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    assert sum(isinstance(entry.fact, PauseOpened) for entry in entries) == 1


def test_what_the_first_ledger_redacted_comes_along_redacted_and_says_so(ledger: Any) -> None:
    secret = "sk-53cr3t-t0k3n"  # a made-up one
    first = Till(MemoryLedger(redact=Redaction.standard()))
    rules = [
        Rule("signs", lambda c: allow({**c.args, "token": secret}, why="signed")),
        asks(detail={"password": secret}),
        Rule("bare", lambda c: allow({"amount": c.args["amount"]}, why="bare")),
    ]
    pause = run(until_asked(first.agent(pays(500), rules)))
    till = Till(ledger)
    ended = answered(run(till.agent(DONE, rules).resume(posted(pause.checkpoint), YES)))
    imported = [row for row in ended.decisions if row.imported]
    assert [row.redacted for row in imported] == [row.redacted for row in pause.decisions]
    assert {path for row in imported for path, _ in row.redacted} == {"after.token", "detail.password"}
    assert secret not in str([row.to_dict() for row in imported])
    assert [(row.after, row.detail) for row in imported] == [
        (row.after, row.detail) for row in pause.decisions
    ]


def test_a_run_without_rows_is_imported_by_its_pause_alone(ledger: Any) -> None:
    @tool(name="person")
    def person(amount: int) -> Any:
        pause_here("how?")

    first, till = Till(), Till(ledger)
    pause = run(until_asked(first.agent(pays(1, name="person"), [], person)))
    assert pause.decisions == ()
    ended = answered(run(till.agent(DONE, [], person).resume(pause.checkpoint, "by card")))
    assert ended.decisions == ()
    assert till.read() == ["by card"]
    with pytest.raises(StaleDecisionError):
        run(till.agent(DONE, [], person).resume(pause.checkpoint, "in cash"))


@pytest.mark.parametrize("ruled", [True, False])
def test_a_ledger_that_has_the_run_and_not_the_pause_imports_nothing(ruled: bool, ledger: Any) -> None:
    @tool(name="pay")
    def pay(amount: int) -> Any:
        pause_here("how?")

    till = Till(ledger)
    rules = [Rule("rule")] if ruled else []
    pause = run(until_asked(till.agent(pays(1), rules, pay)))
    before = ledger.entries(pause.run_id)
    forged = edited(pause.checkpoint, "pause_id", "e" * 32, sealed=True)
    with pytest.raises(ForeignCheckpointError, match="does not know this pause"):
        run(till.agent(DONE, rules, pay).resume(forged, "by card"))
    assert ledger.entries(pause.run_id) == before
    assert not any(isinstance(e.fact, Decided) and e.fact.imported is not None for e in before)

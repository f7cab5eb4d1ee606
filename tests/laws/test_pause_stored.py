"""A pause is answered by its id alone where the ledger keeps its body, under the laws of any other answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from asked import DONE, NO, YES, Checker, Rule, Till, adds, asks, pays, posted, until_asked
from file_ledger import on_file
from footprint_core import (
    AskPause,
    CheckInPause,
    DecisionRequiredError,
    ForeignCheckpointError,
    HumanPause,
    MemoryLedger,
    PauseAnswerRequiredError,
    PendingQuestionError,
    ResumeError,
    StaleDecisionError,
    UnknownPauseError,
    check_in_approved,
    pause_here,
    tool,
)
from footprint_core.facts import PauseAnswered, PauseClosed, PauseOpened
from footprint_core.pause.kept import kept_checkpoint
from laws.test_pause_once import Hand, under
from sealed import KEYS, abandon, bodies
from story import answered, run

KEY = b"a key of sixteen bytes and more"


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made = MemoryLedger() if request.param == "memory" else on_file(tmp_path / "l.db", keys=KEYS)
    yield made
    run(made.close())


def kept(ledger: Any, pause_id: str) -> bool:
    """Whether a ledger has the body of a pause."""
    found = run(ledger.kept_pause(pause_id))
    assert found is not None
    return found.checkpoint is not None


def same(till: Till, **options: Any) -> Any:
    """An agent of the description that asked."""
    return till.agent([DONE] * 3, [asks()], **options)


def paying(till: Till, kind: str, said: Any) -> Any:
    """An agent whose call comes to a question of a kind."""

    @tool(name="pay", check_in="always" if kind == "check-in" else None)
    def pay(amount: int) -> Any:
        till.paid.append(amount)
        return pause_here({"how": "much"}) if kind == "human" else amount

    return till.agent(said, [asks(above=100 if kind == "ask" else 1000)], pay)


@pytest.mark.parametrize(
    ("kind", "shape"), [("ask", AskPause), ("check-in", CheckInPause), ("human", HumanPause)]
)
@pytest.mark.parametrize("answer", [YES, NO])
def test_a_pause_is_answered_by_its_id_as_it_is_by_its_checkpoint(
    kind: str, shape: Any, answer: Any, ledger: Any
) -> None:
    one, other = Till(ledger), Till(ledger)
    identity = {"user": "ada"}
    by_id = run(until_asked(paying(one, kind, pays(500)), identity=identity))
    by_checkpoint = run(until_asked(paying(other, kind, pays(500)), identity=identity))
    assert type(by_id) is shape
    first = answered(run(paying(one, kind, DONE).resume(pause_id=by_id.pause_id, answer=answer)))
    second = answered(run(paying(other, kind, DONE).resume(by_checkpoint.checkpoint, answer)))
    assert (first.text, one.paid, one.read()) == (second.text, other.paid, other.read())
    told = [
        [type(fact) for fact in till.facts(answer.run_id)] for till, answer in ((one, first), (other, second))
    ]
    assert told[0] == told[1]
    assert not kept(ledger, by_id.pause_id)
    assert not kept(ledger, by_checkpoint.pause_id)


@pytest.mark.parametrize("key", [None, KEY])
def test_what_is_made_of_a_kept_body_is_the_checkpoint_the_pause_gave(key: bytes | None, ledger: Any) -> None:
    till = Till(ledger)
    agent = till.agent(
        [*pays(1, 500, 600), DONE], [adds(1), asks(detail={"left": [1.0, None]})], checkpoint_key=key
    )
    first = run(until_asked(agent, identity={"user": "ada"}))
    assert run(kept_checkpoint(ledger, first.pause_id, key)) == first.checkpoint
    second = run(agent.resume(pause_id=first.pause_id, answer=YES))
    assert isinstance(second, AskPause)
    assert run(kept_checkpoint(ledger, second.pause_id, key)) == second.checkpoint
    assert [row["segment"] for row in second.checkpoint["rows"]] == [1, 1, 1, 1, 2, 2, 2]
    answered(run(agent.resume(pause_id=second.pause_id, answer=NO)))
    assert till.paid == [2, 501]


def test_what_a_caller_does_to_its_checkpoint_changes_nothing_that_is_kept(ledger: Any) -> None:
    till = Till(ledger)
    agent = till.agent([*pays(500), DONE], [asks()])
    pause = run(until_asked(agent))
    as_given = posted(pause.checkpoint)
    pause.checkpoint["call"]["args"]["amount"] = 1
    found = run(ledger.kept_pause(pause.pause_id))
    found.checkpoint["call"]["args"]["amount"] = 2
    assert run(kept_checkpoint(ledger, pause.pause_id, None)) == as_given
    answered(run(agent.resume(pause_id=pause.pause_id, answer=YES)))
    assert till.paid == [500]


def test_exactly_one_of_checkpoint_and_id_is_taken(ledger: Any) -> None:
    till = Till(ledger)
    agent: Any = till.agent([*pays(500), DONE], [asks()])
    pause = run(until_asked(agent))
    for given in (
        {},
        {"checkpoint": None, "pause_id": None},
        {"checkpoint": pause.checkpoint, "pause_id": pause.pause_id},
    ):
        with pytest.raises(ForeignCheckpointError, match="exactly one"):
            run(agent.resume(answer=YES, **given))
    for wrong in (7, b"x", {"id": 1}):
        with pytest.raises(UnknownPauseError, match="as a text"):
            run(agent.resume(pause_id=wrong, answer=YES))
    answered(run(agent.resume(pause_id=pause.pause_id, answer=YES)))


REFUSED: dict[str, tuple[Callable[[Till], Any], Any, type[ResumeError]]] = {
    "another agent": (lambda till: same(till, id="other"), YES, ForeignCheckpointError),
    "other rules": (lambda till: till.agent(DONE, [asks(), Rule("new")]), YES, ForeignCheckpointError),
    "a key it is not signed with": (
        lambda till: same(till, checkpoint_key=KEY),
        YES,
        ForeignCheckpointError,
    ),
    "no decision": (same, "yes", DecisionRequiredError),
    "a decision of nobody": (same, check_in_approved(by=" "), DecisionRequiredError),
    "nothing": (same, None, DecisionRequiredError),
}


@pytest.mark.parametrize("why", REFUSED)
def test_an_answer_by_id_that_is_refused_leaves_the_body_and_the_pause_answerable(
    why: str, ledger: Any
) -> None:
    build, answer, kind = REFUSED[why]
    till, permission = Till(ledger), Checker()
    pause = run(until_asked(till.agent(pays(500), [asks()], permission=permission)))
    entries, told = ledger.entries(pause.run_id), len(till.seen.events)
    with pytest.raises(kind):
        run(build(till).resume(pause_id=pause.pause_id, answer=answer))
    assert ledger.entries(pause.run_id) == entries
    assert (len(till.seen.events), till.paid, till.model.requests) == (told, [], [])
    assert kept(ledger, pause.pause_id)
    answered(run(same(till).resume(pause_id=pause.pause_id, answer=YES)))
    assert till.paid == [500]


def test_a_tool_that_waits_for_an_answer_is_not_answered_by_nothing(ledger: Any) -> None:
    till = Till(ledger)
    agent = paying(till, "human", pays(500))
    pause = run(until_asked(agent))
    with pytest.raises(PauseAnswerRequiredError):
        run(agent.resume(pause_id=pause.pause_id))
    answered(run(agent.resume(pause_id=pause.pause_id, answer=None)))


@pytest.mark.parametrize("signed", [None, KEY, b"another key of sixteen bytes"])
def test_with_a_key_a_body_of_another_key_or_of_none_is_refused(signed: bytes | None, ledger: Any) -> None:
    till = Till(ledger)
    pause = run(until_asked(till.agent(pays(500), [asks()], checkpoint_key=signed)))
    mine = same(till, checkpoint_key=KEY)
    if signed != KEY:
        with pytest.raises(ForeignCheckpointError, match="this agent's key"):
            run(mine.resume(pause_id=pause.pause_id, answer=YES))
        assert till.paid == []
        mine = same(till, checkpoint_key=signed)
    answered(run(mine.resume(pause_id=pause.pause_id, answer=YES)))
    assert till.paid == [500]


class Edits(MemoryLedger):
    """A ledger whose store somebody wrote to: the body of a pause is another than was brought."""

    def __init__(self, name: str, value: Any) -> None:
        super().__init__()
        self.name, self.value = name, value

    async def kept_pause(self, pause_id: str, /) -> Any:
        found: Any = await super().kept_pause(pause_id)
        found.checkpoint["call"]["args"]["amount"] = 1
        found.checkpoint[self.name] = self.value
        return found


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize(("name", "value"), [("rows", []), ("salt", "00" * 16), ("digest", "00" * 32)])
def test_a_body_that_was_edited_does_not_fit_what_the_ledger_recorded(
    name: str, value: Any, key: bytes | None
) -> None:
    till = Till(Edits(name, value))
    agent = till.agent(pays(500), [asks()], checkpoint_key=key)
    pause = run(until_asked(agent))
    with pytest.raises(ForeignCheckpointError, match="changed since"):
        run(agent.resume(pause_id=pause.pause_id, answer=YES))
    assert till.paid == []


def test_a_second_answer_by_id_is_stale_whoever_gives_it_and_runs_nothing(ledger: Any) -> None:
    till, other = Till(ledger), Till(ledger)
    agent = till.agent([*pays(500), DONE], [asks()])
    pause = run(until_asked(agent))
    answered(run(agent.resume(pause_id=pause.pause_id, answer=YES)))
    entries = ledger.entries(pause.run_id)
    for again in (agent, same(other)):
        with pytest.raises(StaleDecisionError, match="answered before"):
            run(again.resume(pause_id=pause.pause_id, answer=NO))
        with pytest.raises(StaleDecisionError, match="answered before"):
            run(again.resume(pause.checkpoint, YES))
    assert (till.paid, other.paid) == ([500], [])
    assert ledger.entries(pause.run_id) == entries


def test_an_answer_by_id_behind_its_time_is_stale_and_closes_the_pause_and_destroys_its_body(
    ledger: Any,
) -> None:
    clock, till = Hand(), Till(ledger)
    session = under(clock, till.agent([*pays(500), DONE], [asks(expires_in=60)]))
    pause = run(until_asked(session))
    clock.move(60.001)
    assert kept(ledger, pause.pause_id)
    with pytest.raises(StaleDecisionError, match="expired"):
        run(session.resume(pause_id=pause.pause_id, answer=YES))
    assert isinstance(till.facts(pause.run_id)[-1], PauseClosed)
    assert not kept(ledger, pause.pause_id)
    with pytest.raises(StaleDecisionError, match="closed"):
        run(session.resume(pause_id=pause.pause_id, answer=YES))
    assert till.paid == []
    assert answered(run(session.run("another"))).text == "done"


def test_a_session_with_another_question_open_refuses_an_answer_by_id(ledger: Any) -> None:
    till, other = Till(ledger), Till(ledger)
    pause = run(until_asked(till.agent(pays(500), [asks()])))
    busy = other.agent([*pays(600), DONE], [asks()])
    mine = run(until_asked(busy))
    with pytest.raises(PendingQuestionError):
        run(busy.resume(pause_id=pause.pause_id, answer=YES))
    answered(run(busy.resume(pause_id=mine.pause_id, answer=YES)))
    assert (kept(ledger, pause.pause_id), other.paid) == (True, [600])


def test_a_question_that_a_session_dropped_is_still_answered_by_its_id(ledger: Any) -> None:
    till = Till(ledger)
    agent = till.agent([*pays(500), DONE], [asks()])
    pause = run(until_asked(agent))
    dropped = agent.abandon_pause()
    assert dropped is not None
    assert dropped.pause_id == pause.pause_id
    answered(run(agent.resume(pause_id=pause.pause_id, answer=YES)))
    assert till.paid == [500]


def test_an_agent_whose_rules_changed_answers_by_id_when_everything_is_asked_again(ledger: Any) -> None:
    till = Till(ledger)
    pause = run(until_asked(till.agent(pays(500), [asks()])))
    changed = till.agent(DONE, [Rule("new"), asks()])
    answered(run(changed.resume(pause_id=pause.pause_id, answer=YES, rewalk=True)))
    assert till.paid == [500]


def test_a_run_that_is_abandoned_loses_the_bodies_of_its_pauses_and_takes_no_answer(ledger: Any) -> None:
    till = Till(ledger)
    agent = till.agent([pays(500)[0], pays(600)[0]], [asks()])
    pause = run(until_asked(agent))
    agent.abandon_pause()
    other = run(until_asked(agent))
    abandon(ledger, pause)
    assert (kept(ledger, pause.pause_id), kept(ledger, other.pause_id)) == (False, True)
    for answer in ({"pause_id": pause.pause_id}, {"checkpoint": pause.checkpoint}):
        with pytest.raises(StaleDecisionError, match="abandoned"):
            run(same(till).resume(answer=YES, **answer))
    assert till.paid == []


def test_a_pause_that_came_from_another_ledger_has_no_body_where_it_came_to(tmp_path: Path) -> None:
    first, second = on_file(tmp_path / "1.db", keys=KEYS), on_file(tmp_path / "2.db", keys=KEYS)
    till, other = Till(first), Till(second)
    pause = run(until_asked(till.agent(pays(500), [asks()])))
    with pytest.raises(UnknownPauseError, match="no pause of that id"):
        run(same(other).resume(pause_id=pause.pause_id, answer=YES))
    answered(run(same(other).resume(pause.checkpoint, YES)))
    assert other.paid == [500]
    assert bodies(tmp_path / "2.db") == []
    # Where it was opened nobody answered it.
    assert [row[0] for row in bodies(tmp_path / "1.db")] == [pause.pause_id]
    for ledger in (first, second):
        run(ledger.close())


def test_an_erased_digest_takes_the_answer_by_id_with_it(ledger: Any) -> None:
    class Erased:
        """The ledger, behind an erasure of the salt and the digest of its pauses."""

        def __getattr__(self, name: str) -> Any:
            return getattr(ledger, name)

        async def pause_standing(self, run_id: str, pause_id: str, /) -> Any:
            standing = await ledger.pause_standing(run_id, pause_id)
            return msgspec.structs.replace(standing, salt=None, digest=None)

    till = Till(ledger)
    pause = run(until_asked(till.agent(pays(500), [asks()])))
    found = run(ledger.kept_pause(pause.pause_id))
    assert not {"salt", "digest", "rows"} & set(found.checkpoint)
    (fact,) = [fact for fact in till.facts(pause.run_id) if isinstance(fact, PauseOpened)]
    assert str(fact.salt) not in str(found.checkpoint)
    with pytest.raises(ForeignCheckpointError, match="erased"):
        run(
            till.agent(DONE, [asks()], ledger=cast("Any", Erased())).resume(
                pause_id=pause.pause_id, answer=YES
            )
        )
    assert not [fact for fact in till.facts(pause.run_id) if isinstance(fact, PauseAnswered)]

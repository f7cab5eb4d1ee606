"""What a client gets when a rule of the server does not let a call through, and what is on record of it."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import (
    AskPause,
    CredentialRequest,
    after_tool,
    allow,
    ask,
    ask_human,
    before_tool,
    deny,
    static_credentials,
    tool,
)
from footprint_core.events import (
    CredentialAcquired,
    CredentialFailed,
    CredentialRequested,
    DecisionFiled,
    PauseRequested,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
)
from footprint_core.facts import PauseOpened, ToolIntended
from footprint_core.mcp import mcp_serve
from footprint_core.providers import call, reply
from ruled import answers
from served import Kept, served
from story import Seen, answered, describe, facts_of, run

SECRET = "hunter2"


class Call:
    """One served call under rules, and everything that came of it.

    Args:
        rules: The tool chain.
        raises: Whether the tool raises.
        vault: Who gives its credential.
    """

    def __init__(self, *rules: Any, raises: bool = False, vault: Any = None) -> None:
        self.ran: list[int] = []
        self.ledger, self.seen = Kept(), Seen()

        @tool(name="pay", needs="bank")
        async def pay(amount: int) -> dict[str, Any]:
            """Pay."""
            self.ran.append(amount)
            if raises:
                raise LookupError(f"no account {SECRET}")
            return {"paid": amount, "card": SECRET}

        self.tool = pay
        serving = mcp_serve(
            name="desk",
            tools=[pay],
            tool_middleware=rules,
            credentials=vault or static_credentials({"bank": "a-token"}),
            ledger=self.ledger,
            watch=[self.seen],
        )
        self.is_error, self.text = run(served(serving, "pay", {"amount": 5}))

    @property
    def rows(self) -> list[dict[str, Any]]:
        (run_id,) = self.ledger.runs
        return [facts_of(row) for row in self.ledger.decisions(run_id)]


def of_an_agent(*rules: Any, raises: bool = False) -> list[dict[str, Any]]:
    """The rows the same rules leave of the same call of an agent."""
    made = Call(*rules, raises=raises).tool
    builder, _ = describe([reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")], made)
    builder.credentials(static_credentials({"bank": "a-token"})).tool_middleware(*rules)
    outcome = run(builder.build().run("go"))
    return [facts_of(row) for row in answered(outcome).decisions]


def alike(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what a served call has of its own: its id, its place, and that no model asked."""
    own = {"tool_call_id", "position", "iteration"}
    return [{key: value for key, value in row.items() if key not in own} for row in rows]


REASON = "Over the ceiling.\nAsk a person at the desk."


def test_a_denial_is_a_tool_error_whose_text_is_the_reason() -> None:
    rules = [before_tool("first")(lambda _: allow()), before_tool("ceiling")(lambda _: deny(REASON))]
    refused = Call(*rules)
    assert (refused.is_error, refused.text, refused.ran) == (True, REASON, [])
    assert alike(refused.rows) == alike(of_an_agent(*rules))
    assert [row["outcome"] for row in refused.rows] == ["allow", "deny"]
    (ended,) = refused.seen.of(ToolCallEnded)
    assert (ended.status, ended.executed, ended.decided_by_rule) == ("denied", False, "ceiling")


def test_a_denial_of_the_result_is_one_too_and_the_side_effect_stands() -> None:
    rule = after_tool("withhold")(lambda _: deny(REASON))
    refused = Call(rule)
    assert (refused.is_error, refused.text, refused.ran) == (True, REASON, [5])
    assert alike(refused.rows) == alike(of_an_agent(rule))
    (row,) = refused.rows
    assert (row["changed"], row["before"], row["after"]) == (True, {"paid": 5, "card": SECRET}, REASON)


def raises(_: object) -> Any:
    raise LookupError("no table")


@pytest.mark.parametrize("make", [before_tool, after_tool])
def test_a_rule_that_raises_is_a_denial_that_names_it(make: Any) -> None:
    rule = make("shaky")(raises)
    refused = Call(rule)
    assert refused.is_error
    assert "shaky" in refused.text
    assert "no table" in refused.text
    assert SECRET not in refused.text
    assert refused.ran == ([] if make is before_tool else [5])
    assert [(row["outcome"], row["middleware"]) for row in refused.rows] == [("deny", "shaky")]


def test_an_ask_is_a_tool_error_naming_the_rule_and_nothing_executes_or_pauses() -> None:
    asked: list[CredentialRequest] = []

    class Vault:
        def credential(self, request: CredentialRequest, /) -> Any:
            asked.append(request)

    rule = before_tool("four-eyes")(lambda _: ask("Pay it?", detail={"card": SECRET}))
    behind: list[object] = []

    @before_tool("later")
    def later(asked: object) -> Any:
        behind.append(asked)
        return allow()

    refused = Call(rule, later, vault=Vault())
    assert refused.is_error
    assert "four-eyes" in refused.text
    assert SECRET not in refused.text
    assert (refused.ran, asked, behind) == ([], [], [])
    assert refused.ledger.facts(PauseOpened) == []
    assert refused.ledger.facts(ToolIntended) == []
    assert refused.seen.of(PauseRequested) == []
    assert [(row["middleware"], row["outcome"]) for row in refused.rows] == [("four-eyes", "deny")]
    assert [e.outcome for e in refused.seen.of(TurnEnded)] == ["answered"]


def test_the_same_rule_pauses_an_agent() -> None:
    rule = before_tool("four-eyes")(lambda _: ask("Pay it?"))
    made = Call().tool
    builder, _ = describe([reply(calls=[call("c1", "pay", {"amount": 5})])], made)
    assert isinstance(run(builder.tool_middleware(rule).build().run("go")), AskPause)


class Lookalike:
    """Looks like an outcome that allows."""

    value, why, kind = SECRET, "fine", "allow"


WRONG: dict[str, Any] = {
    "nothing": None,
    "true": True,
    "a text": SECRET,
    "a dict": {"kind": "allow", "value": SECRET},
    "a lookalike": Lookalike(),
    "the verb": allow,
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("make", [before_tool, after_tool])
def test_a_malformed_answer_is_a_denial_at_both_halves(make: Any, wrong: Any) -> None:
    rule = make("odd")(lambda _: wrong)
    refused = Call(rule)
    assert refused.is_error
    assert "odd" in refused.text
    assert type(wrong).__name__ in refused.text
    # Nothing of what came back, and nothing of the result.
    assert SECRET not in refused.text
    assert refused.ran == ([] if make is before_tool else [5])
    (row,) = refused.rows
    assert row["outcome"] == "deny"
    if make is after_tool:
        assert row["before"] == {"paid": 5, "card": SECRET}
    assert alike(refused.rows) == alike(of_an_agent(rule))


def test_a_question_about_a_result_withholds_it() -> None:
    refused = Call(after_tool("curious")(answers(ask("Pay it?"))))
    assert refused.is_error
    assert "curious" in refused.text
    assert SECRET not in refused.text
    assert "Pay it?" not in refused.text


@pytest.mark.parametrize("value", [[1], None, "args", {1, 2}])
def test_arguments_replaced_by_what_are_none_run_nothing(value: Any) -> None:
    refused = Call(before_tool("odd")(answers(allow(value, why="changed"))))
    assert (refused.is_error, refused.ran) == (True, [])
    assert "odd" in refused.text


def test_a_tool_that_raised_goes_through_the_result_rules_and_stays_an_error() -> None:
    shown: list[tuple[bool, Any]] = []

    @after_tool("scrub")
    def scrub(ended: Any) -> Any:
        shown.append((ended.failed, ended.result))
        return allow(ended.result.replace(SECRET, "***"), why="scrubbed")

    failed = Call(scrub, raises=True)
    assert shown == [(True, f"no account {SECRET}")]
    assert (failed.is_error, failed.text) == (True, "no account ***")
    assert alike(failed.rows) == alike(of_an_agent(scrub, raises=True))
    (ended,) = failed.seen.of(ToolCallEnded)
    assert (ended.status, ended.executed) == ("failed", True)
    # A rule cannot make a success of it.
    assert Call(after_tool("fine")(lambda _: allow({"paid": 5}, why="fine")), raises=True).is_error


def test_a_tool_that_asks_a_person_is_a_failed_one() -> None:
    @tool(name="sign")
    async def sign() -> None:
        """Sign."""
        ask_human(f"sign for {SECRET}?")

    ledger = Kept()
    is_error, text = run(served(mcp_serve(name="desk", tools=[sign], ledger=ledger), "sign"))
    assert is_error
    assert "sign" in text
    assert SECRET not in text
    assert ledger.facts(PauseOpened) == []


def test_the_events_of_a_served_call_are_told_and_name_the_credential() -> None:
    rule = before_tool("first")(lambda _: allow(why="fine"))
    done = Call(rule, after_tool("last")(lambda _: allow()))
    assert not done.is_error
    for kind in (ToolCallStarted, CredentialRequested, CredentialAcquired, ToolCallEnded):
        assert len(done.seen.of(kind)) == 1
    assert [(e.middleware, e.moment) for e in done.seen.of(DecisionFiled)] == [
        ("first", "before-tool"),
        ("last", "after-tool"),
    ]
    assert [e.row for e in done.seen.of(DecisionFiled)] == [row["position"] for row in done.rows]
    blocked = Call(rule, vault=static_credentials({}))
    assert blocked.is_error
    assert "bank" in blocked.text
    assert [(e.service, e.error_class) for e in blocked.seen.of(CredentialFailed)] == [("bank", "KeyError")]

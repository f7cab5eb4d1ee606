"""A declared need is resolved last of all gates, and a call whose credential cannot be had does not run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from footprint_core import (
    Answer,
    AskPause,
    BuilderError,
    CheckInPause,
    Credential,
    CredentialRequest,
    MemoryLedger,
    Permission,
    ToolCallContext,
    ToolContext,
    ToolMessage,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    check_in_declined,
    deny,
    static_credentials,
    tool,
)
from footprint_core.events import (
    CredentialAcquired,
    CredentialFailed,
    CredentialRequested,
    ToolCallEnded,
)
from footprint_core.facts import CredentialFailed as FailedFact
from footprint_core.facts import ToolIntended
from footprint_core.providers import Completed, Scripted, call, reply
from permits import Checker
from story import Seen, answered, describe, run

DONE = reply(text="done")
SECRET = "hunter2-and-more"
YES, NO = check_in_approved(by="dana"), check_in_declined(by="dana")


class Vault:
    """Gives what it is told to, or raises it, and keeps what it was asked for."""

    def __init__(self, story: list[str] | None = None, gives: Any = None) -> None:
        self.asked: list[CredentialRequest] = []
        self._story = [] if story is None else story
        self._gives = Credential(kind="bearer", secret=SECRET) if gives is None else gives

    def credential(self, request: CredentialRequest, /) -> Any:
        self._story.append("credential")
        self.asked.append(request)
        given = self._gives(request) if callable(self._gives) else self._gives
        if isinstance(given, BaseException):
            raise given
        return given


class Desk:
    """An agent with one tool that needs the bank, and the story of everything that came to it."""

    def __init__(self, *replies: Completed, vault: Any = None, before: Any = None, **declared: Any) -> None:
        self.story: list[str] = []
        self.vault = Vault(self.story) if vault is None else vault
        self.seen, self.ledger = Seen(), MemoryLedger()

        @tool(name="pay", needs="bank", **declared)
        async def pay(amount: int, context: ToolContext) -> str:
            """Pay."""
            assert context.credential is not None
            self.story.append(f"body {amount} {context.credential.kind}")
            return "paid"

        @before_tool("before")
        def rule(asked: ToolCallContext) -> ToolOutcome:
            self.story.append("rule")
            outcome: ToolOutcome = allow() if before is None else before(asked)
            return outcome

        @after_tool("after")
        def after(ended: ToolResultContext) -> ToolResultOutcome:
            self.story.append(f"after {ended.result}")
            return allow()

        said = replies or (reply(calls=[call("c1", "pay", {"amount": 5})]), DONE)
        builder, self.model = describe(said, pay, watch=[self.seen], ledger=self.ledger)
        self.builder = builder.act(before_tool=[rule], after_tool=[after])
        if self.vault is not False:
            builder.credentials(self.vault)

    def go(self, identity: Any = None) -> Desk:
        answered(run(self.builder.build().run("go", identity=identity)))
        return self

    @property
    def told(self) -> list[str]:
        return [type for type in self.seen.types if type.startswith("credential.")]

    @property
    def read(self) -> list[str]:
        return read(self.model)


def read(model: Scripted) -> list[str]:
    return [m.text for m in model.requests[-1].messages if isinstance(m, ToolMessage)]


def test_a_need_is_resolved_behind_every_other_gate_and_right_ahead_of_the_body() -> None:
    # It looks at the args, and does not trip.
    desk: Desk = Desk(check_in=lambda args: desk.story.append("check-in"))

    def checks(_: ToolCallContext) -> Permission:
        desk.story.append("permission")
        return Permission(result="allow")

    desk.builder.permission(Checker(checks))
    desk.go(identity={"user": "ada"})
    assert desk.story == ["permission", "rule", "check-in", "credential", "body 5 bearer", "after paid"]
    (asked,) = desk.vault.asked
    assert (asked.service, asked.tool_name, asked.tool_call_id) == ("bank", "pay", "c1")
    assert asked.run_id == desk.seen.events[0].run_id
    assert asked.identity == {"user": "ada"}


BAD = [call("c1", "pay", {"amount": "a lot"}), call("c2", "wipe", {}), call("c3", "pay", {})]


@pytest.mark.parametrize(
    ("refusing", "statuses"),
    [
        ({"before": lambda _: deny("no")}, ["denied"]),
        ({"before": lambda _: 1 / 0}, ["denied"]),
        ({"before": lambda _: None}, ["denied"]),
        ({"before": lambda _: allow({"amount": "less"}, why="less")}, ["invalid"]),
        ({"replies": (reply(calls=BAD), DONE)}, ["invalid", "unknown", "invalid"]),
        ({"permission": Permission(result="deny")}, ["denied"]),
    ],
    ids=["denied", "raised", "malformed", "invalid after a rule", "invalid and unknown", "not permitted"],
)
def test_a_call_that_was_refused_earlier_asks_for_no_credential(
    refusing: dict[str, Any], statuses: list[str]
) -> None:
    desk = Desk(*refusing.get("replies", ()), before=refusing.get("before"))
    if "permission" in refusing:
        desk.builder.permission(Checker(refusing["permission"]))
    desk.go()
    assert [e.status for e in desk.seen.of(ToolCallEnded)] == statuses
    assert (desk.vault.asked, desk.told) == ([], [])
    assert not [line for line in desk.story if line.startswith(("body", "after"))]


def test_of_a_repeated_id_only_the_first_call_asks() -> None:
    calls = [call("c1", "pay", {"amount": 1}), call("c1", "pay", {"amount": 2})]
    desk = Desk(reply(calls=calls), DONE).go()
    assert [one.tool_call_id for one in desk.vault.asked] == ["c1"]
    assert "body 2 bearer" not in desk.story


def answered_by(desk: Desk, kind: type[Any], answer: Any) -> list[str]:
    """What came to the credentials before the person answered, and the story behind it."""

    async def story() -> None:
        agent = desk.builder.build()
        pause = await agent.run("go")
        assert isinstance(pause, kind)
        assert not isinstance(pause, Answer)
        assert (desk.vault.asked, desk.told) == ([], [])
        desk.story.clear()
        answered(await agent.resume(pause.checkpoint, answer))

    run(story())
    return desk.story


def test_behind_a_question_the_credential_is_acquired_on_the_approved_resume_only() -> None:
    desk = Desk(before=lambda _: ask("Really?"))
    assert answered_by(desk, AskPause, YES) == ["credential", "body 5 bearer", "after paid"]
    assert desk.told == ["credential.requested", "credential.acquired"]
    desk = Desk(before=lambda _: ask("Really?"))
    assert answered_by(desk, AskPause, NO) == []
    assert (desk.vault.asked, desk.told) == ([], [])


def test_behind_a_check_in_too() -> None:
    desk = Desk(check_in="always")
    assert answered_by(desk, CheckInPause, YES) == ["credential", "body 5 bearer", "after paid"]
    desk = Desk(check_in="always")
    assert answered_by(desk, CheckInPause, NO) == []
    assert (desk.vault.asked, desk.told) == ([], [])


def later(gives: Any) -> Callable[[CredentialRequest], Awaitable[Any]]:
    """The same, handed over by a coroutine."""

    async def hands(request: CredentialRequest) -> Any:
        await asyncio.sleep(0)
        given = gives(request) if callable(gives) else gives
        if isinstance(given, BaseException):
            raise given
        return given

    return hands


def pauses(_: object) -> Any:
    ask_human("may I?")


class Bearer:
    """Looks like a credential."""

    kind, secret = "bearer", SECRET


FAILING: dict[str, tuple[Any, str]] = {
    "raises": (PermissionError(SECRET), "PermissionError"),
    "raises without a text": (KeyError(), "KeyError"),
    "stops": (StopAsyncIteration(SECRET), "StopAsyncIteration"),
    "pauses": (pauses, "PauseSignal"),
    "a text": (SECRET, "str"),
    "nothing": (lambda _: None, "NoneType"),
    "a dict": ({"kind": "bearer", "secret": SECRET}, "dict"),
    "a lookalike": (Bearer(), "Bearer"),
    "no text for a secret": (lambda _: made(secret=None), "TypeError"),
    "no text for a kind": (lambda _: made(kind=None), "TypeError"),
    "a coroutine of a coroutine": (later(later(1)), "coroutine"),
}


def made(**fields: Any) -> Credential:
    """A credential, made without a type checker."""
    given: dict[str, Any] = {"kind": "bearer", "secret": SECRET, **fields}
    return Credential(**given)


@pytest.mark.parametrize(("gives", "error_class"), FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_credential_that_cannot_be_acquired_blocks_the_call(
    gives: Any, error_class: str, is_async: bool
) -> None:
    if gives is FAILING["a coroutine of a coroutine"][0] and is_async:
        gives = later(gives)
    desk = Desk(vault=Vault(gives=later(gives) if is_async else gives)).go()
    (text,) = desk.read
    assert "bank" in text
    assert "pay" in text
    assert SECRET not in text
    assert desk.story == ["rule"]
    assert desk.told == ["credential.requested", "credential.failed"]
    (failed,), (ended,) = desk.seen.of(CredentialFailed), desk.seen.of(ToolCallEnded)
    assert (failed.service, failed.error_class, failed.tool_call_id) == ("bank", error_class, "c1")
    assert (ended.status, ended.executed) == ("blocked", False)
    facts = [e.fact for e in desk.ledger.entries(failed.run_id)]
    assert not [fact for fact in facts if isinstance(fact, ToolIntended)]
    assert [fact.error_class for fact in facts if isinstance(fact, FailedFact)] == [error_class]
    assert SECRET not in repr(facts)


def test_without_a_provider_the_call_is_blocked_and_the_run_goes_on() -> None:
    desk = Desk(vault=False).go()
    assert "bank" in desk.read[0]
    assert desk.story == ["rule"]
    (failed,) = desk.seen.of(CredentialFailed)
    assert (failed.service, failed.error_class) == ("bank", None)
    assert [e.status for e in desk.seen.of(ToolCallEnded)] == ["blocked"]


def test_a_service_a_static_provider_does_not_know_is_none() -> None:
    desk = Desk(vault=static_credentials({"mail": SECRET})).go()
    assert [e.error_class for e in desk.seen.of(CredentialFailed)] == ["KeyError"]
    assert desk.story == ["rule"]


def test_a_resolved_need_is_told_by_service_and_kind_ahead_of_the_result() -> None:
    desk = Desk(vault=Vault(gives=lambda _: Credential(kind="basic", secret=SECRET))).go()
    (requested,), (acquired,) = desk.seen.of(CredentialRequested), desk.seen.of(CredentialAcquired)
    assert (requested.service, requested.tool_call_id) == ("bank", "c1")
    assert (acquired.service, acquired.kind, acquired.tool_call_id) == ("bank", "basic", "c1")
    order = [
        e.type for e in desk.seen.events if e.type.startswith(("credential.", "middleware.", "stream.tool"))
    ]
    assert order == [
        "stream.tool_start",
        "middleware.decision",
        "credential.requested",
        "credential.acquired",
        "middleware.decision",
        "stream.tool_end",
    ]
    assert desk.seen.of(CredentialFailed) == []


def test_each_call_asks_for_a_credential_of_its_own() -> None:
    calls = [call(f"c{n}", "pay", {"amount": n}) for n in range(3)]
    desk = Desk(reply(calls=calls), reply(calls=calls[:1]), DONE).go()
    assert [one.tool_call_id for one in desk.vault.asked] == ["c0", "c1", "c2", "c0"]
    assert desk.told == ["credential.requested", "credential.acquired"] * 4


def test_what_is_on_record_before_a_provider_is_asked_is_durable() -> None:
    known: list[set[str]] = []

    def gives(request: CredentialRequest) -> Credential:
        kinds = {type(entry.fact).__name__ for entry in desk.ledger.entries(request.run_id)}
        known.append(kinds & {"Decided", "CredentialRequested", "CallTaken"})
        return Credential(kind="bearer", secret=SECRET)

    desk = Desk(vault=Vault(gives=gives))
    desk.go()
    assert known == [{"Decided", "CredentialRequested", "CallTaken"}]


@pytest.mark.parametrize("wrong", [None, object(), Vault, {"bank": SECRET}, lambda _: None])
def test_what_gives_no_credentials_is_refused_where_it_is_given(wrong: Any) -> None:
    builder, _ = describe([])
    with pytest.raises(BuilderError, match="credential") as caught:
        builder.credentials(wrong)
    assert SECRET not in str(caught.value)
    builder.credentials(Vault())
    with pytest.raises(BuilderError, match="before"):
        builder.credentials(Vault())

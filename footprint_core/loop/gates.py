"""The gates of one call, in order: permission, the chain, the arguments, consent, a credential."""

from __future__ import annotations

import inspect
from typing import TypeAlias

import msgspec

from footprint_core import plain
from footprint_core.chain.calls import MAY_PAUSE, Asked, Asking, Passed, Refused, walk_call
from footprint_core.credentials import Credential
from footprint_core.facts import (
    CallStatus,
    CheckInAsked,
)
from footprint_core.loop.acquire import acquire
from footprint_core.loop.permit import permit
from footprint_core.loop.turn import Consent, Halted, Question, Refusing, Taken, Turn
from footprint_core.outcomes import ToolArgs
from footprint_core.pause.signal import PauseSignal
from footprint_core.tools.tool import Checked, Tool, checked, invalid_text


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """A call that passed every gate.

    Attributes:
        taken: The call, with the args the chain made.
        tool: Its tool.
        found: The args that will run.
        credential: What the tool needs, or None.
        approved: Whether a person was asked about this call already.
    """

    taken: Taken
    tool: Tool
    found: Checked
    credential: Credential | None
    approved: bool


Gated: TypeAlias = Ready | Refusing | Question | Halted


async def pass_gates(turn: Turn, taken: Taken) -> Gated:
    """Let everything decide that decides before a body runs; the first that does not allow wins."""
    turn.stage = "before-tool"
    if turn.spec.permission is not None:
        refused = await permit(turn, turn.spec.permission, taken)
        if refused is not None:
            return refused
    approved = taken.consent is not None and taken.approved == "ask"
    links = turn.spec.chains.calls
    if taken.start < len(links):
        walked = await walk_call(
            links, taken.subject, taken.args, turn.writer, start=taken.start, asking=_asking(turn, taken)
        )
        match walked:
            case Passed():
                if walked.args is not taken.args:
                    taken = msgspec.structs.replace(taken, args=walked.args, changed=True)
                approved = approved or walked.approved
            case Refused():
                args = taken.args if walked.args is None else walked.args
                changed = taken.changed or args is not taken.args
                taken = msgspec.structs.replace(taken, args=args, changed=changed)
                return _refusing(taken, "denied", walked.reason, rule=walked.rule)
            case Asked():
                return _ask(taken, walked)
    return await _behind_the_chain(turn, taken, approved=approved)


def _asking(turn: Turn, taken: Taken) -> Asking:
    """Whether a rule can ask now, and what a person approved before."""
    consent = taken.consent
    if turn.served:
        return Asking(may="served")
    if taken.approved is not None:
        return Asking(may="answered")
    if consent is not None and consent.kind == "ask" and consent.rule is not None:
        return Asking(may="pause", approved=consent.args, approved_by=consent.rule)
    return MAY_PAUSE


def _ask(taken: Taken, asked: Asked) -> Question:
    return Question(
        kind="ask",
        middleware=asked.rule,
        link=asked.index,
        question=asked.question,
        shown=asked.detail,
        expires_in=asked.expires_in,
        index=taken.index,
        call_id=taken.call.id,
        tool_name=taken.call.name,
        tool_source=taken.subject.tool_source,
        args=asked.args,
        changed=taken.changed or asked.args is not taken.args,
    )


async def _behind_the_chain(turn: Turn, taken: Taken, *, approved: bool) -> Gated:
    name, args = taken.call.name, taken.args
    tool = turn.spec.tools.get(name)
    if turn.writer.cancellation.asked:
        # A tool's checks and its consent run code of the application, like the rules do.
        await turn.writer.cancellation.heed()
    if tool is None:
        text = f"There is no tool called {name}, so nothing was run; use one of the tools offered."
        return _refusing(taken, "unknown", text)
    found = checked(tool, args)
    if not isinstance(found, Checked):
        return _refusing(taken, "invalid", invalid_text(name, found), issues=len(found))
    consented = None
    if taken.consent is not None and taken.consent.kind == "check-in":
        found = found if taken.rewalk else _as_approved(tool, found, taken.consent)
        consented = plain.same(taken.consent.checked, found.args)
    if consented is False and not taken.rewalk:
        text = f"What would run of {name} is not what a person approved, so it was not run."
        return _refusing(taken, "blocked", text)
    approved = approved or consented is True
    if tool.check_in is not None and not consented:
        await turn.writer.cancellation.heed()
        asked = _check_in(turn, taken, tool, found, approved=approved)
        if asked is not None:
            return asked
    if tool.needs is None:
        return Ready(taken=taken, tool=tool, found=found, credential=None, approved=approved)
    credential = await acquire(turn, taken, tool.needs)
    if credential is None:
        text = (
            f"The tool {name} needs a credential for {tool.needs} and none could be had, so it was not run."
        )
        return _refusing(taken, "blocked", text)
    return Ready(taken=taken, tool=tool, found=found, credential=credential, approved=approved)


def _as_approved(tool: Tool, found: Checked, consent: Consent) -> Checked:
    """What a person was shown, when it can run as it was shown.

    Where a tool makes a value up at each check, a time or an id, another check makes another one.
    """
    if consent.checked is None or plain.same(consent.checked, found.args):
        return found
    again = checked(tool, consent.checked)
    return again if isinstance(again, Checked) and plain.same(again.args, consent.checked) else found


def _check_in(
    turn: Turn, taken: Taken, tool: Tool, found: Checked, *, approved: bool
) -> Question | Refusing | None:
    """The consent a tool declares: asked, not needed, or no longer to be had."""
    if not _trips(tool, found.args):
        return None
    if approved:
        text = (
            f"The tool {tool.name} asks for consent of its own about a call a person had approved; one call "
            "gets one question, so it was not run."
        )
        return _refusing(taken, "blocked", text)
    shown = _evidence(tool, found.args)
    turn.writer.note(
        CheckInAsked(
            iteration=taken.subject.iteration,
            call_id=taken.call.id,
            tool_name=tool.name,
            tool_source=tool.source,
            evidence=msgspec.UNSET if tool.evidence is None else shown,
        )
    )
    return Question(
        kind="check-in",
        index=taken.index,
        call_id=taken.call.id,
        tool_name=tool.name,
        tool_source=tool.source,
        args=taken.args,
        changed=taken.changed,
        shown=shown,
        checked=found.args,
    )


def _trips(tool: Tool, args: ToolArgs) -> bool:
    if tool.check_in == "always" or tool.check_in is None:
        return tool.check_in is not None
    try:
        said: object = tool.check_in(plain.copy(args))
    except (Exception, PauseSignal):  # noqa: BLE001 - what cannot say that it is harmless is asked about
        return True
    # A coroutine says nothing, and would pass for a no.
    return said is True or inspect.isawaitable(said)


def _evidence(tool: Tool, args: ToolArgs) -> plain.Json:
    if tool.evidence is None:
        return None
    try:
        return plain.detach(tool.evidence(plain.copy(args)))
    except (Exception, PauseSignal) as error:  # noqa: BLE001 - the person is asked all the same
        return f"[the evidence could not be made: {type(error).__name__}]"


def _refusing(
    taken: Taken, status: CallStatus, text: str, *, rule: str | None = None, issues: int | None = None
) -> Refusing:
    return Refusing(
        status=status, text=text, args=taken.args, rule=rule, issues=issues, changed=taken.changed
    )

"""Permission is the first gate: whether a call may be made at all."""

from __future__ import annotations

import inspect
from typing import cast, get_args

import msgspec

from footprint_core import plain
from footprint_core.facts import PermissionChecked, PermissionResult
from footprint_core.loop.turn import Halted, Refusing, Taken, Turn
from footprint_core.middleware import ToolCallContext
from footprint_core.pause.signal import PauseSignal
from footprint_core.permission import NamedChecker, Permission
from footprint_core.threads import drop

_RESULTS = frozenset(get_args(PermissionResult))


async def permit(turn: Turn, checker: NamedChecker, taken: Taken) -> Refusing | Halted | None:
    """Ask the checker; None lets the call go on. What it raises, or answers wrongly, is a denial."""
    await turn.writer.cancellation.heed()
    subject = taken.subject
    context = ToolCallContext(
        tool_name=subject.tool_name,
        tool_source=subject.tool_source,
        tool_call_id=subject.call_id,
        iteration=subject.iteration,
        args=taken.proposed,
        history=subject.history,
        identity=subject.identity,
    )
    raised: str | None = None
    said: str | None = None
    answer: object = None
    try:
        answer = checker.checker.check(context)
        if inspect.isawaitable(answer):
            answer = await answer
    except (Exception, PauseSignal) as error:  # noqa: BLE001 - a checker that raises is a denial
        # A tool alone may pause itself; let go, the signal would leave the run as an error of nobody.
        raised, said = type(error).__name__, plain.message_of(error)
    permission = _usable(answer, raised)
    if permission is not answer:
        drop(answer)
    name = checker.name
    turn.writer.note(
        PermissionChecked(
            iteration=subject.iteration,
            call_id=subject.call_id,
            tool_name=subject.tool_name,
            tool_source=subject.tool_source,
            checker=name,
            result=permission.result,
            policy_rule_id=plain.detach(permission.policy_rule_id),
            error_class=raised,
            rationale=_value(said if raised else permission.rationale),
            reason=_value(permission.reason),
        )
    )
    if permission.result in {"allow", "gate_open"}:
        return None
    text = plain.detach(_told(taken.call.name, permission, raised=raised is not None))
    refusing = Refusing(status="denied", text=text, args=taken.args, changed=taken.changed)
    if permission.result == "deny":
        return refusing
    return Halted(
        refusing=refusing,
        reason=permission.reason,
        checker=name,
        iteration=subject.iteration,
        call_id=subject.call_id,
        tool_name=subject.tool_name,
        proposed=taken.proposed,
    )


def _usable(answer: object, raised: str | None) -> Permission:
    """The answer when it is one that exists, else a denial; nothing of what came is quoted."""
    if raised is None and type(answer) is Permission:
        texts = (answer.tell_model, answer.rationale, answer.reason, answer.policy_rule_id)
        known = isinstance(cast("object", answer.result), str) and answer.result in _RESULTS
        if known and all(map(_is_text, texts)):
            return answer
    return Permission(result="deny", rationale=None if raised else "the checker gave no answer there is")


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _value(text: str | None) -> plain.Json:
    return msgspec.UNSET if text is None else plain.detach(text)


def _told(tool: str, permission: Permission, *, raised: bool) -> str:
    """What the model reads; never the reason of a halt, and never what a checker raised."""
    if permission.tell_model:
        return permission.tell_model
    if raised:
        return f"Permission to call {tool} could not be checked; that will not change in this run."
    if permission.result == "halt":
        return f"The call to {tool} is not permitted, and this run ends here."
    because = f": {permission.rationale}" if permission.rationale else "."
    return f"The call to {tool} is not permitted{because}"

"""A declared need is resolved: last of the gates, so that no secret is asked for in vain."""

from __future__ import annotations

import inspect
from typing import cast

from footprint_core import plain
from footprint_core.credentials import Credential, CredentialProvider, CredentialRequest
from footprint_core.facts import CredentialAcquired, CredentialFailed, CredentialRequested
from footprint_core.loop.turn import Taken, Turn
from footprint_core.pause.signal import PauseSignal
from footprint_core.threads import drop


async def acquire(turn: Turn, taken: Taken, service: str) -> Credential | None:
    """A credential for one call, or None; everything noted before is durable before anybody is asked."""
    iteration, call_id, name = taken.subject.iteration, taken.call.id, taken.call.name
    writer = turn.writer
    writer.note(CredentialRequested(iteration=iteration, call_id=call_id, tool_name=name, service=service))
    given: Credential | None = None
    error_class: str | None = None
    if turn.spec.credentials is not None:
        await writer.commit()
        await writer.cancellation.heed()
        turn.stage = "credential"
        given, error_class = await _asked(turn, turn.spec.credentials, taken, service)
    if given is None:
        failed = CredentialFailed(
            iteration=iteration, call_id=call_id, tool_name=name, service=service, error_class=error_class
        )
        writer.note(failed)
        return None
    acquired = CredentialAcquired(
        iteration=iteration,
        call_id=call_id,
        tool_name=name,
        service=service,
        credential_kind=plain.detach(given.kind),
    )
    writer.note(acquired)
    return given


async def _asked(
    turn: Turn, provider: CredentialProvider, taken: Taken, service: str
) -> tuple[Credential | None, str | None]:
    """What the provider gave, or the class of what it raised or gave instead; a text could quote a secret."""
    request = CredentialRequest(
        service=service,
        tool_name=taken.call.name,
        tool_call_id=taken.call.id,
        run_id=turn.writer.run_id,
        identity=plain.copy(turn.identity),
    )
    try:
        given = cast("object", provider.credential(request))
        if inspect.isawaitable(given):
            given = cast("object", await given)
    except (Exception, PauseSignal) as error:  # noqa: BLE001 - a call without its credential is blocked
        # A tool alone may pause itself.
        return None, type(error).__name__
    if isinstance(given, Credential):
        return given, None
    drop(given)
    return None, type(given).__name__

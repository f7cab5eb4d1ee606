"""The checkpoint: a paused run as plain JSON, enough to go on in another process.

The digest covers everything but the rows: `SHA-256(salt || JSON with sorted keys, numbers by value)`, with
16 random bytes of salt. Inside a checkpoint it finds accidents; the ledger's record of it finds edits.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from footprint_core import plain
from footprint_core.errors import ForeignCheckpointError
from footprint_core.moments import LoopMoment

VERSION = 1


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PausedCall(_Model):
    """The call a person is asked about; fields as on `loop.turn.Question`."""

    held: Literal["question"]
    kind: Literal["ask", "check-in", "human"]
    index: int
    call_id: str
    tool_name: str
    tool_source: str | None
    args: dict[str, Any]
    middleware: str | None
    link: int
    question: str | None
    shown: Any
    checked: dict[str, Any] | None
    expires_in: float | None
    ran_us: int
    changed: bool


class Checkpoint(_Model):
    """A paused run.

    Attributes:
        version: The schema version.
        pause_id: The pause.
        run_id: The run.
        segment: The segment that paused.
        position: The last position of it.
        signature: HMAC-SHA256 over all of it but itself, hex, when the agent has a key.
        held: Calls of the batch that came to something before one ahead of them is answered, by index.
        opened_us: When it paused, microseconds since the Unix epoch, UTC.
        expires_us: After which it takes no answer, or None.
        agent_id: The agent.
        conversation_id: The application's conversation, or None.
        rules: The names of the rules per moment, in order.
        salt: Of the digest, hex.
        digest: Over all of it but the rows, hex.
        trace: The span of the segment: trace id and span id, or None.
        identity: The caller's identity.
        follows: The run before this one in its conversation, or None.
        call: The call in question.
        state: The run, folded.
        before: The conversation as it was before this turn.
        rows: The decision rows so far, as they were filed.
    """

    version: Literal[1]
    pause_id: str
    run_id: str
    segment: int
    position: int
    opened_us: int
    expires_us: int | None
    agent_id: str
    conversation_id: str | None
    rules: dict[str, list[str]]
    salt: str
    digest: str
    signature: str | None
    trace: tuple[str, str] | None
    identity: Any
    follows: str | None
    call: PausedCall
    state: dict[str, Any]
    held: list[tuple[int, dict[str, Any]]]
    before: list[dict[str, Any]]
    rows: list[dict[str, Any]]


def new_salt() -> str:
    """16 random bytes, hex."""
    return os.urandom(16).hex()


def digest(salt: str, body: Mapping[str, Any]) -> str:
    """The digest over a checkpoint, whether or not its salt, digest and rows are in it; hex."""
    covered = {name: value for name, value in body.items() if name not in _NOT_COVERED}
    return hashlib.sha256(bytes.fromhex(salt) + plain.canonical(covered)).hexdigest()


_NOT_COVERED = frozenset({"salt", "digest", "rows", "signature"})


def signature(key: bytes, body: Mapping[str, Any]) -> str:
    """The HMAC-SHA256 over a checkpoint, its rows included, whether or not its signature is in it; hex."""
    covered = {name: value for name, value in body.items() if name != "signature"}
    return hmac.new(key, plain.canonical(covered), hashlib.sha256).hexdigest()


def signed_with(key: bytes, body: Mapping[str, Any], given: object) -> bool:
    """Whether a signature that came from outside is the one over `body`."""
    return isinstance(given, str) and _equal(signature(key, body), given)


def read_checkpoint(data: object, key: bytes | None) -> Checkpoint:
    """A checkpoint that came from outside.

    Args:
        data: The checkpoint.
        key: What it must be signed with, or None.

    Raises:
        ForeignCheckpointError: It is none, of a newer version, was damaged, or is not signed with the key.
    """
    if not isinstance(data, Mapping):
        raise ForeignCheckpointError(
            f"A checkpoint is the JSON object a pause gave, not {type(data).__name__}; pass pause.checkpoint."
        )
    version: object = data.get("version")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    try:
        if isinstance(version, int) and version > VERSION:
            raise ForeignCheckpointError(
                f"The checkpoint has version {version}, and this release reads up to {VERSION}; update it."
            )
        checkpoint = Checkpoint.model_validate_json(plain.encode(data), strict=True)
        found = digest(checkpoint.salt, data)  # pyright: ignore[reportUnknownArgumentType]
        signed = key is None or signature(key, data)  # pyright: ignore[reportUnknownArgumentType]
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"][:2])
        raise ForeignCheckpointError(
            f"That is no checkpoint of this product, or it was damaged at {where}; pass the original."
        ) from None
    except (TypeError, ValueError, RecursionError):
        raise ForeignCheckpointError(
            "That is no checkpoint of this product, or it was damaged; pass pause.checkpoint again."
        ) from None
    if not _equal(found, checkpoint.digest):
        raise ForeignCheckpointError(
            "The checkpoint was changed since the person was asked; use the original."
        )
    if isinstance(signed, str) and not _equal(signed, checkpoint.signature or ""):
        raise ForeignCheckpointError(
            "The checkpoint is not signed with this agent's key, or was changed; use the original."
        )
    return checkpoint


def _equal(one: str, other: str) -> bool:
    # Of texts, it would compare ASCII only, and what came from outside can hold anything.
    return hmac.compare_digest(one.encode(), other.encode())


def refuse_other_agent(
    checkpoint: Checkpoint, agent_id: str, rules: Mapping[LoopMoment, tuple[str, ...]] | None
) -> None:
    """Refuse a checkpoint of another agent, or of one whose rules differ.

    Raises:
        ForeignCheckpointError: It is one; the agent or the moment is named.
    """
    if checkpoint.agent_id != agent_id:
        raise ForeignCheckpointError(
            f"The checkpoint belongs to the agent {checkpoint.agent_id!r}, not to {agent_id!r}; resume there."
        )
    for moment, names in (rules or {}).items():
        then = checkpoint.rules.get(moment, [])
        if then != list(names):
            raise ForeignCheckpointError(
                f"The rules at {moment} were {', '.join(then) or 'none'} when the run paused and are "
                f"{', '.join(names) or 'none'} now; resume on an agent with the same rules."
            )

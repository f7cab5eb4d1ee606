"""What a caller gives a turn is looked at before anything is asked about it; no error quotes it."""

from __future__ import annotations

import asyncio

from footprint_core import plain
from footprint_core.errors import InvalidRunInputError, RunError
from footprint_core.plain import Json


def check_message(message: object, door: str) -> None:
    """Refuse a message that is none.

    Raises:
        InvalidRunInputError: It is no text, or blank.
    """
    if not isinstance(message, str):
        raise InvalidRunInputError(f"{door}() takes a message as text, not {type(message).__name__}.")
    if not message.strip():
        raise InvalidRunInputError(f"{door}() got an empty message; give it text.")


def check_identity(identity: Json, door: str) -> None:
    """Refuse an identity that is no JSON data.

    Raises:
        InvalidRunInputError: It is not.
    """
    lost = None if identity is None else plain.lost_at(identity)
    if lost is not None:
        # Two people whose identities JSON cannot hold would look the same to a rule.
        path, kind = lost
        raise InvalidRunInputError(
            f"{door}() takes an identity as JSON data, and at {path} stands a {kind}; give plain values."
        )


def refuse_running_loop() -> None:
    """Refuse to start an event loop inside another one.

    Raises:
        RunError: One is running.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RunError("run_sync() was called inside a running event loop; await run() there.")

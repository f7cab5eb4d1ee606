"""How a running tool asks a person: it raises a signal that no `except Exception` can swallow."""

from __future__ import annotations

from typing import NoReturn, cast

from footprint_core import plain
from footprint_core.errors import OutcomeError
from footprint_core.plain import Json


class PauseSignal(BaseException):
    """A tool asks a person while it runs. Not an error of the product: nothing went wrong.

    Attributes:
        payload: What the person is shown, as plain JSON.
    """

    def __init__(self, payload: Json) -> None:
        self.payload = payload
        super().__init__("A tool paused itself; only the loop that runs it may catch this.")


def pause_here(payload: object) -> NoReturn:
    """Pause the run from inside a tool; the person's answer becomes the tool's result.

    Args:
        payload: What the person is shown: JSON data.

    Raises:
        OutcomeError: JSON cannot hold the payload; the error says where.
        PauseSignal: Otherwise; the loop takes it.
    """
    lost = plain.lost_at(payload)
    if lost is not None:
        path, kind = lost
        raise OutcomeError(f"pause_here() takes JSON data, and at {path} stands a {kind}; give plain values.")
    raise PauseSignal(plain.detach(payload))


def ask_human(question: str, /, **detail: object) -> NoReturn:
    """Ask a person from inside a tool; their answer becomes the tool's result.

    Args:
        question: What they are asked.
        detail: What they are shown beside it: JSON data.

    Raises:
        OutcomeError: The question is no text or blank, or JSON cannot hold the detail.
        PauseSignal: Otherwise; the loop takes it.
    """
    if not isinstance(cast("object", question), str) or not question.strip():
        raise OutcomeError("ask_human() needs a question that can be read: give a non-blank string.")
    if "question" in detail:
        raise OutcomeError("ask_human() takes one question; give the other detail another name.")
    pause_here({"question": question, **detail})

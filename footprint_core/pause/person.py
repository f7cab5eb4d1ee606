"""What a person answers: approved or declined, by whom. Plain JSON, so that it can travel."""

from __future__ import annotations

from typing import Literal, TypedDict, cast

import msgspec

from footprint_core.errors import DecisionRequiredError


class PersonDecision(TypedDict):
    """A person's decision, as plain JSON."""

    decision: Literal["approved", "declined"]
    by: str
    note: str | None


def check_in_approved(*, by: str, note: str | None = None) -> PersonDecision:
    """The person `by` lets the call run."""
    return {"decision": "approved", "by": by, "note": note}


def check_in_declined(*, by: str, note: str | None = None) -> PersonDecision:
    """The person `by` does not; the model reads the note."""
    return {"decision": "declined", "by": by, "note": note}


class Person(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision that was checked."""

    decision: Literal["approved", "declined"]
    by: str
    note: str | None = None

    @property
    def approved(self) -> bool:
        """Whether the call may run."""
        return self.decision == "approved"

    def sentence(self) -> str:
        """Who decided what, for a row."""
        said = f"{self.decision} by {self.by}"
        return f"{said}: {self.note}" if self.note else said


def read_decision(answer: object, *, gate: str, tool_name: str) -> Person:
    """The decision in an answer.

    Raises:
        DecisionRequiredError: It is none, or names nobody. The pause stays answerable.
    """
    try:
        person = msgspec.convert(answer, type=Person)
    except msgspec.ValidationError:
        person = None
    if person is not None and person.by.strip():
        return person
    came = "a decision without a name" if person is not None else _shape(answer)
    raise DecisionRequiredError(gate=gate, tool_name=tool_name, came=came)


def _shape(answer: object) -> str:
    if answer is None:
        return "nothing"
    if isinstance(answer, dict):
        return f"a dict of {len(cast('dict[object, object]', answer))} keys"
    return f"a value of type {type(answer).__name__}"

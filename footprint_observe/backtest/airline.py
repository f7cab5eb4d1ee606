"""Rules for conversations of an airline's agent: `--rules footprint_observe.backtest.airline:rules`.

They keep personal data from the model, whoever wrote it, and let a person decide about whatever changes a
booking or gives something away.
"""

from __future__ import annotations

import re

from footprint_core.act import ActOptions
from footprint_core.middleware import (
    MessageContext,
    ToolCallContext,
    ToolResultContext,
    after_tool,
    before_tool,
    on_message,
)
from footprint_core.outcomes import MessageOutcome, ToolOutcome, ToolResultOutcome, allow, ask, deny
from footprint_core.plain import Json, is_array, is_object

CEILING = 500
"""Certificates above it are refused, in dollars: 100 for each of the five passengers a booking can have."""

_CONSEQUENTIAL = frozenset({"book_reservation", "cancel_reservation", "send_certificate"})
_PERSONAL_KEYS = frozenset({"address", "dob", "email"})

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
# Nobody books a flight for a day before 2020, so a date with such a year is one of birth.
_YEAR = r"(?:19\d\d|20[01]\d)"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_STREET = r"(?:Street|Avenue|Drive|Lane|Road|Boulevard|Court|Place|Way|Terrace|Circle|Parkway|Highway)"

_PERSONAL: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("e-mail address", re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}")),
    ("card number", re.compile(r"\b\d(?:[ -]?\d){12,18}\b", re.ASCII)),
    (
        "date of birth",
        re.compile(
            rf"\b(?:{_YEAR}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.]{_YEAR}"
            rf"|{_MONTH} {_DAY},? {_YEAR}|{_DAY}(?: of)? {_MONTH},? {_YEAR})\b",
            re.ASCII | re.IGNORECASE,
        ),
    ),
    (
        "address",
        re.compile(
            rf"\b\d{{1,5}} (?:[A-Z][a-z]{{1,20}} ){{1,3}}{_STREET}\b(?:,? (?:Suite|Apt\.?|Unit) \w{{1,6}})?",
            re.ASCII,
        ),
    ),
)


def _masked(text: str) -> MessageOutcome:
    found: list[str] = []
    for what, pattern in _PERSONAL:
        text, times = pattern.subn(f"[{what}]", text)
        if times:
            found.append(f"{times} x {what}")
    return allow(text, why=f"masked {', '.join(found)}") if found else allow()


@on_message("mask-request")
def mask_request(message: MessageContext) -> MessageOutcome:
    """What customers tell about a person stays out of the conversation; a form may ask for it."""
    return _masked(message.content)


@on_message("mask-reply")
def mask_reply(message: MessageContext) -> MessageOutcome:
    """No answer repeats personal data."""
    return _masked(message.content)


@before_tool("certificate-ceiling")
def certificate_ceiling(call: ToolCallContext) -> ToolOutcome:
    """A certificate above the ceiling is not the agent's to give."""
    if call.tool_name != "send_certificate":
        return allow()
    amount = call.args.get("amount")
    if isinstance(amount, int | float) and not isinstance(amount, bool) and amount <= CEILING:
        return allow()
    return deny(f"Certificates above ${CEILING} are not yours to give; offer at most ${CEILING}.")


@before_tool("ask-before-changes")
def ask_before_changes(call: ToolCallContext) -> ToolOutcome:
    """A person decides about whatever changes a booking or gives something away."""
    if call.tool_name in _CONSEQUENTIAL or call.tool_name.startswith("update_"):
        return ask(f"May {call.tool_name} run?")
    return allow()


@after_tool("strip-personal-data")
def strip_personal_data(call: ToolResultContext) -> ToolResultOutcome:
    """E-mail addresses, dates of birth and addresses are removed from every result, at every depth."""
    found: set[str] = set()
    kept = _stripped(call.result, found)
    return allow(kept, why=f"removed {', '.join(sorted(found))}") if found else allow()


def _stripped(value: Json, found: set[str]) -> Json:
    if is_object(value):
        found.update(_PERSONAL_KEYS & value.keys())
        return {key: _stripped(item, found) for key, item in value.items() if key not in _PERSONAL_KEYS}
    if is_array(value):
        return [_stripped(item, found) for item in value]
    return value


def rules() -> ActOptions:
    """The rules, for `.act()`."""
    return {
        "input": [mask_request],
        "before_tool": [certificate_ceiling, ask_before_changes],
        "after_tool": [strip_personal_data],
        "output": [mask_reply],
    }

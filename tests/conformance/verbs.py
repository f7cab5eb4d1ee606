"""The suite's verbs as the product's: allow, deny, ask, or an error the rule raises."""

from __future__ import annotations

import copy
import re
from typing import Any, assert_never, cast

from conformance.scenario import (
    Append,
    AskOnce,
    Clause,
    DropField,
    Mask,
    Pass,
    Question,
    Raise,
    Refuse,
    Replace,
    Same,
    SetField,
    Wrap,
)
from conformance.templates import fill
from conformance.values import Context, Json, canonical, is_object
from footprint_core import allow, ask, deny


class RuleBrokeError(Exception):
    """What a rule raises when its scenario says so."""


def outcome(clause: Clause, context: Context, value: Json, remembered: dict[str, str]) -> object:
    """What a clause answers about `value`: the args, the result or the text.

    Args:
        clause: The clause that decides.
        context: What its templates may look at.
        value: A copy that may be kept.
        remembered: Who approved what earlier, by key.
    """
    why = None if clause.why is None else fill(clause.why, context)
    verb = clause.do
    match verb:
        case Pass():
            return allow(why=why)
        case Refuse():
            return deny(fill(verb.reason, context))
        case Question():
            detail = copy.deepcopy(context.get("args")) if verb.detail == "$args" else verb.detail
            return ask(fill(verb.question, context), detail=detail)
        case Raise():
            raise RuleBrokeError(fill(verb.message, context))
        case AskOnce():
            return _once(verb, context, remembered)
        case Replace():
            return _transform(verb.value, why)
        case Same():
            return _transform(value, why)
        case SetField():
            return _transform({**value, verb.field: fill(verb.value, context)}, why)
        case Wrap():
            return _transform({verb.key: value}, why)
        case Append():
            return _transform(value + fill(verb.text, context), why)
        case DropField():
            if not is_object(value) or verb.field not in value:
                return allow()
            return _transform({key: item for key, item in value.items() if key != verb.field}, why)
        case Mask():
            if not isinstance(value, str):
                return allow()
            masked = re.sub(verb.pattern, lambda _: verb.replacement, value)
            return allow() if masked == value else _transform(masked, why)
        case _:
            assert_never(verb)


def _transform(value: Json, why: str | None) -> object:
    # Without a reason this is a misuse that the product has to refuse; a type checker does already.
    return cast("Any", allow)(value) if why is None else allow(value, why=why)


def _once(verb: AskOnce, context: Context, remembered: dict[str, str]) -> object:
    key = f"{context.get('toolSource', 'own')}::{context['toolName']}"
    if verb.key_by == "call":
        key = f"{key}::{canonical(context['args'])}"
    if key in remembered:
        return allow(why=f"approved earlier this session by {remembered[key]}")
    return ask(fill(verb.question, context), detail={"key": key})

"""Whether a condition of a scenario holds."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Final

from conformance.scenario import Predicate
from conformance.values import MISSING, Context, Json, at, is_number, same


def holds(predicate: Predicate | None, context: Context) -> bool:
    """Whether it holds; no condition always does."""
    if predicate is None:
        return True
    if predicate.all is not None:
        return all(holds(part, context) for part in predicate.all)
    if predicate.any is not None:
        return any(holds(part, context) for part in predicate.any)
    if predicate.negated is not None:
        return not holds(predicate.negated, context)
    if predicate.path is None or predicate.op is None:
        raise ValueError("A predicate has a path and an op, or parts.")
    return _compares(at(context, predicate.path), predicate.op, predicate.value)


_ORDERS: Final[dict[str, Callable[[Json, Json], bool]]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def _compares(found: Json, op: str, value: Json) -> bool:
    if op == "exists":
        return found is not MISSING
    if op == "absent":
        return found is MISSING
    if op == "eq":
        return found is not MISSING and same(found, value)
    if op == "ne":
        return found is MISSING or not same(found, value)
    if op == "contains":
        return isinstance(found, str) and value in found
    if op == "matches":
        return isinstance(found, str) and re.search(value, found) is not None
    return is_number(found) and is_number(value) and _ORDERS[op](found, value)

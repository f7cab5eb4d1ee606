"""Keys and their values inside prose, JSON in prose, headers, addresses and settings: `password=hunter2`.

Every sign between a key and a value is looked at once, and what stands before it for a bounded length, so a
search takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from footprint_observe.redaction.ranked import NEVER

_SIGN = re.compile(r"=>|(?<![=!<>:~])=(?!=)|(?<!:):(?!:|//)=?")
_LONGEST = 160

# Read from the sign to the left, so all of it is written the other way round. Quotes may be escaped, as they
# are in JSON that stands in a text of JSON.
_BEFORE = re.compile(
    r"""
    \s{0,4}+ ["'`]? \\{0,3}+
    (?P<name>[\w.\[\]-]{0,100}+)
    (?:[ ](?P<second>[\w-]{1,40}+))?
    (?:[ ](?P<third>[\w-]{1,40}+))?
    """,
    re.VERBOSE,
)
_VALUE = re.compile(
    r"""
    \s{0,4}+
    (?:
      (?P<quote>["'`]) (?P<quoted>(?:\\.|(?!(?P=quote))[^\\\r\n])*+)
      | \\{1,3}+ (?P<escaped>["'`]) (?P<inner>(?:(?!\\{1,3}(?P=escaped))[^\r\n])*+)
      | (?P<bare>
          (?:(?:basic|bearer|token|digest|negotiate|apikey)\s{1,4}+)?
          [^\s"'`,;&<>(){}\[\]\\]++
        )
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)

# What stands behind "password:" in a sentence about passwords.
_WORDS = frozenset({
    "a", "an", "and", "are", "array", "bool", "boolean", "can", "contact", "deny", "denied", "empty", "enter",
    "expired", "false", "for", "found", "has", "have", "if", "in", "incorrect", "int", "integer", "invalid",
    "is", "it", "missing", "must", "my", "no", "none", "not", "null", "number", "object", "ok", "one", "only",
    "optional", "or", "please", "required", "reset", "see", "set", "should", "str", "string", "text", "that",
    "the", "this", "to", "true", "undefined", "unknown", "unset", "use", "wrong", "yes", "you", "your",
})  # fmt: skip


def assignments(text: str, rank_of: Callable[[str], int]) -> Iterator[tuple[int, int, int]]:
    """Every value of a key that a rule names: first and stop index of the value, and the rank of the rule.

    Args:
        text: The text.
        rank_of: The rank of the rule that names a key, or `NEVER`.
    """
    done = 0
    for sign in _SIGN.finditer(text):
        if sign.start() < done:
            continue
        rank = _rank_before(text, sign.start(), rank_of)
        value = None if rank == NEVER else _VALUE.match(text, sign.end())
        if value is None:
            continue
        start, stop = value.span(value.lastgroup or 0)
        if value["bare"] is not None:
            stop -= len(value["bare"]) - len(value["bare"].rstrip(".!?:"))
            if sign[0] == ":" and text[start:stop].casefold() in _WORDS:
                continue
        if start < stop:
            yield start, stop, rank
            done = stop


def _rank_before(text: str, sign: int, rank_of: Callable[[str], int]) -> int:
    """The rank of the rule that names the key before a sign: its last word, or its last two or three."""
    found = _BEFORE.match(text[max(0, sign - _LONGEST) : sign][::-1])
    if found is None or not found["name"]:
        return NEVER
    name = found["name"][::-1]
    rank = rank_of(name)
    before = ""
    for word in found.group("second", "third"):
        if rank != NEVER or word is None:
            break
        before = f"{word[::-1]} {before}"
        rank = rank_of(before + name)
        if rank == rank_of(before):
            # "The password policy: strict" is about no password.
            rank = NEVER
    return rank

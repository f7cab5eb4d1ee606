"""Keys and their values inside prose, JSON in prose, headers, addresses and settings: `password=hunter2`.

Options of a command line and elements of XML are met, too: `--password h8nter`, `<password>x</password>`.
Where a sign is as common in code, as `==`, `::` and a name in braces are, only a value that no name could
be is one: six characters and more with a digit or a sign among them.

Every sign between a key and a value is looked at once, and what stands before it for a bounded length, so a
search takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from footprint_observe.redaction.keys import is_header, is_one_word, lets_in
from footprint_observe.redaction.ranked import NEVER

_SIGN = re.compile(r"=>|(?<![=!<>:~])={1,2}(?!=)|(?<!:):{1,2}(?!:|//)=?")
_SIGNS = (":", "=", "--", "</")
_IN_CODE = frozenset({"==", "::"})
_OPTION = re.compile(r"(?<![\w-])--(?P<name>[A-Za-z][\w-]{0,60}+)[ \t]{1,4}+(?!-)")
_ELEMENT = re.compile(
    r"<(?P<name>[A-Za-z_][\w.:-]{0,60}+)(?:\s[^<>]{0,200}+)?>(?P<value>[^<>]++)</(?P=name)\s{0,4}>"
)
_LONGEST = 160
_BEGINNING = 400
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
_SHORTEST_IN_CODE = 6
_NO_NAME = re.compile(r"[0-9!@#$%^&*+~?|]")

# Read from the sign to the left, so all of it is written the other way round. Quotes may be escaped, as they
# are in JSON that stands in a text of JSON.
_BEFORE = re.compile(
    r"""
    \s{0,16}+ \*{0,3}+ ["'`]? \\{0,3}+
    (?P<name>[\w.\[\]-]{0,100}+)
    (?:[ ](?P<second>[\w-]{1,40}+))?
    (?:[ ](?P<third>[\w-]{1,40}+))?
    """,
    re.VERBOSE,
)
_VALUE = re.compile(
    r"""
    \s{0,16}+ (?:\*{1,3}[ \t]{0,4})? (?:[bBfFrRuU]{1,2}(?=["'`]))?
    (?:
      (?P<quote>["'`]) (?P<quoted>(?:\\.|(?!(?P=quote))[^\\\r\n])*+)
      | \\{1,3}+ (?P<escaped>["'`]) (?P<inner>(?:(?!\\{1,3}(?P=escaped))[^\r\n])*+)
      | \{(?P<braced>[^\s"'`{}]{1,160}+)\}
      | (?P<bare>
          (?:(?:basic|bearer|token|digest|negotiate|apikey)\s{1,4}+)?
          [^\s"'`,;&<>(){}\[\]\\]
          (?:
            [^\s"'`,;&<>(){}\[\]\\]
            | [,;&](?![\s,;&]|$|[\w.-]{1,40}+\s?[=:])
            | [(){}\[\]](?=[^\s"'`,;&<>(){}\[\]\\])
            | \\(?![\\"'`nrtu])
          )*+
        )
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)

# More words of a value, up to the end of its line or sentence, or to the next key.
_REST = re.compile(
    r"""(?:(?<![.!?,;])[ \t]{1,4}+(?![-|]{1,2}+\s|[\w.-]{1,40}+\s?[:=])[^\s"'`,;<>(){}\[\]\\]++)*+"""
)
_HEADER = re.compile(r"""[ \t]{0,16}+(?P<all>[^\s"'`\\](?:=["'][^"'\r\n]*+["']|[^"'`\r\n\\])*+)""")
_BLOCK = re.compile(
    r"[ \t]{0,16}+[|>][-+\d]{0,2}+[ \t]*+\r?\n"
    r"(?P<indent>[ \t]++)(?P<all>[^\r\n]*+(?:\r?\n(?P=indent)[^\r\n]*+)*+)"
)
_PAIR = re.compile(
    r"""(?i:\b(?:name|key))["']?\s{0,4}+[=:]\s{0,4}+["'](?P<name>[\w .-]{1,60}+)["'],?\s{1,8}+"""
    r"""["']?(?i:value)["']?\s{0,4}+[=:]\s{0,4}+["'](?P<value>[^"'\r\n]++)"""
)
_CODES = re.compile(r"(?:[ \t]{0,4}+,[ \t]{0,4}+[\w-]{4,40}+(?![\w:=]))*+")
_CALL = re.compile(r"[A-Za-z_][A-Za-z_.]*+\([^()\r\n]{0,200}+\)(?:[\s,;.:)\]}]|$)")
_COMPLAINTS = frozenset({
    "bad", "expired", "illegal", "invalid", "malformed", "missing", "unexpected", "unknown", "wrong",
})  # fmt: skip

# What stands behind "password:" in a sentence about passwords.
_WORDS = frozenset({
    "a", "an", "and", "are", "array", "bool", "boolean", "can", "contact", "deny", "denied", "empty", "enter",
    "expired", "false", "for", "found", "has", "have", "if", "in", "incorrect", "int", "integer", "invalid",
    "is", "it", "missing", "must", "my", "no", "none", "not", "null", "number", "object", "ok", "one", "only",
    "optional", "or", "please", "required", "reset", "see", "set", "should", "str", "string", "text", "that",
    "the", "this", "to", "true", "undefined", "unknown", "unset", "use", "wrong", "yes", "you", "your",
})  # fmt: skip


def could_assign(text: str) -> bool:
    """Whether a text has any sign that stands between a key and its value."""
    return any(sign in text for sign in _SIGNS)


def assignments(
    text: str, rank_of: Callable[[str], int], spares: Callable[[int, str, str], bool]
) -> Iterator[tuple[int, int, int]]:
    """Every value of a key that a rule names: first and stop index of the value, and the rank of the rule.

    They may overlap.

    Args:
        text: The text.
        rank_of: The rank of the rule that names a key, or `NEVER`.
        spares: Whether the rule of a rank leaves what stands under a key.
    """
    yield from _signed(text, rank_of, spares)
    for option in _OPTION.finditer(text) if "--" in text else ():
        rank = rank_of(option["name"])
        value = None if rank == NEVER else _VALUE.match(text, option.end())
        if value is not None and not (value["bare"] and not _is_no_name(value["bare"])):
            yield *value.span(value.lastgroup or 0), rank
    for element in _ELEMENT.finditer(text) if "</" in text else ():
        rank = rank_of(element["name"])
        if rank != NEVER and element["value"].strip() and not spares(rank, element["name"], element["value"]):
            yield *element.span("value"), rank
    for pair in _PAIR.finditer(text) if "alue" in text else ():
        rank = rank_of(pair["name"])
        if rank != NEVER and not spares(rank, pair["name"], pair["value"]):
            yield *pair.span("value"), rank


def _signed(
    text: str, rank_of: Callable[[str], int], spares: Callable[[int, str, str], bool]
) -> Iterator[tuple[int, int, int]]:
    done = 0
    for sign in _SIGN.finditer(text):
        if sign.start() < done:
            continue
        key = _key_before(text, sign.start(), rank_of)
        if key is None:
            continue
        name, before, rank = key
        span = _long(text, sign, name)
        if span is None:
            span = _short(text, sign, name, before)
            if span is None or spares(rank, name, text[span[0] : span[1]]):
                continue
        if span[0] < span[1]:
            yield *span, rank
            done = span[1]


def _long(text: str, sign: re.Match[str], name: str) -> tuple[int, int] | None:
    """The value that is a header, to the end of its line, or a block of YAML."""
    if sign[0] != ":":
        return None
    value = _BLOCK.match(text, sign.end())
    if is_header(name):
        # Its beginning decides: to look at all of it behind each such sign would be quadratic.
        begins = _HEADER.match(text, sign.end(), sign.end() + _BEGINNING)
        if begins is not None and lets_in(begins["all"]):
            value = _HEADER.match(text, sign.end())
    return None if value is None else (value.start("all"), value.start("all") + len(value["all"].rstrip()))


def _short(text: str, sign: re.Match[str], name: str, before: str) -> tuple[int, int] | None:
    """The value in quotes or without, as far as it goes; None where there is none."""
    if sign[0] in _IN_CODE:
        # Its beginning decides, for the same reason as in `_long`.
        begins = _VALUE.match(text, sign.end(), sign.end() + _LONGEST)
        if begins is not None and begins["bare"] is not None and not _is_no_name(begins["bare"]):
            return None
    value = _VALUE.match(text, sign.end())
    if value is None:
        return None
    start, stop = value.span(value.lastgroup or 0)
    if value["braced"] is not None:
        return (start, stop) if _is_no_name(value["braced"]) else None
    bare: str | None = value["bare"]
    if bare is None:
        return start, stop
    if sign[0] == "=" and (_CALL.match(text, start) is not None or "\n" in text[sign.end() : start]):
        # `token = next(tokens)`, and a setting without a value before the next one.
        return None
    if "\n" in text[sign.end() : start] and bare.endswith(":"):
        return None
    if any(
        text[stop : stop + 1] == last and bare.count(first) > bare.count(last) for first, last in _BRACKETS
    ):
        stop += 1
    if sign[0] == ":" and is_one_word(name):
        if before.casefold() in _COMPLAINTS and bare.isalpha() and bare.islower():
            return None
    elif sign[0] == ":" and text[sign.end() : sign.end() + 1].isspace():
        rest = _REST.match(text, stop)
        stop = stop if rest is None else rest.end()
        codes = _CODES.match(text, stop) if name.casefold().endswith("codes") else None
        stop = stop if codes is None else codes.end()
    stop -= len(text[start:stop]) - len(text[start:stop].rstrip(".!?:"))
    if sign[0] == ":" and bare.rstrip(".!?:").casefold() in _WORDS:
        return None
    return start, stop


def _is_no_name(value: str) -> bool:
    """Whether a value is none that a name, a path in code or a placeholder could be."""
    return len(value) >= _SHORTEST_IN_CODE and _NO_NAME.search(value) is not None


def _key_before(text: str, sign: int, rank_of: Callable[[str], int]) -> tuple[str, str, int] | None:
    """The key before a sign that a rule names, the word before it, and the rank of the rule.

    The key is the last word, or the last two or three.
    """
    found = _BEFORE.match(text[max(0, sign - _LONGEST) : sign][::-1])
    if found is None or not found["name"]:
        return None
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
    return None if rank == NEVER else (before + name, (found["second"] or "")[::-1], rank)

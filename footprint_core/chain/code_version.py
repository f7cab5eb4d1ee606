"""The version of a rule that states none: a hash of its hooks' code.

It changes when the code of a hook does, and is the same in every process of one Python version. What the
code reaches at run time is not in it: closures, attributes, the functions it calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from types import CodeType, EllipsisType, FunctionType, MethodType
from typing import Any, cast

_DIGITS = 12


def code_version(hooks: Mapping[str, Callable[..., object] | None]) -> str | None:
    """12 hex characters for the code of hooks by their names, or None where the code of one cannot be had."""
    written: list[bytes] = []
    for name, hook in hooks.items():
        if hook is None:
            continue
        functions = list(_functions(hook, set()))
        if not functions:
            return None
        written += (name.encode(), *map(_function, functions))
    return hashlib.sha256(_joined(written)).hexdigest()[:_DIGITS] if written else None


def _functions(hook: object, met: set[int]) -> Iterator[FunctionType]:
    """What a hook is made of: a function, and whatever that wraps."""
    if id(hook) in met:
        # Something that says it wraps itself would be followed for ever.
        return
    met.add(id(hook))
    if isinstance(hook, MethodType):
        yield from _functions(hook.__func__, met)
        return
    if isinstance(hook, partial):
        yield from _functions(cast("partial[object]", hook).func, met)
        return
    if isinstance(hook, FunctionType):
        yield hook
    elif isinstance(call := type(hook).__call__, FunctionType):
        yield from _functions(call, met)
    wrapped = getattr(hook, "__dict__", {}).get("__wrapped__")
    if wrapped is not None:
        yield from _functions(wrapped, met)


def _function(function: FunctionType) -> bytes:
    by_keyword = sorted((function.__kwdefaults__ or {}).items())
    return _joined(
        [
            _code(function.__code__),
            _value(function.__defaults__),
            *(_value(pair) for pair in by_keyword),
        ]
    )


# An agent may be described anew for every request, and looks at each rule several times.
@lru_cache(maxsize=256)
def _code(code: CodeType) -> bytes:
    """Code without its name, its file and its lines: where it stands is no part of what it does."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    parts = (code.co_code, code.co_exceptiontable, counts, names, code.co_consts)
    return _joined([_value(part) for part in parts])


def _value(value: object) -> bytes:
    """A constant or a default: by its value when it is of a plain type, else by nothing but its place."""
    match value:
        case CodeType():
            return b"code" + _code(value)
        case tuple():
            return b"tuple" + _joined([_value(item) for item in cast("tuple[object, ...]", value)])
        case frozenset():
            # Its order hangs on the hash seed of the process.
            return b"set" + _joined(sorted(_value(item) for item in cast("frozenset[object]", value)))
        case slice():
            whole = cast("Any", value)
            return b"slice" + _value((whole.start, whole.stop, whole.step))
        case int() if type(value) is int:
            # Not in decimal: Python refuses to write a long number so.
            return b"int" + hex(value).encode()
        case _:
            return f"{type(value).__name__} {value!r}".encode() if type(value) in _ATOMS else b"?"


# By their exact types: what a class of a rule's own is written as may name an address.
_ATOMS = frozenset({type(None), bool, float, complex, str, bytes, EllipsisType})


def _joined(parts: list[bytes]) -> bytes:
    """The parts behind their lengths, so that no two lists read the same."""
    return b"".join(b"%d:%b" % (len(part), part) for part in parts)

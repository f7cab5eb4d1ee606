"""Looks for a text in an error and in everything its traceback keeps alive of the product's own frames.

A local counts with what it holds, two levels deep: items, attributes, what a closure or a `partial` carries,
the locals of a coroutine that has not ended. `self` and ledgers are left out: they hold the product's state
on purpose. Frames of the caller and of the standard library are not looked at.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
    TracebackType,
)
from typing import Any, cast

import msgspec

import footprint_core
import footprint_observe
import recorders

PACKAGES = tuple(
    Path(str(package.__file__)).parent for package in (footprint_core, footprint_observe, recorders)
)
LEVELS = 2

_ATOMS = (int, float, complex, type(None), type, ModuleType, BuiltinFunctionType, msgspec.UnsetType)
_SUSPENDED = (CoroutineType, GeneratorType, AsyncGeneratorType)


def leaks(error: BaseException, text: str) -> list[str]:
    """Where an error, what it is chained to, or a frame of the product in a traceback holds the text."""
    found: list[str] = []
    todo: list[BaseException | None] = [error]
    met: set[int] = set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in met:
            continue
        met.add(id(one))
        todo += (one.__cause__, one.__context__)
        where = type(one).__name__
        said = [("str", str(one)), ("repr", repr(one)), ("args", one.args), *attributes(one)]
        found += [f"{where}.{name}" for name, value in said if holds(value, text)]
        for frame in frames(one.__traceback__):
            found += [f"{where}: {at}" for at in in_frame(frame, text)]
    return found


def frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    """The product's frames of a traceback."""
    while traceback is not None:
        file = Path(traceback.tb_frame.f_code.co_filename)
        if any(package in file.parents for package in PACKAGES):
            yield traceback.tb_frame
        traceback = traceback.tb_next


def in_frame(frame: FrameType, text: str) -> list[str]:
    """The locals of a frame that hold the text."""
    where = f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_qualname}"
    own = frame.f_locals.get("self")
    return [
        f"{where}.{name}"
        for name, value in frame.f_locals.items()
        if name != "self" and holds(value, text, own=own)
    ]


def holds(value: object, text: str, *, levels: int = LEVELS, own: object = None) -> bool:
    """Whether a value, or what it holds `levels` deep, has the text in it; `own` is what `self` is."""
    if isinstance(value, str):
        return text in value
    if isinstance(value, bytes | bytearray | memoryview):
        return text.encode() in bytes(value)
    if isinstance(value, _ATOMS) or (own is not None and value is own) or is_ledger(value):
        return False
    return levels > 0 and any(holds(part, text, levels=levels - 1, own=own) for part in parts(value))


def is_ledger(value: object) -> bool:
    """Whether a value is a ledger."""
    return hasattr(value, "append_inline") and hasattr(value, "pause_standing")


def parts(value: object) -> Iterator[object]:
    """What a value holds."""
    if isinstance(value, Mapping):
        yield from value.keys()
        yield from value.values()
    elif isinstance(value, Sequence | set | frozenset):
        yield from value
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or () if _filled(cell))
        yield from (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    elif isinstance(value, _SUSPENDED):
        yield from _locals(value)
    elif isinstance(value, asyncio.Task):
        yield value.get_coro()
        if value.done() and not value.cancelled():
            yield value.exception() or value.result()
    else:
        if isinstance(value, BaseException):
            yield from (value.args, value.__cause__, value.__context__)
        yield from (part for _, part in attributes(value))


def attributes(value: object) -> Iterator[tuple[str, object]]:
    """The attributes an object keeps, in its dict, its slots or its fields."""
    yield from vars(value).items() if hasattr(value, "__dict__") else ()
    fields = value.__struct_fields__ if isinstance(value, msgspec.Struct) else ()
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    for name in dict.fromkeys((*fields, *slots)):
        try:
            yield name, getattr(value, name)
        except AttributeError:
            continue


def _slots(kind: type) -> list[str]:
    slots = cast("str | Sequence[str]", vars(kind).get("__slots__", ()))
    return [_mangled(kind, name) for name in ((slots,) if isinstance(slots, str) else slots)]


def _mangled(kind: type, name: str) -> str:
    hidden = name.startswith("__") and not name.endswith("__")
    return f"_{kind.__name__.lstrip('_')}{name}" if hidden else name


def _locals(value: Any) -> Iterator[object]:
    for prefix in ("cr", "gi", "ag"):
        frame: FrameType | None = getattr(value, f"{prefix}_frame", None)
        if frame is not None:
            yield from frame.f_locals.values()
        yield getattr(value, f"{prefix}_await", None)


def _filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True

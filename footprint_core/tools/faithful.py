"""Whether what is put on record of arguments is what runs: a type can leave out or change what it writes."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, cast

from footprint_core import plain
from footprint_core.plain import Json


def faithful(value: object, recorded: Json) -> bool:
    """Whether the recorded form of a checked value has every part of it, and plain parts as they are.

    A field that a model excludes, or a serializer of its own that writes something else, would let a tool
    run with what no row shows. What is no plain value, a date or a secret, is recorded as its type says.
    """
    if value is None or isinstance(value, bool | str):
        return type(value) is type(recorded) and value == recorded if type(value) in _EXACT else True
    if type(value) in {int, float}:
        return isinstance(recorded, int | float) and not isinstance(recorded, bool) and value == recorded
    if isinstance(value, Mapping):
        parts = cast("Mapping[object, object]", value)
        return plain.is_object(recorded) and _each(parts.values(), list(recorded.values()))
    if isinstance(value, list | tuple | set | frozenset | deque):
        return plain.is_array(recorded) and _each(cast("Iterable[object]", value), recorded)
    if getattr(type(value), "__pydantic_root_model__", False):
        return faithful(cast("Any", value).root, recorded)
    if (fields := _fields_of(value)) is not None:
        return plain.is_object(recorded) and all(
            key in recorded and faithful(part, recorded[key])
            for key, part in ((_key(name, value, recorded), part) for name, part in fields.items())
        )
    return True


_EXACT = frozenset({type(None), bool, str})


def _each(parts: Iterable[object], recorded: list[Json]) -> bool:
    # Written in the order they are walked in, whatever their keys became.
    held = list(parts)
    return len(held) == len(recorded) and all(map(faithful, held, recorded))


def _fields_of(value: object) -> Mapping[str, object] | None:
    """The fields of a model or a dataclass; None for anything else."""
    kind: Any = type(value)
    if isinstance(names := getattr(kind, "model_fields", None), Mapping):
        found = {name: getattr(value, name) for name in cast("Mapping[str, object]", names)}
        return {**found, **(getattr(value, "__pydantic_extra__", None) or {})}
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return None
    if getattr(kind, "__pydantic_config__", {}).get("extra") == "allow":
        return dict(vars(value))
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _key(name: str, value: object, recorded: Mapping[str, Json]) -> str:
    """The name a field is recorded under: a model can write its aliases."""
    if name in recorded:
        return name
    field = getattr(type(value), "model_fields", {}).get(name)
    return getattr(field, "serialization_alias", None) or name


def unrecordable(schema: object) -> str | None:
    """What of a core schema of pydantic could not be put on record as it runs, in words, or None."""
    if isinstance(schema, dict):
        held = cast("dict[str, object]", schema)
        if held.get("type") == "generator":
            return "an iterable that is read once; annotate it as a list"
        if held.get("init_only") is True:
            return "a dataclass with an InitVar, which nothing keeps; make it a field"
        parts: Iterable[object] = held.values()
    elif isinstance(schema, list | tuple):
        parts = cast("list[object]", schema)
    else:
        return None
    return next((found for part in parts if (found := unrecordable(part)) is not None), None)

"""Whether what is put on record of arguments is what runs: a type can leave out or change what it writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from footprint_core import plain
from footprint_core.plain import Json

_PLAIN = (str, int, float, type(None))


def faithful(value: object, recorded: Json) -> bool:
    """Whether the recorded form of a checked value has every part of it, and plain parts as they are.

    A field that a model excludes, or a serializer of its own that writes something else, would let a tool
    run with what no row shows. What is no plain value, a date or a secret, is recorded as its type says.
    """
    if isinstance(value, Mapping):
        parts = cast("Mapping[object, object]", value)
        return plain.is_object(recorded) and len(parts) == len(recorded) and _fields(parts, recorded)
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        return (
            plain.is_array(recorded) and len(items) == len(recorded) and all(map(faithful, items, recorded))
        )
    if (fields := _fields_of(value)) is not None:
        return plain.is_object(recorded) and _fields(fields, recorded)
    if type(value) in _PLAIN or isinstance(value, bool):
        return type(value) is type(recorded) and value == recorded
    return True


def _fields(fields: Mapping[Any, object], recorded: dict[str, Json]) -> bool:
    return all(
        (not isinstance(name, str)) or (name in recorded and faithful(part, recorded[name]))
        for name, part in fields.items()
    )


def _fields_of(value: object) -> Mapping[str, object] | None:
    """The fields of a model or a dataclass; None for anything else."""
    if hasattr(type(value), "model_fields"):
        # A root model is written as its root.
        fields = dict(vars(value))
        extra = getattr(value, "__pydantic_extra__", None)
        return None if set(fields) == {"root"} else {**fields, **(extra or {})}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def lazy(schema: object) -> bool:
    """Whether a core schema of pydantic has a part that is read once only: recording it would empty it."""
    if isinstance(schema, dict):
        held = cast("dict[str, object]", schema)
        return held.get("type") == "generator" or any(map(lazy, held.values()))
    if isinstance(schema, list | tuple):
        return any(map(lazy, cast("list[object]", schema)))
    return False

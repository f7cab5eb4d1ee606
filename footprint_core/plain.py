"""Plain JSON data: what every value becomes once, when it enters the product.

A value in the product is text, a whole or finite number, a boolean, None, a list or a dict with text
keys. What JSON cannot hold is replaced by a mark that names its type, so that a row never fails.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias, TypeGuard, cast

import msgspec

Json: TypeAlias = Any
"""Plain JSON data."""

JsonType: TypeAlias = Literal["object", "array", "string", "number", "boolean", "null"]

_MAX_DEPTH = 100
_MAX_BITS = 4096
_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode


def mark(value: object) -> str:
    """The text that stands for a value JSON cannot hold: its type, never its content."""
    return f"[not JSON: {type(value).__name__}]"


def detach(value: object) -> Json:
    """A copy of `value` as plain JSON data, which shares nothing with it.

    Tuples and sets become lists; pydantic models, dataclasses and msgspec structs become dicts;
    anything else JSON cannot hold becomes `mark(value)` at its place.
    """
    if type(value) is str and value.isascii():
        return value
    return _Detaching().value(value, 0)


def examine(value: object) -> tuple[Json, bool]:
    """`detach(value)`, and whether JSON could hold all of it."""
    walk = _Detaching()
    return walk.value(value, 0), not walk.lost


class _Detaching:
    """One walk over a value; a container that holds itself is met again on the way to its parts."""

    __slots__ = ("_within", "lost")

    def __init__(self) -> None:
        self.lost = False
        self._within: set[int] = set()

    def value(self, value: object, depth: int) -> Json:
        if value is None or value is True or value is False:
            return value
        kind = type(value)
        if kind is str:
            return _text(cast("str", value))
        if kind is int:
            # Python refuses to write longer numbers as text, and so would every reader.
            return value if cast("int", value).bit_length() <= _MAX_BITS else self._lose(value)
        if kind is float:
            return value if math.isfinite(cast("float", value)) else self._lose(value)
        if depth > _MAX_DEPTH or id(value) in self._within:
            return self._lose(value)
        self._within.add(id(value))
        try:
            return self._container(value, kind, depth)
        except Exception:  # noqa: BLE001 - a foreign class may raise anything; the mark is the answer
            return self._lose(value)
        finally:
            self._within.discard(id(value))

    def _container(self, value: object, kind: type, depth: int) -> Json:
        if kind is dict or isinstance(value, dict):
            out: dict[str, Json] = {}
            for key, item in cast("dict[object, object]", value).items():
                name = _text(key) if isinstance(key, str) else self._key(key)
                while name in out:
                    # Two keys that read the same stay two.
                    name += "~"
                out[name] = self.value(item, depth + 1)
            return out
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item, depth + 1) for item in cast("list[object]", value)]
        if isinstance(value, str):
            return _text(str.__str__(value))
        if issubclass(kind, bytes | bytearray | memoryview):
            # JSON has no bytes, and base64 would hide what is in them from everything that looks for it.
            return self._lose(value)
        dump = getattr(value, "model_dump", None)
        if callable(dump):
            built = dump(mode="json")
        else:
            # A dataclass can hold what msgspec does not know, a pydantic model for example.
            built = msgspec.to_builtins(value, enc_hook=lambda inner: self.value(inner, depth + 1))
        return self._lose(value) if type(built) is type(value) else self.value(built, depth + 1)

    def _key(self, key: object) -> str:
        return rendered(self.value(key, _MAX_DEPTH))

    def _lose(self, value: object) -> str:
        self.lost = True
        return mark(value)


def _text(value: str) -> str:
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        # A lone surrogate cannot be written as UTF-8; the row must not fail because of it.
        return value.encode(errors="surrogatepass").decode(errors="replace")
    return value


def lost_at(value: object) -> tuple[str, str] | None:
    """The dotted path to the first thing JSON cannot hold, and its type; None when there is none."""
    if examine(value)[1]:
        return None
    path: list[str] = []
    met: set[int] = set()
    # One step down at a time, into the first part that JSON cannot hold; a container may hold itself.
    while id(value) not in met:
        met.add(id(value))
        lost = next(((key, item) for key, item in _parts(value) if not examine(item)[1]), None)
        if lost is None:
            break
        path.append(str(lost[0]))
        value = lost[1]
    return ".".join(path) or "its top", type(value).__name__


def _parts(value: object) -> list[tuple[object, object]]:
    if isinstance(value, dict):
        return list(cast("dict[object, object]", value).items())
    if isinstance(value, list):
        return list(enumerate(cast("list[object]", value)))
    if isinstance(value, tuple):
        return list(enumerate(cast("tuple[object, ...]", value)))
    return []


def message_of(error: BaseException) -> str:
    """What an error says, or its class where it says nothing or raises when it is asked."""
    try:
        text: str = detach(str(error))
    except Exception:  # noqa: BLE001 - an error whose text raises has no text
        text = ""
    return text or type(error).__name__


def is_object(value: object) -> TypeGuard[dict[str, Json]]:
    """Whether a plain value is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Json]]:
    """Whether a plain value is a JSON array."""
    return isinstance(value, list)


_ATOMS = frozenset({str, int, bool, type(None)})


def is_flat(fields: dict[str, Any]) -> bool:
    """Whether all values are text, whole numbers, booleans or None: plain already, and shared at no risk."""
    for value in fields.values():  # noqa: SIM110 - a generator costs more than the loop, and this runs per call
        if type(value) not in _ATOMS:
            return False
    return True


def copy(value: Json) -> Json:
    """A copy of plain data, all levels deep; text and numbers are shared, for nothing can change them."""
    if is_object(value):
        if is_flat(value):
            return dict(value)
        return {key: item if type(item) in _ATOMS else copy(item) for key, item in value.items()}
    if is_array(value):
        return [copy(item) for item in value]
    return value


def same(one: Json, other: Json) -> bool:
    """Whether two plain values are equal as canonical JSON: numbers by value, `True` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if is_object(one):
        return (
            is_object(other)
            and one.keys() == other.keys()
            and all(same(item, other[key]) for key, item in one.items())
        )
    if is_array(one):
        return is_array(other) and len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def encode(value: Json) -> bytes:
    """Compact JSON, UTF-8."""
    return _encode(value)


def canonical(value: Json) -> bytes:
    """Compact JSON with sorted keys and numbers by value, UTF-8: equal for whatever `same` finds equal.

    Programs in other languages write 100.0 as 100, and may hand it back like that.
    """
    return _encode_sorted(_by_value(value))


def _by_value(value: Json) -> Json:
    if is_object(value):
        return {key: _by_value(item) for key, item in value.items()}
    if is_array(value):
        return [_by_value(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def decode(data: bytes | str) -> Json:
    """The plain data of a JSON text.

    Raises:
        ValueError: The text is no JSON.
    """
    try:
        return _decode(data)
    except (msgspec.DecodeError, RecursionError):
        # The library's message quotes nothing, but its class is not ours to promise.
        raise ValueError("That text is no JSON.") from None


def rendered(value: Json) -> str:
    """What a model reads of a value: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else _encode(value).decode()


def size(value: Json) -> int:
    """Bytes of what a model reads of a value, UTF-8."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    return len(_encode(value))


def json_type(value: Json) -> JsonType:
    """The JSON word for a plain value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"

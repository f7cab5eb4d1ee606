"""What a row's hash is over, decided once: the layout that later proofs are made of.

```text
commitment = SHA-256( "footprint:value:1" 0x0A | salt (16) | length of field (4, big-endian) | field | json )
document   = canonical JSON object of the row's stored columns that are not NULL,
             without id, prev_hash and hash
hash       = SHA-256( "footprint:row:1" 0x0A | hash of the run's row before (32) | document )
```

The first row of a run has 32 zero bytes for the hash before it. `hash` is also the leaf of a tree over all
rows: the row with id N is leaf N-1.

A value's commitment is over exactly the bytes of `vals.json`, not over a canonical form of them: RFC 8785
writes 1.0 as `1` and sorts keys, and a value must come back as the model read it, its key order included.
The row holds its commitments (`facts.commitments`, hex), so that a value can be erased with its salt and
the row and the chain still verify; without the salt the commitment tells nothing about the value.

The document is RFC 8785 byte for byte by construction: its keys are column names, ASCII and written in
sorted order; its values are texts and whole numbers within 2^53, and msgspec escapes text as RFC 8785 does.
`extra`, `redacted` and `commitments` are in it as texts, just as they are stored, so what they hold
(floats, greater numbers) needs no canonical form. A NULL column is left out, so that a schema which
adds columns changes no hash.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TypeAlias, cast

import msgspec

from footprint_observe.store.schema import HASHED_COLUMNS

Columns: TypeAlias = tuple[str | int | None, ...]
"""A row's values in the order of `HASHED_COLUMNS`; booleans as 0 and 1, as they are stored."""

FIRST = bytes(32)
"""The hash before the first row of a run."""

_ROW_TAG = b"footprint:row:1\n"
_VALUE_TAG = b"footprint:value:1\n"
_MAX_INT = 2**53 - 1
_INTEGERS = ("duration_us", "iteration", "position", "recorded_us", "segment")
_INTEGER_AT = tuple(map(HASHED_COLUMNS.index, _INTEGERS))

# A struct with the columns as its fields encodes twice as fast as a dict, and leaves out NULLs by itself.
_Document = cast(
    "Callable[..., object]",
    msgspec.defstruct(
        "Document", [(name, str | int | None, None) for name in HASHED_COLUMNS], omit_defaults=True
    ),
)
_encode = msgspec.json.Encoder().encode


def document(columns: Columns) -> bytes:
    """The canonical JSON of a row.

    Raises:
        ValueError: A whole number is beyond 2^53, where JSON readers disagree about it.
    """
    for at in _INTEGER_AT:
        number = columns[at]
        if number is not None and not -_MAX_INT <= cast("int", number) <= _MAX_INT:
            raise ValueError(f"The column {HASHED_COLUMNS[at]} holds a number beyond 2^53.")
    return _encode(_Document(*columns))


def link(before: bytes, row: bytes) -> bytes:
    """The hash (32 bytes) of a row's document, behind the hash of its run's row before."""
    return sha256(_ROW_TAG + before + row).digest()


def value_prefix(field: str) -> bytes:
    """A value field's name as it goes into a commitment: its length in 4 bytes, then the name."""
    name = field.encode()
    return len(name).to_bytes(4, "big") + name


def commitment(salt: bytes, prefix: bytes, json: bytes) -> str:
    """The salted commitment to a value, 64 hex characters; `prefix` is `value_prefix` of its field."""
    return sha256(_VALUE_TAG + salt + prefix + json).hexdigest()

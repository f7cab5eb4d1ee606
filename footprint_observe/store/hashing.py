r"""What a row's hash is over, decided once: the format that later proofs are made of.

It is written down here so that it can be checked without this program. `|` puts bytes behind each other, a
text stands for its UTF-8 bytes, and base64url is without padding (RFC 4648, section 5).

```text
document   = canonical JSON object (RFC 8785) of the columns of the row in `facts` that are not NULL,
             without id, prev_hash and hash
hash       = SHA-256( "footprint:row:1" 0x0A | prev_hash | document )
commitment = hex( SHA-256( "footprint:value:1" 0x0A | salt | length of field | field | json ) )
disclosure = base64url( UTF-8( ["SALT",KEY,JSON] ) )   of a value cut out of an object
             base64url( UTF-8( ["SALT",JSON] ) )       of one cut out of an array
digest     = base64url( SHA-256( ASCII( disclosure ) ) )
```

**The chain.** `id` counts the rows of the file from 1 without gaps, `position` those of a run from 1 without
gaps, in the order of `id`. `prev_hash` (32 bytes) is the `hash` of the row one position before in the run;
32 zero bytes in its first. `hash` (32 bytes) is also the leaf of a tree over all rows: the row with id N is
leaf N-1. The document is canonical by construction: its keys are column names, ASCII, in sorted order; its
values are texts, and whole numbers of at most 2^53 - 1. The columns `extra`, `redacted` and `commitments`
are in it as texts, just as they are stored, so what they hold needs no canonical form. As a NULL is left
out, a schema that adds columns changes no hash.

**Values.** `facts.commitments` is NULL or a JSON object. It has an entry for every row of `vals` the row was
written with, under `vals.field`, and `vals` has no other. A field without a dot is a whole value; the entry
is its commitment, 64 hex characters in lower case, in which `salt` is `vals.salt` (16 bytes), the length of
the field is that of its UTF-8 bytes in 4 bytes, big-endian, and `json` is exactly the text of `vals.json`
(not a canonical form of it: a value must come back as the model read it, its key order included).

**Erasable paths.** A field with a dot is a value that was cut out of another one. The entry is its digest,
as in SD-JWT (RFC 9901), in which SALT is base64url(`vals.salt`), JSON the text of `vals.json`, and KEY the
key it had, written as a JSON text as RFC 8785 does; commas are the only bytes between the three. In its
place stands the object {"...": digest}. The field names that place: the whole value, then a step for every
key and index (from 0) on the way, joined by dots. In a step `\\` stands for a backslash, `\.` for a dot and
`\x1f` for the character with that code; `calls.0.args` is the text `args_json` of the first call. KEY is the
last step; when that is a number, the value may also have been an item of an array. JSON is one JSON value: a
text that begins with KEY and a comma is none, or the digest of a member would also be that of an item. A step
into a text goes into the JSON that is the text, in which everything but the cut value stands as it was. A
value can be cut out of one that was cut out itself; then {"...": digest} stands in the JSON of that.

**What is gone.** A row of `vals` can go with its salt: the row that commits to it and the chain verify
without it, and the commitment tells nothing about the value any more.

**What this does not show.** The last rows of a run, or whole runs at the end of the file, can be cut off
without a trace in what is left, and who can write the file can write all of it anew. Only a copy of a hash
that is kept elsewhere tells. The order of rows is protected within a run, not between runs: `id` is in no
hash, so rows of two runs can be put in another order.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from operator import itemgetter
from typing import TypeAlias, cast

import msgspec

from footprint_observe.store.schema import HASHED_COLUMNS

Columns: TypeAlias = tuple[str | int | None, ...]
"""A row's values in the order of `HASHED_COLUMNS`; booleans as 0 and 1, as they are stored."""

FIRST = bytes(32)
"""The hash before the first row of a run."""

SALT_BYTES = 16
"""The bytes of a salt, of a whole value or of a part that is kept apart."""

_ROW_TAG = b"footprint:row:1\n"
_VALUE_TAG = b"footprint:value:1\n"
_MAX_INT = 2**53 - 1
_INTEGERS = ("duration_us", "iteration", "position", "recorded_us", "segment")
_integers = cast(
    "Callable[[Columns], tuple[int | None, ...]]", itemgetter(*map(HASHED_COLUMNS.index, _INTEGERS))
)

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
    for number in _integers(columns):
        if number is not None and not -_MAX_INT <= number <= _MAX_INT:
            raise ValueError("A column holds a number beyond 2^53.")
    return _encode(_Document(*columns))


def link(before: bytes, row: bytes) -> bytes:
    """The hash (32 bytes) of a row's document, behind the hash of its run's row before."""
    return sha256(_ROW_TAG + before + row).digest()


def value_prefix(field: str) -> bytes:
    """A value field's name as it goes into a commitment: its length in 4 bytes, then the name."""
    name = field.encode()
    return len(name).to_bytes(4, "big") + name


def disclosure_digest(salt: bytes, key: str | None, json: str) -> str:
    """What a row commits to a value by that was cut out of another one.

    Args:
        salt: 16 bytes.
        key: The key it had in an object; None for an item of an array.
        json: The value.
    """
    name = "" if key is None else f"{_encode(key).decode()},"
    return _base64url(sha256(_base64url(f'["{_base64url(salt)}",{name}{json}]'.encode()).encode()).digest())


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def commitment(salt: bytes, prefix: bytes, json: bytes) -> str:
    """The salted commitment to a value, 64 hex characters; `prefix` is `value_prefix` of its field."""
    return sha256(_VALUE_TAG + salt + prefix + json).hexdigest()

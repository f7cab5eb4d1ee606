"""The values of rows against what the rows commit to, for `verify`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec

from footprint_observe.store.codec import kept_of
from footprint_observe.store.disclosures import put_back, steps_of
from footprint_observe.store.hashing import commitment, disclosure_digest, value_prefix

_Value: TypeAlias = tuple[int, str, bytes, bytes]

# As bytes, for the commitment is over the bytes and what is no UTF-8 any more must be found, too.
_VALUE = "SELECT v.fact_id, v.field, CAST(v.json AS BLOB), v.salt FROM"
_OF_FILE = f"{_VALUE} vals AS v WHERE v.fact_id > :after AND v.fact_id <= :upto ORDER BY v.fact_id, v.field"
_OF_RUN = (
    f"{_VALUE} facts AS f CROSS JOIN vals AS v ON v.fact_id = f.id WHERE f.run_id = :run "
    "AND f.position > :after AND f.position <= :upto ORDER BY f.position, v.field"
)

_decode = msgspec.json.Decoder().decode
_decode_commitments = msgspec.json.Decoder(dict[str, str]).decode


class Revalue:
    """Checks the values of rows that come in order.

    Attributes:
        checked: How many values were checked.
        erased: How many were committed to and not there.
        first_erased: The first row with such a value, or None.
    """

    def __init__(self, connection: sqlite3.Connection, run_id: str | None) -> None:
        self.checked = 0
        self.erased = 0
        self.first_erased: int | None = None
        self._connection = connection
        self._run = run_id
        self._query = _OF_FILE if run_id is None else _OF_RUN
        self._values: Iterator[_Value] = iter(())
        self._next: _Value | None = None
        self._prefixes: dict[str, bytes] = {}

    def read(self, after: int, upto: int) -> None:
        """Read on behind a place, up to another one."""
        places = {"run": self._run, "after": after, "upto": upto}
        self._values = self._connection.execute(self._query, places)
        self._next = next(self._values, None)

    def check(self, row_id: int, commitments: str | None) -> str | None:
        """Why the values of a row are not those it was written with; None when they are."""
        there = self._next is not None and self._next[0] == row_id
        if commitments is None:
            return f"It commits to no value {self._name()}, yet the file has one." if there else None
        try:
            committed = _decode_commitments(commitments)
        except ValueError:
            return "What it commits to cannot be read."
        found: dict[str, bytes] = {}
        while self._next is not None and self._next[0] == row_id:
            _, field, json, salt = self._next
            digest = committed.get(field)
            if digest is None:
                return f"It commits to no value {self._name()}, yet the file has one."
            if not self._is_committed(digest, field, json, salt):
                return f"The value {self._name()} is not the one it commits to."
            found[field] = json
            self._next = next(self._values, None)
        self.checked += len(found)
        if len(found) < len(committed) and self.first_erased is None:
            self.first_erased = row_id
        self.erased += len(committed) - len(found)
        return None if "." not in commitments else _placed(commitments, found)

    def _name(self) -> str:
        return repr("" if self._next is None else self._next[1])

    def _is_committed(self, digest: str, field: str, json: bytes, salt: bytes) -> bool:
        if "." in field:
            try:
                return _is_disclosed(digest, steps_of(field)[-1], json.decode(), salt)
            except ValueError:
                # Neither a path nor a value is written like that.
                return False
        prefix = self._prefixes.get(field)
        if prefix is None:
            prefix = self._prefixes[field] = value_prefix(field)
        return digest == commitment(salt, prefix, json)


def _is_disclosed(digest: str, key: str, json: str, salt: bytes) -> bool:
    if digest == disclosure_digest(salt, key, json):
        return True
    # The digest of a member must not be met by its key and its value together, as if they were one item.
    is_item = key.isdecimal() and not json.startswith(f'"{key}",')
    return is_item and digest == disclosure_digest(salt, None, json)


def _placed(commitments: str, found: Mapping[str, bytes]) -> str | None:
    texts = {field: json.decode() for field, json in found.items()}
    for field, kept in kept_of(commitments, texts).items():
        if field in texts:
            try:
                put_back(field, _decode(texts[field]), kept)
            except ValueError:
                return f"A value that was cut out of {field!r} has no place in it."
    return None

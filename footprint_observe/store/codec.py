"""A fact as a row and its values, and back.

Where each field of a fact goes is worked out once a class: to a column of its name, to `vals`, or to the
JSON of `extra`. Every fact comes back equal to what was kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter, itemgetter
from typing import Any, get_args

import msgspec

from footprint_core import plain
from footprint_core.errors import LedgerReadError
from footprint_core.facts import Decided, Fact, ModelReplied
from footprint_core.ledger import ERASED, Entry, Marks
from footprint_core.messages import ToolCall
from footprint_core.moments import LOOP_MOMENTS, LoopMoment
from footprint_observe.store.disclosures import Kept, field_of, put_back
from footprint_observe.store.hashing import Columns, value_prefix
from footprint_observe.store.schema import HASHED_COLUMNS

# The columns that come with the entry; the others come from the fact's own fields.
_SHARED = (
    "run_id", "segment", "trace_id", "span_id",
    "position", "recorded_us", "extra", "redacted", "commitments", "kind",
)  # fmt: skip
_RENAMED = {"call_id": "tool_call_id"}
# The older spelling of a decision's moment, which rows still carry.
_SPELLED = ("at", "phase")
_SPELLINGS: dict[LoopMoment, tuple[str, str | None]] = {
    moment: ("message", moment) if moment in {"input", "output"} else ("tool", None)
    for moment in LOOP_MOMENTS
}
_OWN = frozenset(HASHED_COLUMNS) - frozenset(_SHARED) - frozenset(_SPELLED)
_FLAGS = frozenset({"changed", "shadow", "after_approval"})

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_commitments = msgspec.json.Decoder(dict[str, str]).decode
_decode_marks = msgspec.json.Decoder(tuple[tuple[str, str], ...]).decode


class ValueField(msgspec.Struct, frozen=True, kw_only=True):
    """A value field of a fact class: its name, and the name as it goes into a commitment."""

    name: str
    prefix: bytes
    default: object


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Where the fields of one fact class go.

    Attributes:
        cls: The class.
        kind: Its name in the file.
        values: Its value fields, sorted by name.
        own: Its fields that are columns, each with the column.
        read: Reads the fields of `own` from a fact.
        extras: Its other fields, each with its default (`msgspec.NODEFAULT` without one).
        arrange: Puts `(None, *shared, *own, *spelled)` into the order of `HASHED_COLUMNS`.
        flags: Places in `own` that hold booleans.
    """

    cls: type[Fact]
    kind: str
    values: tuple[ValueField, ...]
    own: tuple[tuple[str, str], ...]
    read: Callable[[Fact], tuple[Any, ...]]
    extras: tuple[tuple[str, object], ...]
    arrange: Callable[[tuple[Any, ...]], Columns]
    flags: tuple[int, ...]


def _plan(cls: type[Fact]) -> Plan:
    names = {field.name: field.default for field in msgspec.structs.fields(cls)}
    own = tuple((name, _RENAMED.get(name, name)) for name in names if _RENAMED.get(name, name) in _OWN)
    given = (*_SHARED, *(column for _, column in own), *(_SPELLED if cls is Decided else ()))
    places = {column: 1 + i for i, column in enumerate(given)}
    return Plan(
        cls=cls,
        kind=str(cls.__struct_config__.tag),
        values=tuple(
            ValueField(name=name, prefix=value_prefix(name), default=names[name])
            for name in sorted(cls.values)
        ),
        own=own,
        read=_reader(tuple(name for name, _ in own)),
        extras=tuple(
            (name, default)
            for name, default in names.items()
            if name not in cls.values and _RENAMED.get(name, name) not in _OWN
        ),
        arrange=itemgetter(*(places.get(column, 0) for column in HASHED_COLUMNS)),
        flags=tuple(i for i, (_, column) in enumerate(own) if column in _FLAGS),
    )


def _reader(names: tuple[str, ...]) -> Callable[[Fact], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    # attrgetter of one name gives the value itself and not a tuple of one.
    return lambda fact: tuple(getattr(fact, name) for name in names)


PLANS: dict[type[Fact], Plan] = {cls: _plan(cls) for cls in get_args(Fact)}
"""The plan of every fact class."""

_BY_KIND = {plan.kind: plan for plan in PLANS.values()}


def values_of(plan: Plan, fact: Fact) -> list[tuple[ValueField, bytes]]:
    """The values a fact has, each as compact JSON in its own key order.

    Raises:
        ValueError: A text holds a lone surrogate, which no file can hold.
    """
    found: list[tuple[ValueField, bytes]] = []
    for field in plan.values:
        value = getattr(fact, field.name)
        if value is not msgspec.UNSET and value != field.default:
            found.append((field, _encode(value)))
    return found


def extra_of(plan: Plan, fact: Fact) -> str | None:
    """The fields that are neither columns nor values, as JSON; those at their default are left out."""
    found = {
        name: value
        for name, default in plan.extras
        if (value := getattr(fact, name)) is not default and value != default
    }
    return _encode(found).decode() if found else None


def columns_of(
    plan: Plan,
    fact: Fact,
    place: tuple[str, int, str | None, str | None],
    *,
    position: int,
    recorded_us: int,
    redacted: str | None,
    commitments: str | None,
) -> Columns:
    """A fact as the columns of its row; `place` is run, segment, trace and span."""
    own = plan.read(fact)
    if plan.flags:
        # The hashed document must say what the file says, and SQLite stores 1 for True.
        mixed = list(own)
        for at in plan.flags:
            mixed[at] = int(mixed[at])
        own = tuple(mixed)
    # Exactly: isinstance asks the metaclass of a struct, which costs several times as much, at every row.
    if type(fact) is Decided:
        own += _SPELLINGS[fact.moment]
    shared = (position, recorded_us, extra_of(plan, fact), redacted, commitments, plan.kind)
    return plan.arrange((None, *place, *shared, *own))


def entry_of(row: Mapping[str, Any], vals: Mapping[str, str]) -> Entry:
    """The entry a row was made from, marked with what was taken out of it, before it was kept or since.

    Args:
        row: The row's columns by name.
        vals: The JSON of its values by field or path; one the row commits to and that is absent is erased.

    Raises:
        LedgerReadError: The row is none this release knows, or was damaged.
    """
    plan = _BY_KIND.get(row["kind"])
    if plan is None:
        raise LedgerReadError(
            f"The row {row['id']} is of a kind this release does not know; read the file with the release "
            "that wrote it."
        )
    try:
        marks = (*_marks_of(row["redacted"]), *_erased(row["commitments"], vals))
        fact = _fact_of(plan, row, vals)
        return Entry(position=row["position"], time=row["recorded_us"], fact=fact, marks=marks)
    except (ValueError, TypeError, RecursionError):
        pass
    # Raised out here: what was caught may quote a value.
    raise unreadable(row["id"])


def unreadable(row_id: int) -> LedgerReadError:
    """A row was damaged."""
    return LedgerReadError(
        f"The row {row_id} cannot be read as it stands in the file; look at it with `footprint verify`."
    )


def _fact_of(plan: Plan, row: Mapping[str, Any], vals: Mapping[str, str]) -> Fact:
    fields: dict[str, Any] = {"kind": plan.kind}
    for name, column in plan.own:
        value = row[column]
        if value is not None:
            fields[name] = bool(value) if column in _FLAGS else value
    if row["extra"] is not None:
        fields.update(_decode(row["extra"]))
    kept = kept_of(row["commitments"], vals)
    for field in plan.values:
        name = field.name
        if name in vals:
            value = _decode(vals[name])
            if name in kept:
                value = put_back(name, value, kept[name])
            fields[name] = _value(plan, name, value)
    return msgspec.convert(fields, plan.cls)


def kept_of(commitments: str | None, vals: Mapping[str, str]) -> Mapping[str, Mapping[str, Kept]]:
    """What a row commits to under a path, by the field it was cut out of."""
    # No field has a dot in its name and no commitment has one, so most rows are told by one look.
    if commitments is None or "." not in commitments:
        return {}
    found: dict[str, dict[str, Kept]] = {}
    for path, digest in _decode_commitments(commitments).items():
        if "." in path:
            found.setdefault(field_of(path), {})[path] = Kept(digest=digest, json=vals.get(path))
    return found


def _erased(commitments: str | None, vals: Mapping[str, str]) -> Marks:
    if commitments is None:
        return ()
    return tuple((field, ERASED) for field in _decode_commitments(commitments) if field not in vals)


def _marks_of(redacted: str | None) -> Marks:
    return () if redacted is None else _decode_marks(redacted)


def marks_text(marks: Marks) -> str | None:
    """Marks as the `redacted` column holds them."""
    return _encode(marks).decode() if marks else None


def _value(plan: Plan, name: str, value: plain.Json) -> plain.Json:
    if plan.cls is ModelReplied and name == "calls" and type(value) is list:
        # The field's type admits any JSON, for a redactor may replace it, so `convert` leaves it as it is.
        return msgspec.convert(value, tuple[ToolCall, ...])
    return value

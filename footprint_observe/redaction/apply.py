"""The walk over a fact's values: decoded data, never serialized text; only what changes is copied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import msgspec

from footprint_core.facts import Fact
from footprint_core.ledger import FAILED, REDACTED, Marks, masked_fields
from footprint_core.messages import TOOL_NAME, ToolCall
from footprint_core.plain import Json
from footprint_observe.redaction import nested
from footprint_observe.redaction.assignments import could_assign
from footprint_observe.redaction.compiled import NAMED, PLACED, Compiled, Hits, only_keys
from footprint_observe.redaction.ranked import NEVER, Ranked, deeper, matched, within
from footprint_observe.redaction.rules import KEYED, Strategy
from footprint_observe.redaction.spans import Span, apart, spans
from footprint_observe.redaction.strategies import looks_replaced, place_of, replaced

INVALID = "(invalid)"
"""What stands for a name that no tool can have; events say it so, too."""

_MAX_DEPTH = 150
_PASSES = 4
_KEY_OF_PAIR = ("name", "key", "Name", "Key")
_VALUE_OF_PAIR = frozenset({"value", "Value"})
_DROPPED = object()
_PLAIN = frozenset({bool, type(None)})


def redacted(fact: Fact, policy: Compiled) -> tuple[Fact, Marks]:
    """The fact without what the policy takes out, and the marks; the fact itself when nothing matched."""
    walk: _Walk | None = None
    changed: dict[str, Json] = {}
    for name in masked_fields(fact):
        value = getattr(fact, name)
        if not _is_there(value):
            continue
        walk = walk or _Walk(policy, fact)
        try:
            kept = walk.field(name, value)
        except Exception:  # noqa: BLE001 - what could not be looked through is not kept
            # The calls of a reply stay calls, so that the row can still be read back.
            kept = () if name == "calls" else REDACTED
            walk.marks[name, FAILED] = None
        if kept is not value:
            changed[name] = kept
    marks = () if walk is None or not changed else tuple(walk.marks)
    tool: str | None = getattr(fact, "tool_name", None)
    if tool is not None and (kept_name := _tool_name(tool, policy)) is not tool:
        changed["tool_name"] = kept_name
        marks += (("tool_name", "mask"),)
    return (msgspec.structs.replace(fact, **changed), marks) if changed else (fact, ())


def _tool_name(name: str, policy: Compiled) -> str:
    """A tool's name as it may be kept: a model can make one up, and say anything in it."""
    kept = policy.tool_names.get(name)
    if kept is None:
        found = spans(name, policy.look_at(name), policy, NEVER)
        if any(policy.strategies[span.rank] != "keep" for span in found):
            kept = REDACTED
        else:
            kept = name if TOOL_NAME.fullmatch(name) else INVALID
        policy.remember_tool_name(name, kept)
    return name if kept == name else kept


def removed(fact: Fact, fields: Iterable[str], policy: Compiled) -> tuple[tuple[str, Json], ...]:
    """Call and value of everything that rules about places and names take out of some fields of a fact."""
    walk = _Walk(policy, fact)
    for name in fields:
        value = getattr(fact, name)
        if _is_there(value):
            walk.field(name, value)
    return tuple(walk.removed)


def _is_there(value: Json) -> bool:
    return value is not msgspec.UNSET and value is not None and value != ()


class _Walk:
    """One walk over the values of one fact, and the marks it leaves by path."""

    __slots__ = ("_call_id", "_filed", "_hits", "_kind", "_made", "_policy", "marks", "removed")

    def __init__(self, policy: Compiled, fact: Fact) -> None:
        self._policy = policy
        self._kind = str(fact.__struct_config__.tag)
        self._call_id: str = getattr(fact, "call_id", None) or ""
        self._hits: Hits | None = None
        # What another ledger took out of a row that was filed there.
        self._filed: Marks = getattr(fact, "imported", None) or ()
        self._made: set[str] = set()
        self.marks: dict[tuple[str, str], None] = {}
        self.removed: list[tuple[str, Json]] = []

    def field(self, name: str, value: Json) -> Json:
        """One value of a fact as it may be kept; the same object when nothing in it matched."""
        policy = self._policy
        fields = policy.fields
        left = deeper(fields, name) if fields else ()
        rank = matched(left)
        if rank != NEVER and policy.strategies[rank] != "keep":
            return self._calls(value, rank) if name == "calls" else self._taken(value, name, rank)
        self._hits = hits = policy.look(value)
        # What a path says of the args that run is meant of the args the model asked for, too.
        of_args = deeper(fields, "args") if fields and name == "calls" else ()
        unseen = hits is not None and policy.seen_by_key and PLACED not in hits
        if unseen and matched(of_args) == NEVER:
            left = of_args = ()
        if not left and not of_args and hits is not None and not hits:
            return value
        return self._value(value, name, 0, left, rank)

    def _value(self, value: Json, path: str, depth: int, left: Ranked, limit: int) -> Json:
        """The value as it may be kept; the same object when nothing in it matched.

        Args:
            value: The value.
            path: Where it stands.
            depth: How deep that is.
            left: What is left of the paths that could match in it.
            limit: The rank of the rule that keeps it, from which on none applies.
        """
        kind = cast("type[object]", type(value))
        if kind is str:
            short = len(value) < self._policy.shortest and not left
            return value if short else self._text(value, path, depth, left, limit)
        if kind is dict:
            return self._dict(cast("dict[str, Json]", value), path, depth, left, limit)
        if kind is list or kind is tuple:
            return self._sequence(cast("list[Json] | tuple[Json, ...]", value), path, depth, left, limit)
        if kind is int or kind is float:
            return self._number(value, path, limit)
        if kind is ToolCall:
            return self._call(cast("ToolCall", value), path, depth, left, limit)
        return value

    def _taken(self, value: Json, path: str, rank: int, *, named: bool = True) -> str:
        """What takes the place of a value."""
        strategy = self._policy.strategies[rank]
        if strategy == "keep":
            raise TypeError("What is kept is not taken.")
        self.marks[path, strategy] = None
        if strategy in KEYED and isinstance(value, str) and self._is_ours(value, path, strategy):
            return value
        if named:
            self.removed.append((self._call_id, value))
        made = replaced(value, strategy, place_of(self._kind, path), self._policy.keys)
        if strategy in KEYED:
            self._made.add(made)
        return made

    def _is_ours(self, text: str, path: str, strategy: Strategy) -> bool:
        """Whether a text was put there by this walk, or by the ledger that filed the row first.

        Its looks prove nothing, for a model can have copied it from another row.
        """
        return text in self._made or ((path, strategy) in self._filed and looks_replaced(text))

    def _masked(self, path: str, value: Json) -> str:
        """A value that cannot be looked through."""
        self.marks[path, "mask"] = None
        self.removed.append((self._call_id, value))
        return REDACTED

    def _dict(self, value: dict[str, Json], path: str, depth: int, left: Ranked, limit: int) -> Json:
        if depth > _MAX_DEPTH:
            return self._masked(path, value)
        policy = self._policy
        plain_keys = self._hits is not None and only_keys(self._hits)
        paired = _key_of_pair(value)
        out: dict[str, Json] = {}
        changed = False
        for key, item in value.items():
            name = key if plain_keys or len(key) < policy.shortest else self._spanned(key, path, limit)
            if name is not key:
                # Two keys that were masked stay two.
                while name in out or name in value:
                    name += "'"
                changed = True
            below = deeper(left, key) if left else left
            # Behind a token that was glued to it, a key shows its name.
            rank = NEVER if item is None else min(policy.rank_of(key), policy.rank_of(name))
            said = key
            if paired is not None and item is not None and key in _VALUE_OF_PAIR:
                rank, said = min(rank, policy.rank_of(paired)), paired
            if rank != NEVER and policy.spares(rank, said, item):
                rank = NEVER
            if below:
                rank = min(rank, matched(below))
            elif rank == NEVER and type(item) in _PLAIN:
                out[name] = item
                continue
            kept = self._at(item, f"{path}.{name}", depth + 1, below, limit, rank)
            changed = changed or kept is not item
            if kept is not _DROPPED:
                out[name] = kept
        return out if changed else value

    def _at(self, value: Json, path: str, depth: int, left: Ranked, limit: int, rank: int) -> Json:
        """A value about which the rule of a rank decides, if it applies; `_DROPPED` for one that goes."""
        if rank >= limit:
            return self._value(value, path, depth, left, limit)
        strategy = self._policy.strategies[rank]
        if strategy == "keep":
            return self._value(value, path, depth, left, rank)
        taken = self._taken(value, path, rank)
        return _DROPPED if strategy == "drop" else taken

    def _sequence(
        self, value: list[Json] | tuple[Json, ...], path: str, depth: int, left: Ranked, limit: int
    ) -> Json:
        if depth > _MAX_DEPTH:
            return self._masked(path, value)
        kept = [
            self._item(item, f"{path}.{at}", depth + 1, within(left, at), limit)
            for at, item in enumerate(value)
        ]
        if all(new is old for new, old in zip(kept, value, strict=True)):
            return value
        return kept if isinstance(value, list) else tuple(kept)

    def _item(self, item: Json, path: str, depth: int, left: Ranked, limit: int) -> Json:
        kept = self._at(item, path, depth, left, limit, matched(left))
        # The others keep their places.
        return REDACTED if kept is _DROPPED else kept

    def _number(self, value: float, path: str, limit: int) -> Json:
        """A number that is all of what a detector finds, a card number for example."""
        hits = self._hits
        if hits is not None and max(hits, default=NAMED) < 0:
            return value
        text = nested.written_json(value)
        for rank, detector in self._policy.detectors:
            if rank < limit and (hits is None or rank in hits) and (0, len(text)) in detector.found(text):
                keeps = self._policy.strategies[rank] == "keep"
                return value if keeps else self._taken(value, path, rank, named=False)
        return value

    def _calls(self, value: Json, rank: int) -> Json:
        """All calls of a reply; they stay calls, so that the row can still be read back."""
        for call in cast("tuple[ToolCall, ...]", value):
            self.removed.append((call.id, call.args_json))
        self.marks["calls", "drop" if self._policy.strategies[rank] == "drop" else "mask"] = None
        return ()

    def _call(self, call: ToolCall, path: str, depth: int, left: Ranked, limit: int) -> ToolCall:
        # The id stays: it is in the ledger's own columns too, and what joins a call to its rows.
        self._call_id = call.id
        name = self._value(call.name, f"{path}.name", depth, (), limit)
        repeats = self._value(call.repeats, f"{path}.repeats", depth, (), limit)
        fields = self._policy.fields
        below = tuple(dict.fromkeys((*deeper(left, "args"), *deeper(fields, "args")))) if fields else ()
        args = self._args(call.args_json, f"{path}.args", depth, below, limit)
        if name is call.name and repeats is call.repeats and args is call.args_json:
            return call
        return msgspec.structs.replace(call, name=name, repeats=repeats, args_json=args)

    def _args(self, text: str, path: str, depth: int, left: Ranked, limit: int) -> str:
        rank = matched(left)
        if rank < limit and self._policy.strategies[rank] != "keep":
            value = nested.parsed_json(text) if nested.is_clear_json(text) else text
            return nested.written_json(self._taken(value, path, rank))
        hits = self._policy.look_at(text) if self._hits is None else self._hits
        if not left and not hits:
            return text
        value = nested.parsed_json(text)
        if value is nested.NO_JSON or value is nested.TANGLED:
            # Arguments a model broke off: nobody can say where the value of a key ends.
            if not left and not self._policy.look_at(text):
                return text
            return nested.written_json(self._masked(path, text))
        kept = self._value(value, path, depth + 1, left, min(rank, limit))
        return text if kept is value else nested.written_json(kept)

    def _text(self, text: str, path: str, depth: int, left: Ranked, limit: int) -> str:
        hits = self._policy.look_at(text) if self._hits is None else self._hits
        if not left and (not hits or (only_keys(hits) and not could_assign(text))):
            return text
        if depth > _MAX_DEPTH:
            return self._masked(path, text)
        if nested.opens_json(text):
            value = nested.parsed_json(text)
            if value is nested.TANGLED:
                return self._masked(path, text)
            if value is not nested.NO_JSON:
                kept = self._value(value, path, depth + 1, left, limit)
                return text if kept is value else nested.written_json(kept)
        found = spans(text, hits, self._policy, limit)
        for start, stop, value in nested.fragments(text):
            if value is nested.TANGLED:
                return self._masked(path, text)
            kept = self._value(value, path, depth + 1, left, limit)
            found.append(_fragment(text, start, stop, kept if kept is not value else None))
        changed = self._without(text, found, path)
        return text if changed is text else self._again(changed, path, limit)

    def _again(self, text: str, path: str, limit: int) -> str:
        """A text that was changed, without what can be found in it only now.

        A word begins where one was taken out, and a number ends there.
        """
        for _ in range(_PASSES):
            found = spans(text, self._policy.look_at(text), self._policy, limit)
            for start, stop, value in nested.fragments(text):
                if value is nested.TANGLED:
                    return self._masked(path, text)
                found.append(_fragment(text, start, stop, None))
            kept = self._without(text, found, path)
            if kept is text:
                break
            text = kept
        return text

    def _spanned(self, key: str, path: str, limit: int) -> str:
        hits = self._policy.look_at(key) if self._hits is None else self._hits
        if not hits:
            return key
        kept = self._without(key, spans(key, hits, self._policy, limit), path)
        return key if kept is key else self._again(kept, path, limit)

    def _without(self, text: str, found: list[Span], path: str) -> str:
        """The text with what takes the place of the spans."""
        if not found:
            return text
        parts: list[str] = []
        done = 0
        for span in apart(found):
            here = text[span.start : span.stop]
            part = self._part(here, span, path)
            # A token inside a header, each found by a rule of its own, is one mask.
            merged = part == REDACTED and span.start == done and parts[-1:] == [REDACTED]
            parts += () if merged else (text[done : span.start], part) if done < span.start else (part,)
            done = span.stop
        parts.append(text[done:])
        kept = "".join(parts)
        return text if kept == text else kept

    def _part(self, here: str, span: Span, path: str) -> str:
        if span.instead is not None:
            return span.instead
        strategy = self._policy.strategies[span.rank]
        if strategy == "keep":
            return here
        taken = self._taken(here, path, span.rank, named=span.named)
        return "" if strategy == "drop" else taken


def _key_of_pair(value: dict[str, Json]) -> str | None:
    """The key that an object says its value stands under: `{"name": "password", "value": "x"}`."""
    if _VALUE_OF_PAIR.isdisjoint(value):
        return None
    said = (value.get(key) for key in _KEY_OF_PAIR)
    return next((key for key in said if isinstance(key, str)), None)


def _fragment(text: str, start: int, stop: int, changed: Json | None) -> Span:
    """The JSON inside a text that is more than JSON, with what takes its place; None where it stays."""
    instead = text[start:stop] if changed is None else nested.written_json(changed)
    return Span(start=start, stop=stop, rank=NEVER, instead=instead)

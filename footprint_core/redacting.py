"""A redactor at work for one ledger: it redacts batches, and takes echoes out of what was said of a call.

An echo is a text of six characters and more, a value, a key or a whole number, that a rule about a place or
a key took out of a call's args or result, and that stands again in what was said about that call: the why
and detail of its rows, a permission's reason, the evidence of a check-in, what the model reads of it.

What was taken out is remembered while the calls of a reply are open, since what is said about them comes in
other batches. After a resume in another process it is found anew in the calls and results that come with a
batch.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Protocol, TypeAlias, cast, get_args, runtime_checkable

import msgspec

from footprint_core.echoes import Taken, echoed, texts_of, without
from footprint_core.errors import BuilderError
from footprint_core.facts import (
    CallAnswered,
    CheckInAnswered,
    CheckInAsked,
    Decided,
    Fact,
    ModelReplied,
    PermissionChecked,
    SegmentEnded,
    ToolFinished,
    ToolIntended,
)
from footprint_core.ledger import Batch, Entry, Marks, Redactor, redacted
from footprint_core.plain import Json

_MOST_OPEN = 16_384
_MOST_ENDED = 256

# What is said about a call, by the kind of the fact that says it.
_SAID: dict[type[Fact], tuple[str, ...]] = {
    Decided: ("why", "detail"),
    PermissionChecked: ("rationale", "reason"),
    CheckInAsked: ("evidence",),
    CheckInAnswered: ("note",),
    CallAnswered: ("text",),
}
# What holds no value and no name that a model could have made up.
_SILENT: frozenset[type[Fact]] = frozenset(
    kind for kind in get_args(Fact) if not kind.values and "tool_name" not in kind.__struct_fields__
)
_HOLDING = frozenset({ModelReplied, ToolIntended, ToolFinished, Decided})
_ANY_CALL = ""

_OfCall: TypeAlias = Decided | PermissionChecked | CheckInAsked | CheckInAnswered | CallAnswered


@runtime_checkable
class EchoRedactor(Redactor, Protocol):
    """A redactor that can say what it took out, so that echoes of it go, too. `redact` alone is enough."""

    def removed(self, fact: Fact) -> Iterable[tuple[str, Json]]:
        """Call id and value of everything that rules about places and keys take out of args and results."""
        ...


class _OpenCalls(msgspec.Struct, kw_only=True):
    """What was taken out of the calls of one run's last reply, by call id."""

    iteration: int
    taken: dict[str, Taken]
    ended: bool = False


_FORGOTTEN = _OpenCalls(iteration=0, taken={}, ended=True)


class Redacting:
    """A redactor, and what it took out of calls that are still open.

    Args:
        redactor: The redactor.

    Attributes:
        redactor: The same.

    Raises:
        BuilderError: It is none.
    """

    __slots__ = ("_echoing", "_ended", "_open", "redactor")

    def __init__(self, redactor: Redactor) -> None:
        if isinstance(redactor, type) or not callable(getattr(redactor, "redact", None)):
            # Each of its calls would fail, and what a failing redactor is asked about is masked whole.
            raise BuilderError(
                f"redact= takes a policy, not {_kind(redactor)}; give Redaction.standard() or another one."
            )
        self.redactor = redactor
        self._echoing = redactor if isinstance(redactor, EchoRedactor) else None
        self._open: OrderedDict[str, _OpenCalls] = OrderedDict()
        # Full from the first, so that an end costs the same whether it is the first or the thousandth.
        self._ended: deque[str] = deque([""] * _MOST_ENDED, maxlen=_MOST_ENDED)

    def batch(self, batch: Batch) -> tuple[tuple[Entry, ...], dict[int, Marks]]:
        """The entries as they may be kept, and what was done to each, by position."""
        entries: list[Entry] = []
        marks: dict[int, Marks] = {}
        spoken: list[int] = []
        for at, entry in enumerate(batch.entries):
            fact = entry.fact
            kept, done = (fact, ()) if type(fact) in _SILENT else redacted(fact, self.redactor)
            if done:
                marks[entry.position] = done
            whole = kept is fact and not entry.marks
            entries.append(entry if whole else Entry(position=entry.position, time=entry.time, fact=kept))
            if self._echoing is None:
                continue
            if type(fact) in _HOLDING and (done or type(fact) is ModelReplied):
                self._remember(self._echoing, batch, fact, took=bool(done))
            if type(fact) in _SAID and _speaks(fact):
                spoken.append(at)
        for at in spoken:
            # Behind all of them, for what a rule says of a call comes before the args that run.
            self._without_echoes(batch, entries, at, marks)
        if type(batch.entries[-1].fact) is SegmentEnded:
            self._end(batch.run_id)
        return tuple(entries), marks

    def _remember(self, echoing: EchoRedactor, batch: Batch, fact: Fact, *, took: bool) -> None:
        """Remember what was taken out of a fact; a reply opens calls of its own."""
        if isinstance(fact, ModelReplied):
            calls = self._begin(batch.run_id, fact.iteration)
        else:
            held = cast("ToolIntended | ToolFinished | Decided", fact)
            if not held.call_id:
                return
            opened = self._open.get(batch.run_id)
            is_open = opened is not None and opened.iteration == held.iteration
            # Anew with all that comes along: what is said of the other calls has not come yet.
            calls = opened if opened is not None and is_open else self._found_anew(batch, held.iteration)
        if took:
            _collect(echoing, fact, calls.taken)

    def _begin(self, run_id: str, iteration: int) -> _OpenCalls:
        calls = self._open[run_id] = _OpenCalls(iteration=iteration, taken={})
        while len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        return calls

    def _end(self, run_id: str) -> None:
        """Forget a run in a while: the append of this very batch may be tried again."""
        calls = self._open.get(run_id)
        if calls is None or calls.ended:
            return
        calls.ended = True
        oldest = self._ended[0]
        if self._open.get(oldest, _FORGOTTEN).ended:
            self._open.pop(oldest, None)
        self._ended.append(run_id)

    def _without_echoes(self, batch: Batch, entries: list[Entry], at: int, marks: dict[int, Marks]) -> None:
        entry = entries[at]
        fact = cast("_OfCall", entry.fact)
        taken = self._taken(batch, fact)
        if taken == ():
            return
        found: list[str] = []
        changed: dict[str, Json] = {}
        for name in _SAID[type(fact)]:
            value = getattr(fact, name)
            kept = without(value, taken, name, found) if value is not msgspec.UNSET else value
            if kept is not value:
                changed[name] = kept
        if changed:
            kept_fact = msgspec.structs.replace(fact, **changed)
            entries[at] = Entry(position=entry.position, time=entry.time, fact=kept_fact)
            marks[entry.position] = (*marks.get(entry.position, ()), *echoed(found))

    def _taken(self, batch: Batch, fact: _OfCall) -> Taken:
        """What was taken out of the call a fact speaks of."""
        calls = self._open.get(batch.run_id)
        if calls is None or calls.iteration < fact.iteration:
            calls = self._found_anew(batch, fact.iteration)
        if calls.iteration != fact.iteration or not calls.taken:
            return ()
        if _ANY_CALL in calls.taken:
            return None
        return calls.taken.get(fact.call_id or "", ())

    def _found_anew(self, batch: Batch, iteration: int) -> _OpenCalls:
        """What is taken out of the calls and results that come with a batch; another process had them."""
        calls = self._begin(batch.run_id, iteration)
        if batch.calls and self._echoing is not None:
            reply = ModelReplied(
                iteration=iteration,
                call_count=len(batch.calls),
                stop_reason="tool_use",
                duration_us=0,
                calls=batch.calls,
            )
            _collect(self._echoing, reply, calls.taken)
            for call in batch.calls if batch.results else ():
                if call.id in batch.results:
                    result = ToolFinished(
                        iteration=iteration,
                        call_id=call.id,
                        tool_name=call.name,
                        failed=False,
                        duration_us=0,
                        result=batch.results[call.id],
                    )
                    _collect(self._echoing, result, calls.taken)
        return calls


def _kind(given: object) -> str:
    return f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__


def _speaks(fact: Fact) -> bool:
    """Whether a fact says something about a call, here."""
    of_call = cast("_OfCall", fact)
    if not of_call.call_id or (type(of_call) is Decided and of_call.imported is not None):
        # A row that another ledger filed has lost its echoes there.
        return False
    return any(getattr(fact, name) is not msgspec.UNSET for name in _SAID[type(fact)])


def _collect(echoing: EchoRedactor, fact: Fact, taken: dict[str, Taken]) -> None:
    try:
        for call_id, value in echoing.removed(fact):
            taken[call_id] = texts_of(value, taken.get(call_id, ()))
    except Exception:  # noqa: BLE001 - what cannot be said to be gone is not kept anywhere
        taken[_ANY_CALL] = None

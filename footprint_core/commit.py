"""The one writer: `note` folds a fact, `commit` appends and then publishes, `signal` only publishes.

Nothing else in the product appends to a ledger or calls a watcher. Everything noted before something
acts is durable before it acts, because whoever acts commits first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from typing import TypeVar

from footprint_core.cancellation import Cancellation
from footprint_core.clock import Clock
from footprint_core.decisions import Decision
from footprint_core.errors import LedgerError, LedgerWriteError
from footprint_core.events import Event, Signal
from footprint_core.facts import Decided, Fact, SegmentEnded, TraceRef
from footprint_core.ledger import Batch, Entry, Ledger, PauseBody, Receipt, decision_row
from footprint_core.plain import Json
from footprint_core.projection import events_for
from footprint_core.projection.place import NONE, Kinds
from footprint_core.projection.segments import fatal, turn_ended
from footprint_core.state import RunState
from footprint_core.watch import Audience

T = TypeVar("T")


class Writer:
    """Writes one segment of a run.

    Attributes:
        run_id: The run.
        segment: Its segment, from 1.
        position: The position of the last noted fact.
        trace: The segment's span, once a watcher gave it.
        now: The segment's clock: microseconds since the Unix epoch, UTC.
        broken: Whether an append failed; then nothing is written any more.
        cancellation: Whether the task that runs the segment was asked to stop.
    """

    __slots__ = (
        "_audience",
        "_ledger",
        "_pending",
        "_results",
        "_rows",
        "_state",
        "broken",
        "cancellation",
        "now",
        "position",
        "run_id",
        "segment",
        "trace",
    )

    def __init__(
        self,
        *,
        ledger: Ledger,
        audience: Audience,
        state: RunState,
        clock: Clock,
        run_id: str,
        segment: int,
        position: int,
    ) -> None:
        self._ledger = ledger
        self._audience = audience
        self._state = state
        # A copy: the fold takes away what is answered, and a batch can wait for its append.
        self._results: Mapping[str, Json] = dict(state.results)
        self.now = clock.now
        self._pending: list[Entry] = []
        self._rows: list[Decision] = []
        self.run_id = run_id
        self.segment = segment
        self.position = position
        self.trace: TraceRef | None = None
        self.broken = False
        self.cancellation = Cancellation()

    def note(self, fact: Fact, *, at: int | None = None) -> int:
        """Fold a fact into the run's state and keep it for the next commit.

        Args:
            fact: The fact.
            at: When it became one, from `now()`; now, when it is not given.

        Returns:
            The fact's position in its run.
        """
        self._state.apply(fact)
        self.position = position = self.position + 1
        time = self.now() if at is None else at
        self._pending.append(Entry(position=position, time=time, fact=fact))
        return position

    async def commit(self, pause: Mapping[str, Json] | None = None, *, pause_id: str = "") -> None:
        """Append everything noted, in one transaction, and only then tell the watchers.

        A commit that has begun is finished: a cancellation is held until it is durable and published.

        Args:
            pause: The body of the pause that is being opened, from `pause.kept.body_of`.
            pause_id: Its id.

        Raises:
            LedgerError: The append failed; nothing may act.
        """
        if not self._pending:
            return
        batch = Batch(
            run_id=self.run_id,
            segment=self.segment,
            entries=tuple(self._pending),
            trace=self.trace,
            pause=None if pause is None else PauseBody(pause_id=pause_id, checkpoint=pause),
            calls=self._state.calls,
            results=self._results,
        )
        try:
            self._pending.clear()
            receipt = self._ledger.append_inline(batch)
        except Exception as error:  # noqa: BLE001 - a ledger of another make raises its own
            raise self._failed(error) from error.__cause__
        except BaseException:
            # A signal handler ended the program in the middle: nobody knows what of it was appended.
            self.broken = True
            raise
        if receipt is None:
            await _finish(self._append(batch))
        else:
            self._publish(receipt)

    async def _append(self, batch: Batch) -> None:
        try:
            receipt = await self._ledger.append(batch)
        except Exception as error:  # noqa: BLE001 - a ledger of another make raises its own
            raise self._failed(error) from error.__cause__
        except BaseException:
            self.broken = True
            raise
        self._publish(receipt)

    def _failed(self, error: Exception) -> LedgerError:
        self.broken = True
        if not isinstance(error, LedgerError):
            # A ledger of another make raised its own error, whose text may quote what was written.
            error = LedgerWriteError(
                f"The ledger raised {type(error).__name__} on an append, so nothing acted; look at it."
            )
        error.run_id, error.segment = self.run_id, self.segment
        return error

    def _publish(self, receipt: Receipt) -> None:
        for entry in receipt.entries:
            fact = entry.fact
            if type(fact) is Decided:
                marks = receipt.marks.get(entry.position, ())
                self._rows.append(decision_row(self.run_id, self.segment, entry, fact, marks))
        if self._audience.listening:
            self._audience.publish(self._events(receipt))

    def _events(self, receipt: Receipt) -> Iterator[Event]:
        """The events of a commit. Whoever subscribes at one may want later ones that nobody wanted before."""
        for entry in receipt.entries:
            unwanted = self._audience.unwanted
            events = self._of(entry, receipt, unwanted)
            for index, event in enumerate(events):
                yield event
                if self._audience.unwanted is not unwanted:
                    yield from _behind(events[: index + 1], self._of(entry, receipt, NONE))
                    break

    def _of(self, entry: Entry, receipt: Receipt, unwanted: Kinds) -> tuple[Event, ...]:
        marks = receipt.marks.get(entry.position, ())
        return events_for(entry, run_id=self.run_id, segment=self.segment, marks=marks, unwanted=unwanted)

    def signal(self, event: Signal) -> None:
        """Tell the watchers at once; nothing is written and nothing may depend on it."""
        self._audience.publish((event,))

    def signal_end(self, end: SegmentEnded) -> None:
        """Tell the watchers how a segment ended whose ledger takes no appends."""
        if self._audience.listening:
            at = (self.run_id, self.segment, self.position, self.now())
            self.signal(fatal(end, at, recorded=False))
            self.signal(turn_ended(end, at, recorded=False))

    def correlate(self) -> None:
        """Take the ids under which watchers file this segment; later rows carry them."""
        self.trace = self._audience.correlation(self.run_id, self.segment)

    def decisions(self) -> tuple[Decision, ...]:
        """The decision rows of this segment as they are kept."""
        return tuple(self._rows)


def _behind(told: tuple[Event, ...], every: tuple[Event, ...]) -> Iterator[Event]:
    """The rest of the events of a fact; what was told of it already lacks whole classes of them."""
    rest = iter(every)
    for one in told:
        next(other for other in rest if type(other) is type(one))
    return rest


async def _finish(work: Awaitable[T]) -> T:
    """Wait for `work` whatever happens, then deliver a cancellation that came meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except Exception:  # noqa: BLE001 - read from the task below
            break
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()

"""Recorders that break one promise each, and one that keeps all of them."""

from __future__ import annotations

import asyncio
import base64
import gc
import os
import queue
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakSet

from footprint_core.events import DecisionFiled, Event, OutputRetried
from footprint_core.providers import Scripted
from footprint_observe.recording import Handover, Opened


class Good(Opened):
    """Writes a line for each event, and keeps every promise; `gate` holds its thread up until it is set."""

    id: Any = "good"
    delay = 0.0
    patience = 2.0  # of the check that is meant to catch it

    def __init__(self, path: Path, gate: threading.Event) -> None:
        self._path = path
        self._gate = gate
        self._queue: Handover[Event] = Handover(self._ship, id="good", batch=64, bound=512, delay=self.delay)

    @property
    def dropped(self) -> Any:
        return self._queue.dropped

    @property
    def queued(self) -> int:
        return self._queue.queued

    @property
    def notices(self) -> Any:
        return (f"{self.dropped} events were lost.",) if self.dropped else ()

    def on_event(self, event: Event, /) -> None:
        self._queue.put(event)

    def flush(self, timeout: float, /) -> Any:
        return self._queue.flush(timeout)

    def close(self, timeout: float, /) -> None:
        self._queue.close(timeout)

    def _ship(self, events: list[Event]) -> bool:
        self._gate.wait(60)
        with self._path.open("a") as file:
            file.writelines(f"{self.line(event)}\n" for event in events)
        return True

    def line(self, event: Event) -> object:
        return event


class BlankId(Good):
    id = " "


class OtherId(Good):
    @property
    def id(self) -> str:
        return f"good-{time.monotonic_ns()}"


class NoFlush(Good):
    def __getattribute__(self, name: str) -> Any:
        if name == "flush":
            raise AttributeError
        return super().__getattribute__(name)


class Picky(Good):
    def on_event(self, event: Event, /) -> None:
        if isinstance(event, OutputRetried):
            raise KeyError(event.type)


class Strict(Good):
    """Knows only runs whose beginning it heard."""

    def on_event(self, event: Event, /) -> None:
        self.known: set[str] = getattr(self, "known", set())
        if event.type == "agent.run_configured":
            self.known.add(event.run_id)
        elif event.run_id not in self.known:
            raise LookupError


class InOrder(Good):
    last = 0

    def on_event(self, event: Event, /) -> None:
        if event.sequence < self.last:
            raise ValueError
        self.last = event.sequence


class Final(Good):
    closed = False

    def on_event(self, event: Event, /) -> None:
        if self.closed:
            raise RuntimeError

    def close(self, timeout: float, /) -> None:
        super().close(timeout)
        self.closed = True


class NoAnswer(Good):
    def flush(self, timeout: float, /) -> None:
        super().flush(timeout)


class Hasty(Good):
    """Says that all was shipped, and ships it later."""

    delay = 60.0

    def flush(self, timeout: float, /) -> bool:
        return True


class Forgets(Good):
    def flush(self, timeout: float, /) -> bool:
        super().flush(timeout)
        return False


class ClosesOnce(Good):
    closed = False

    def close(self, timeout: float, /) -> None:
        if self.closed:
            raise RuntimeError
        self.closed = True
        super().close(timeout)


class NeverCloses(Good):
    patience = 0.5

    def close(self, timeout: float, /) -> None:
        threading.Event().wait(60)


class Touches(Good):
    """Does something in the thread of the run; which, a subclass says."""

    def on_event(self, event: Event, /) -> None:
        self.touch(f"{event}\n".encode())

    def touch(self, line: bytes) -> None:
        raise NotImplementedError


class Writes(Touches):
    def touch(self, line: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(line)


class Sends(Touches):
    def touch(self, line: bytes) -> None:
        here, there = socket.socketpair()
        with here, there:
            here.send(line)


class Sleeps(Touches):
    def touch(self, line: bytes) -> None:
        time.sleep(0)


class Moves(Touches):
    def touch(self, line: bytes) -> None:
        self._path.replace(self._path)


class LooksForAFile(Touches):
    def touch(self, line: bytes) -> None:
        self._path.stat()


class OpensADatabase(Touches):
    def touch(self, line: bytes) -> None:
        sqlite3.connect(":memory:").close()


class AwaitsAnEvent(Touches):
    def touch(self, line: bytes) -> None:
        threading.Event().wait(0)


class AwaitsAThread(Touches):
    def __init__(self, path: Path, gate: threading.Event) -> None:
        super().__init__(path, gate)
        self._ended = threading.Thread(target=bytes)
        self._ended.start()

    def touch(self, line: bytes) -> None:
        self._ended.join()


class Prints(Touches):
    def touch(self, line: bytes) -> None:
        print(line)


class Waits(Good):
    """Ships in the thread of the run."""

    def on_event(self, event: Event, /) -> None:
        self._gate.wait(60)


class Blocks(Good):
    """Waits for room in its queue."""

    def __init__(self, path: Path, gate: threading.Event) -> None:
        super().__init__(path, gate)
        self._room: queue.Queue[Event] = queue.Queue(100)

    def on_event(self, event: Event, /) -> None:
        self._room.put(event, timeout=60)


class Hoards(Good):
    """Keeps whatever it cannot ship."""

    def __init__(self, path: Path, gate: threading.Event) -> None:
        super().__init__(path, gate)
        self._queue = Handover(self._ship, id="good", batch=64, bound=10**9, delay=0.0)


class SaysYes(Good):
    def flush(self, timeout: float, /) -> bool:
        super().flush(timeout)
        return True


class SaysNothing(Good):
    @property
    def notices(self) -> Any:
        return ()


class CountsInWords(Good):
    @property
    def dropped(self) -> Any:
        return "many"


class Patient(Good):
    """Closes when all was shipped, whenever that is."""

    def close(self, timeout: float, /) -> None:
        super().close(60)


class OneThread(Good):
    """Bears only the thread it was made in, or that of its first event."""

    thread = 0

    def on_event(self, event: Event, /) -> None:
        self.thread = self.thread or threading.get_ident()
        if threading.get_ident() != self.thread:
            raise RuntimeError


class Cancels(Good):
    def on_event(self, event: Event, /) -> None:
        if isinstance(event, DecisionFiled) and (task := asyncio.current_task()) is not None:
            task.cancel()


class Exits(Good):
    def on_event(self, event: Event, /) -> None:
        raise SystemExit


class Meddles(Good):
    """Changes what the model was sent."""

    def on_event(self, event: Event, /) -> None:
        if event.type == "agent.turn_end":
            for one in gc.get_objects():
                # Not by isinstance, which asks a proxy of another test for its class, and that may raise.
                if type(one) is Scripted:
                    del one.requests[:1]


class OwnThread(Good):
    """Ships from a thread of its own making, which a forked process does not have."""

    def __init__(self, path: Path, gate: threading.Event) -> None:
        super().__init__(path, gate)
        self._items: queue.Queue[Event] = queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def on_event(self, event: Event, /) -> None:
        self._items.put(event)

    def _work(self) -> None:
        while True:
            self._ship([self._items.get()])
            self._items.task_done()

    def flush(self, timeout: float, /) -> bool:
        deadline = time.monotonic() + timeout
        with self._items.all_tasks_done:
            return self._items.all_tasks_done.wait_for(
                lambda: not self._items.unfinished_tasks, max(0.0, deadline - time.monotonic())
            )


class Doubles(Good):
    """Ships only when it is asked, and a forked process ships what its parent holds."""

    def __init__(self, path: Path, gate: threading.Event) -> None:
        super().__init__(path, gate)
        self.held: list[Event] = []

    def on_event(self, event: Event, /) -> None:
        self.held.append(event)

    def flush(self, timeout: float, /) -> bool:
        held, self.held = self.held, []
        return self._ship(held)

    def close(self, timeout: float, /) -> None:
        self.flush(timeout)


class Loses(Doubles):
    """Forgets what it holds when the process is forked, in the parent too."""

    def __init__(self, path: Path, gate: threading.Event) -> None:
        super().__init__(path, gate)
        _forgetful.add(self)


def _forget() -> None:
    for one in _forgetful:
        one.held.clear()


_forgetful: WeakSet[Loses] = WeakSet()
os.register_at_fork(before=_forget)


class Looks(Good):
    """Looks at who called it, and ships what it sees."""

    encode: Callable[[bytes], bytes] = staticmethod(bytes)

    def on_event(self, event: Event, /) -> None:
        frame = sys._getframe(1)
        seen: list[str] = []
        while frame.f_back is not None:
            frame = frame.f_back
            if frame.f_code.co_name not in {"_tell", "_run"}:
                seen.append(repr(frame.f_locals))
        with self._path.open("ab") as file:
            file.write(self.encode(str(seen).encode()))


class LooksInBase64(Looks):
    encode = staticmethod(base64.b64encode)


class LooksInHex(Looks):
    encode = staticmethod(lambda seen: seen.hex().encode())


class ShipsNothing(Good):
    def _ship(self, events: list[Event]) -> bool:
        self._gate.wait(60)
        return True

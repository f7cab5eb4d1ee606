"""Appends a line of JSON for each event to a file: facts, as events tell them.

`msgspec.json.decode(line, type=Event)` reads a line back.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from io import SEEK_END, TextIOBase
from pathlib import Path
from typing import BinaryIO

import msgspec

from footprint_core.errors import RecorderError
from footprint_core.events import Event
from footprint_observe.recording.handover import Handover
from footprint_observe.recording.names import Names
from footprint_observe.recording.opened import Opened

if sys.platform != "win32":
    import fcntl

_BATCH = 256
_QUEUE = 8192
_DELAY_SECONDS = 0.1
_encode = msgspec.json.Encoder().encode


class Jsonl(Opened):
    """A watcher that writes every event as one line of JSON.

    Lines are appended from a thread; those that no longer fit its queue, or the disk, are lost and counted.
    In a file a line is whole or absent, also when several processes append to it and when the disk is full.
    The file is made for its owner alone. It is opened anew for each batch, so that a file that was moved
    away (logrotate) is left alone and the next line begins a new one. Nothing is synced: a power cut may take
    the last lines, for the record is the ledger. `with Jsonl(path) as lines:` keeps it open for every agent
    inside.

    Args:
        to: The path of a file, or something open for bytes (`sys.stdout.buffer`), which stays the caller's.
        id: The watcher's id.

    Raises:
        RecorderError: Nothing can be appended there.
    """

    def __init__(self, to: str | os.PathLike[str] | BinaryIO, *, id: str = "jsonl") -> None:
        self._id = id
        self._to = _checked(to)
        self._trouble = ""
        self._names = Names()
        self._handover: Handover[Event] = Handover(
            self._ship, id=id, batch=_BATCH, bound=_QUEUE, delay=_DELAY_SECONDS
        )

    @property
    def id(self) -> str:
        """The watcher's id."""
        return self._id

    @property
    def dropped(self) -> int:
        """How many events were lost."""
        return self._handover.dropped

    @property
    def queued(self) -> int:
        """How many events wait."""
        return self._handover.queued

    @property
    def errors(self) -> int:
        """How many batches could not be written."""
        return self._handover.errors

    @property
    def notices(self) -> tuple[str, ...]:
        """What whoever runs the agent should know about this recorder."""
        said = self._handover.notices
        if lost := self.dropped:
            said += (f"{lost} events could not be written{self._trouble}.",)
        return said

    def on_event(self, event: Event, /) -> None:
        """Take one event."""
        self._handover.put(self._names.shown(event))

    def flush(self, timeout: float, /) -> bool:
        """Write what is queued, within `timeout` seconds; False when something is left, or was lost."""
        return self._handover.flush(timeout)

    def close(self, timeout: float, /) -> None:
        """Write what is queued and end the thread, within `timeout` seconds."""
        self._handover.close(timeout)

    def _ship(self, events: list[Event]) -> bool:
        lines = b"".join([_line(event) for event in events])
        try:
            if isinstance(self._to, Path):
                _append(self._to, lines)
            else:
                _write(self._to, lines)
                self._to.flush()
        except OSError as error:
            self._trouble = f" ({os.strerror(error.errno)})" if error.errno else ""
            raise
        return True


def _checked(to: str | os.PathLike[str] | BinaryIO) -> Path | BinaryIO:
    """Where lines go.

    Raises:
        RecorderError: None can be appended there.
    """
    if isinstance(to, str | os.PathLike):
        return _checked_path(to)
    given: object = to
    if isinstance(given, TextIOBase) or not callable(getattr(given, "write", None)):
        raise RecorderError("Jsonl() takes the path of a file or something open for bytes; give one of them.")
    return to


def _checked_path(to: str | os.PathLike[str]) -> Path:
    try:
        # A program that changes its folder later goes on with the same file.
        path = Path(to).absolute()
        if path.exists() and not path.is_file():
            raise RecorderError(f"{path} is no file; give the path of one, or sys.stdout.buffer.")
        os.close(_opened(path))
    except (OSError, TypeError, ValueError) as error:
        raise RecorderError(
            f"Events cannot be appended to that path ({type(error).__name__}); give the path of a file in a "
            f"folder that exists and may be written to."
        ) from None
    return path


def _line(event: Event) -> bytes:
    try:
        return _encode(event) + b"\n"
    except UnicodeEncodeError:
        # A name may hold half a surrogate pair. Escaped it can be written, and the batch is not lost.
        return json.dumps(msgspec.to_builtins(event), separators=(",", ":")).encode() + b"\n"


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)


def _append(path: Path, lines: bytes) -> None:
    """Append all the lines or none."""
    with os.fdopen(_opened(path), "ab+", buffering=0) as file, _alone(file):
        end = file.seek(0, SEEK_END)
        try:
            _write(file, _behind(file, end, lines))
        except OSError:
            file.truncate(end)
            raise


@contextmanager
def _alone(file: BinaryIO) -> Generator[None]:
    # Whoever takes half a batch back must not take a line of another process with it.
    if sys.platform == "win32":
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        # Not left to closing: a process that was forked meanwhile has the file open too, and keeps it.
        fcntl.flock(file, fcntl.LOCK_UN)


def _behind(file: BinaryIO, end: int, lines: bytes) -> bytes:
    if end:
        file.seek(end - 1)
        if file.read(1) != b"\n":
            # A process died in the middle of a line; ours must not go on with it.
            return b"\n" + lines
    return lines


def _write(file: BinaryIO, lines: bytes) -> None:
    # Where only a part was taken, the next attempt says why.
    while lines:
        if not (written := file.write(lines)):
            raise BlockingIOError
        lines = lines[written:]

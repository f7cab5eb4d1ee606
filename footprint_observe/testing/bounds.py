"""Calls that must come back in time, in a thread or a forked process, and what is said when they do not."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
import warnings
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


def require(holds: object, sentence: str) -> None:
    """Fail with a sentence unless something holds; not an `assert`, so that `python -O` checks it too.

    Raises:
        AssertionError: It does not.
    """
    __tracebackhide__ = True  # pytest shows the check that failed, not this line
    if not holds:
        raise AssertionError(sentence)


class _Call(Generic[T]):
    """A call in a thread of its own."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self.given: list[T] = []
        self.raised: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.given.append(self._function())
        except BaseException as error:  # noqa: BLE001 - also what would end the process of the tests
            self.raised = error


def within(seconds: float, what: str, function: Callable[[], T]) -> T:
    """What a call gives, which must come back within some seconds and raise nothing.

    Args:
        seconds: How long it may take.
        what: What is called, as the subject of a sentence.
        function: What is called, in a thread of its own, which is left behind when it does not come back.

    Raises:
        AssertionError: It does not come back, or raises.
    """
    __tracebackhide__ = True
    call = _Call(function)
    call.thread.start()
    call.thread.join(seconds)
    if isinstance(call.raised, AssertionError):
        raise call.raised
    if call.raised is not None:
        raise AssertionError(f"{what} raised {type(call.raised).__name__}.") from call.raised
    require(call.given, f"{what} did not come back within {seconds:g} seconds.")
    return call.given[0]


def in_fork(seconds: float, function: Callable[[], None]) -> str | None:
    """What a call raises in a forked process; None when it comes back.

    Args:
        seconds: How long it may take; then the process is killed.
        function: What is called there.
    """
    read, write = os.pipe()
    with warnings.catch_warnings():
        # That a process with threads is forked is the point.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _tell_and_leave(write, function)
    os.close(write)
    try:
        return _said(read, time.monotonic() + seconds, seconds)
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


_DONE = "done"


def _tell_and_leave(write: int, function: Callable[[], None]) -> None:
    # Nothing of the tests may run here a second time, so the process ends without cleaning up.
    try:
        function()
    except BaseException as error:  # noqa: BLE001 - told to the parent, whatever it is
        os.write(write, f"{type(error).__name__}: {error}".encode())
    else:
        os.write(write, _DONE.encode())
    finally:
        os._exit(0)


def _said(read: int, deadline: float, seconds: float) -> str | None:
    ready, _, _ = select.select([read], [], [], max(0.0, deadline - time.monotonic()))
    said = os.read(read, 4096).decode() if ready else f"nothing came back within {seconds:g} seconds"
    return None if said == _DONE else said or "the process died"

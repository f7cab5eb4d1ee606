"""Plain functions in threads of the product's own."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import threading

import pytest

from footprint_core.threads import Threads
from story import run

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")


def test_a_function_runs_elsewhere_with_the_callers_context_and_an_idle_thread_is_used_again() -> None:
    threads = Threads()

    def where() -> tuple[int, str, bool]:
        return threading.get_ident(), NAME.get(), threading.current_thread().daemon

    async def twice() -> list[object]:
        NAME.set("ada")
        return [(await threads.call(where))[0] for _ in range(2)]

    first, second = run(twice())
    assert first == second
    assert isinstance(first, tuple)
    assert first[0] != threading.get_ident()
    assert first[1:] == ("ada", True)


def test_whatever_a_function_raises_is_handed_back_as_a_value() -> None:
    def stops() -> None:
        raise StopIteration

    value, error = run(Threads().call(stops))
    assert value is None
    assert isinstance(error, StopIteration)


def _printed(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout


def test_a_function_that_never_returns_does_not_hold_the_program_open() -> None:
    code = (
        "import asyncio, threading\n"
        "from footprint_core.threads import THREADS\n"
        "async def main():\n"
        "    try:\n"
        "        async with asyncio.timeout(0.05): await THREADS.call(threading.Event().wait)\n"
        "    except TimeoutError: print('gave up')\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stdout == "gave up\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_starts_threads_of_its_own() -> None:
    code = (
        "import asyncio, os\n"
        "from footprint_core.threads import THREADS\n"
        "asyncio.run(THREADS.call(lambda: 1))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    print(asyncio.run(THREADS.call(lambda: 'ran')), flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True
    )
    assert "ran" in done.stdout

"""Plain functions in threads of the product's own."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
import weakref
from typing import Any

import pytest

from footprint_core import tool
from footprint_core.providers import call, reply
from footprint_core.threads import Threads
from story import answered, describe, run

LONG = 20.0
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


class Odd(BaseException):
    """No Exception, and nobody's."""


UNUSUAL = [StopIteration, StopAsyncIteration, GeneratorExit, Odd]


@pytest.mark.parametrize("error", [*UNUSUAL, KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_whatever_a_function_raises_is_handed_back_as_a_value(error: type[BaseException]) -> None:
    def stops() -> None:
        raise error

    for settled in (run(Threads().call(stops)), run(Threads().call_within(stops, LONG))):
        assert settled is not None
        value, raised = settled
        assert value is None
        assert isinstance(raised, error)


@pytest.mark.parametrize("error", UNUSUAL)
def test_a_tool_that_raises_what_tools_seldom_raise_is_answered_like_any_that_raised(
    error: type[BaseException],
) -> None:
    @tool(name="odd")
    def plain() -> None:
        raise error(error.__name__)

    @tool(name="odd")
    async def later() -> None:
        raise error(error.__name__)

    for made in (plain, later):
        replies = [reply(calls=[call("c1", "odd", {})]), reply(text="done")] * 2
        builder, model = describe(replies, made)
        agent = builder.build()
        assert answered(run(agent.run("go"))).text == "done"
        assert answered(agent.run_sync("go")).text == "done"
        for request in (model.requests[1], model.requests[3]):
            assert error.__name__ in request.messages[-1].text


def test_a_function_whose_limit_passed_runs_on_and_is_counted_until_it_ends() -> None:
    threads = Threads()
    release = threading.Event()
    ran: list[str] = []

    def slow() -> str:
        release.wait(LONG)
        ran.append("to its end")
        return "too late"

    async def story() -> None:
        assert await threads.call_within(lambda: "soon", LONG) == ("soon", None)
        assert threads.left_behind == 0
        assert await threads.call_within(slow, 0.01) is None
        assert threads.left_behind == 1
        # The others go on, in threads of their own.
        assert await threads.call_within(lambda: "soon", LONG) == ("soon", None)
        release.set()
        while threads.left_behind:  # noqa: ASYNC110 - a count of threads sets no event
            await asyncio.sleep(0)

    run(story())
    assert ran == ["to its end"]


def test_a_function_whose_caller_was_cancelled_is_counted_until_it_ends() -> None:
    threads = Threads()
    entered, release = threading.Event(), threading.Event()

    def slow() -> None:
        entered.set()
        release.wait(LONG)

    async def story() -> None:
        waiting = asyncio.ensure_future(threads.call_within(slow, LONG))
        await threads.call(entered.wait)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert threads.left_behind == 1
        release.set()
        while threads.left_behind:  # noqa: ASYNC110 - a count of threads sets no event
            await asyncio.sleep(0)

    run(story())


def test_a_coroutine_nobody_takes_is_closed_also_when_its_event_loop_is() -> None:
    threads = Threads()
    release, gone = threading.Event(), threading.Event()

    async def nobody() -> None:
        raise AssertionError("it was awaited")

    def slow() -> Any:
        release.wait(LONG)
        made = nobody()
        weakref.finalize(made, gone.set)
        return made

    async def gives_up() -> None:
        assert await threads.call_within(slow, 0.01) is None

    run(gives_up())
    release.set()
    assert gone.wait(LONG)
    # Python warns of a coroutine nobody awaited when it is collected, and a warning is an error here.
    gc.collect()


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
        "import asyncio, os, threading\n"
        "from footprint_core.threads import THREADS\n"
        "asyncio.run(THREADS.call(lambda: 1))\n"
        "asyncio.run(THREADS.call_within(threading.Event().wait, 0.01))\n"
        "assert THREADS.left_behind == 1\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    print(asyncio.run(THREADS.call(lambda: 'ran')), THREADS.left_behind, flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stdout == "('ran', None) 0\n"

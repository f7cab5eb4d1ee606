"""A hook that has to answer within its rule's timeout, whatever it does."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from functools import partial
from typing import Literal, TypeAlias

from footprint_core.chain.links import Hook
from footprint_core.threads import MAX_LEFT_BEHIND, THREADS, Settled, drop

Unanswered: TypeAlias = Literal["late", "crowded"]
"""Why there is no answer: the time passed; or the hook was not called, for too many before it never ended."""


async def answer_within(hook: Hook, context: object, seconds: float) -> Settled | Unanswered:
    """What a hook returns or raises, awaited where it can be, unless `seconds` pass first.

    A plain hook runs in a daemon thread, also where plain hooks otherwise run in the caller's: nothing else
    can hold it to a limit. It may still return an awaitable, which gets the time that is left.
    """
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    if inspect.iscoroutinefunction(hook):
        value: object = hook(context)
    else:
        if THREADS.left_behind >= MAX_LEFT_BEHIND:
            return "crowded"
        settled = await THREADS.call_within(partial(hook, context), seconds)
        if settled is None:
            return "late"
        value, error = settled
        if error is not None:
            return settled
    if not inspect.isawaitable(value):
        return value, None
    return await _awaited(value, ends)


async def _awaited(answer: Awaitable[object], ends: float) -> Settled | Unanswered:
    loop = asyncio.get_running_loop()

    async def settled() -> Settled | Unanswered:
        # What it raises is handed back: an interrupt that leaves a task stops the caller's event loop.
        try:
            came: Settled = (await answer, None)
        except BaseException as error:  # noqa: BLE001 - judged by whoever asked
            came = (None, error)
        if loop.time() <= ends:
            return came
        # It kept the loop busy past its limit, so nobody could stop waiting in time.
        drop(came[0])
        return "late"

    task = asyncio.create_task(settled())
    _running.add(task)
    # A task that is cancelled before it began leaves a coroutine nobody awaited.
    task.add_done_callback(lambda _: drop(answer))
    task.add_done_callback(_running.discard)
    try:
        await asyncio.wait((task,), timeout=ends - loop.time())
        return task.result() if task.done() else "late"
    finally:
        # Not awaited: a hook that swallows its cancellation would hold the run for as long as it likes.
        task.cancel()


_running: set[asyncio.Task[Settled | Unanswered]] = set()
"""An event loop holds its tasks weakly; one that was left behind could be collected in the middle."""

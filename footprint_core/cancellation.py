"""Whether a task was asked to stop, and delivering that where nothing else would suspend."""

from __future__ import annotations

import asyncio


def _current() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        # A coroutine can be driven by hand, without an event loop.
        return None


async def arrive() -> None:
    """Let a cancellation that is on its way to this task arrive now.

    One that came before something began would count as an old one there, and be lost.

    Raises:
        asyncio.CancelledError: There was one.
    """
    task = _current()
    if task is not None and task.cancelling():
        await asyncio.sleep(0)


class Cancellation:
    """The cancellation of the task that made this, as far as it came since then.

    A task that swallowed an earlier cancellation without saying so counts it for ever, so only what comes
    on top of the count at the start is heeded.
    """

    __slots__ = ("_before", "_task")

    def __init__(self) -> None:
        self._task = _current()
        self._before = 0 if self._task is None else self._task.cancelling()

    @property
    def asked(self) -> bool:
        """Whether the task was asked to stop."""
        return self._task is not None and self._task.cancelling() > self._before

    @property
    def here(self) -> bool:
        """Whether the task that runs now was asked to stop; other code can raise the same error by itself."""
        task = _current()
        if task is self._task:
            return self.asked
        return task is not None and task.cancelling() > 0

    async def heed(self) -> None:
        """Stop here, when the task was asked to.

        Raises:
            asyncio.CancelledError: It was.
        """
        if self.asked:
            # The event loop delivers it at a suspension, and then holds it no longer. One that was
            # delivered before, and swallowed by a rule or a tool, is heeded all the same.
            await asyncio.sleep(0)
            raise asyncio.CancelledError

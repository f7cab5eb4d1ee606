"""Bodies of one batch that run at the same time; each is filed when it ends, none can cancel another."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from footprint_core.loop.gates import Ready
from footprint_core.loop.run_tool import commit_intents, note_intent, run_intended
from footprint_core.loop.turn import Question, Ran, Turn

T = TypeVar("T")


async def run_together(turn: Turn, ready: dict[int, Ready]) -> dict[int, Ran | Question]:
    """Run the bodies of the calls that passed; one commit holds all their intents.

    Raises:
        BaseException: What is no answer of a tool, a cancellation for example, when every body has ended.
    """
    if not ready:
        return {}
    positions = {index: note_intent(turn, one) for index, one in ready.items()}
    await commit_intents(turn, tuple(ready.values()))
    return await run_bodies(turn, ready, positions)


async def run_bodies(
    turn: Turn, ready: dict[int, Ready], positions: dict[int, int]
) -> dict[int, Ran | Question]:
    """Run bodies whose intents are durable at these positions.

    Raises:
        BaseException: As `run_together`.
    """
    filing = asyncio.Lock()

    async def _body(index: int) -> Ran | Question | BaseException:
        settled: Ran | Question | BaseException
        try:
            settled = await run_intended(turn, ready[index], positions[index], inline=False)
        except BaseException as error:  # noqa: BLE001 - handed over as a value, so that no body ends another
            settled = error
        try:
            # Two appends at once could reach the ledger in the wrong order.
            async with filing:
                # Behind an append that failed, another one would leave a gap.
                if not turn.writer.broken:
                    await turn.writer.commit()
        except BaseException as error:  # noqa: BLE001 - the same
            return error
        return settled

    tasks = {index: asyncio.ensure_future(_body(index)) for index in ready}
    cancelled = await _all(tuple(tasks.values()))
    ended = {index: task.result() for index, task in tasks.items()}
    for outcome in ended.values():
        if isinstance(outcome, BaseException):
            raise outcome
    if cancelled is not None:
        raise cancelled
    return {index: one for index, one in ended.items() if not isinstance(one, BaseException)}


async def _all(tasks: tuple[asyncio.Future[T], ...]) -> asyncio.CancelledError | None:
    """Wait for every task; a cancellation is passed on to each of them, and handed back."""
    cancelled: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
            for task in tasks:
                task.cancel()
    return cancelled

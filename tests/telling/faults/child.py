"""Plays turns in a process of its own: `python -m telling.faults.child HOW ENDPOINT FOLDER`.

It says every run and its process, and `ready` when its turns are played and it waits for a signal. Its
decisions are in the ledger `FOLDER/l.db`, and its events in `FOLDER/lines`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from file_ledger import on_file
from footprint_core import Agent, Recorder
from recorders.jsonl import Jsonl
from recorders.otel_spans import OtelSpans
from story import answered, describe
from telling.faults.turns import STEP, ceiling, look, second

TURNS = 3


def agent(endpoint: str, folder: Path) -> Agent:
    """An agent with two recorders and a ledger in a file."""
    return describe(
        STEP * TURNS * 4,
        look,
        ledger=on_file(folder / "l.db"),
        act={"before_tool": [ceiling, second]},
        watch=[OtelSpans.to_otlp(endpoint), Jsonl(folder / "lines")],
    )[0].build()


async def turns(made: Agent, count: int = TURNS) -> None:
    """Play, and say the runs."""
    for _ in range(count):
        _say(f"{answered(await made.session().run('go')).run_id} {os.getpid()}")


def exits(made: Agent) -> None:
    """Play, and let the interpreter exit."""
    asyncio.run(turns(made))


def leaves(made: Agent) -> None:
    """Play, and leave at once."""
    asyncio.run(turns(made))
    os._exit(0)


def is_killed(made: Agent) -> None:
    """Play, and be ended by a signal nobody handles."""
    asyncio.run(turns(made))
    _say("ready")
    threading.Event().wait(60)


def is_stopped(made: Agent) -> None:
    """Play, and leave by the usual handler of a signal."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    asyncio.run(turns(made))
    _say("ready")
    threading.Event().wait(60)


def is_cancelled(made: Agent) -> None:
    """Play, and close the agent because the signal cancelled the task."""

    async def serve() -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        async with made:
            await turns(made)
            _say("ready")
            await asyncio.Event().wait()

    try:
        asyncio.run(serve())
    except asyncio.CancelledError:
        sys.exit(0)


def closes_in_handler(made: Agent) -> None:
    """Play, and close the recorders in the handler of a signal."""

    def handler(*_: object) -> None:
        for one in made._spec.bus.given:
            assert isinstance(one, Recorder)
            one.close(3.0)
        os._exit(0)

    signal.signal(signal.SIGTERM, handler)
    asyncio.run(turns(made))
    _say("ready")
    threading.Event().wait(60)


def preloads(made: Agent) -> None:
    """Play in a parent, and in children that were forked off it, as an application server does."""
    asyncio.run(turns(made, 1))
    # There is a connection now, which no child may use.
    _flushed(made)
    children = [_forked(made, flushing=True) for _ in range(2)]
    asyncio.run(turns(made, 1))
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    asyncio.run(turns(made, 1))


def forks_while_busy(made: Agent) -> None:
    """Fork while the recorders' threads ship."""
    children = []
    for _ in range(4):
        asyncio.run(turns(made, 1))
        children.append(_forked(made))
    for child in children:
        assert os.waitpid(child, 0)[1] == 0


def _flushed(made: Agent) -> None:
    for one in made._spec.bus.given:
        assert isinstance(one, Recorder)
        assert one.flush(10.0)


def _forked(made: Agent, *, flushing: bool = False) -> int:
    child = os.fork()
    if child:
        return child
    try:
        asyncio.run(turns(made, 2))
        if flushing:
            _flushed(made)
    except BaseException as error:  # noqa: BLE001 - a child must not go on with its parent's work
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    sys.exit(0)


def _say(line: str) -> None:
    # In one piece: parent and children say it to one pipe.
    os.write(1, f"{line}\n".encode())


HOW: dict[str, Callable[[Agent], None]] = {
    one.__name__: one
    for one in (
        exits,
        leaves,
        is_killed,
        is_stopped,
        is_cancelled,
        closes_in_handler,
        preloads,
        forks_while_busy,
    )
}

if __name__ == "__main__":
    how, endpoint, folder = sys.argv[1:]
    HOW[how](agent(endpoint, Path(folder)))

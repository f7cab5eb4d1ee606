"""Plays in a process of its own: `python -m facts_only.child FOLDER WHAT [ID]`.

What its recorders exported it leaves in the folder, in `exports`. It says one line when it has something to
say, and its loggers write to standard error, down to the finest.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from facts_only.shipping import Exports, exports
from footprint_core import ToolContext, before_tool, tool
from footprint_core.providers import reply
from footprint_observe import KeyRing, Redaction, SqliteLedger
from planted import ANSWER, SECRETS, WHO, World, act, asks, calls, pays, said
from planted_doors import DOORS
from planted_stories import STORIES, YES
from story import run

KEYS = KeyRing.of({"first": bytes(range(32))})
GATE = act(before_tool=[before_tool("asks")(asks)])


async def everything(world: World, _: str) -> None:
    """Every conversation there is."""
    for story in (*STORIES.values(), *DOORS.values()):
        await story(world)


async def pauses(world: World, _: str) -> None:
    """A question that stays open; its id is said."""
    agent = world.builder([pays(1)]).credentials(SECRETS).act(**GATE).build()
    paused: Any = await agent.run(said("message"), identity=WHO)
    print(paused.pause_id, flush=True)


async def resumes(world: World, id: str) -> None:
    """Answer it by its id."""
    await world.builder([ANSWER]).credentials(SECRETS).act(**GATE).build().resume(pause_id=id, answer=YES)


@tool
def breaks(note: str, context: ToolContext) -> str:
    """A tool in which its process dies."""
    print(context.run_id, flush=True)
    _leave(_out)
    os.kill(os.getpid(), signal.SIGKILL)
    return note


async def dies(world: World, _: str) -> None:
    """A process that dies in a tool; the run's id is said."""
    await world.builder([reply(calls=[calls("breaks")])], breaks).build().run(said("message"), identity=WHO)


async def recovers(world: World, id: str) -> None:
    """Go on with that run."""
    await world.builder([ANSWER], breaks).build().recover(id)


async def gives_up(world: World, id: str) -> None:
    """Give it up."""
    await world.builder([ANSWER], breaks).build().abandon(id, by=said("person"), reason=said("reason"))


WHAT: dict[str, Callable[[World, str], Awaitable[None]]] = {
    one.__name__: one for one in (everything, pauses, resumes, dies, recovers, gives_up)
}

_out: Exports
_folder: Path


def _leave(out: Exports) -> None:
    for name, data in {**out.drained(), "notices": out.own_words()}.items():
        (_folder / "exports" / name).write_bytes(data)


if __name__ == "__main__":
    _folder, what, *id = Path(sys.argv[1]), *sys.argv[2:]
    logging.basicConfig(level=logging.WARNING)
    for logger in ("footprint", "opentelemetry"):
        logging.getLogger(logger).setLevel(logging.DEBUG)
    with tempfile.TemporaryDirectory() as own, exports(Path(own)) as _out:
        ledger = SqliteLedger(_folder / "l.db", redact=Redaction.none(), durability="process", keys=KEYS)
        run(WHAT[what](World(*_out.recorders, ledger=ledger), *id or [""]))
        run(ledger.close())
        _leave(_out)

"""Recorders and watchers in trouble say that they are, and nothing that was said."""

from __future__ import annotations

import io
import shutil
import socket
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from facts_only.sweep import leaks, listening
from footprint_core import Scope, Watcher
from footprint_core.events import Event
from footprint_observe.plugins import recorder
from footprint_observe.recording import queued
from planted import ANSWER, RULES, SECRETS, WHO, WORD, World, pays, said
from story import run

SECONDS = 0.3


class Complains:
    """Raises with the word whatever it is asked."""

    def __init__(self, id: str) -> None:
        self.id = id

    def on_event(self, event: Event, /) -> None:
        raise RuntimeError(said(f"error of the watcher, which was told {event!r}"))

    def flush(self, timeout: float, /) -> bool:
        raise OSError(said("error of the flush"))

    def close(self, timeout: float, /) -> None:
        raise OSError(said("error of the close"))


class Encloses(Complains):
    """Raises around models and tools, and when it is asked for ids."""

    def correlation(self, run_id: str, segment: int, /) -> NoReturn:
        raise KeyError(said("error of the correlation"))

    def enclose(self, scope: Scope, /) -> AbstractContextManager[None]:
        raise LookupError(said("error of the scope"))


class Broken(io.StringIO):
    """A stream that takes nothing."""

    def write(self, text: str, /) -> int:
        raise OSError(28, said(f"error of the stream, which was given {text}"))


def nobody() -> int:
    """A port nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def in_trouble(folder: Path) -> dict[str, Watcher]:
    """Recorders that cannot ship, and watchers that raise."""
    folder.mkdir()
    port = nobody()
    spans, metrics = cast("Any", recorder("otel_spans")), cast("Any", recorder("otel_metrics"))
    made: dict[str, Watcher] = {
        "spans over HTTP": spans.to_otlp(f"http://user:{WORD}@127.0.0.1:{port}", id="spans-http"),
        "spans over gRPC": spans.to_otlp(f"grpc://127.0.0.1:{port}", id="spans-grpc"),
        "metrics": metrics.to_otlp(
            f"http://user:{WORD}@127.0.0.1:{port}", ledger=folder / "no.db", id="metrics"
        ),
        "console": cast("Any", recorder("console"))(file=Broken()),
        "jsonl": cast("Any", recorder("jsonl"))(folder / "events.jsonl"),
        "a watcher": Encloses("complains"),
        "a queued watcher": queued(Complains("complains-later")),
    }
    shutil.rmtree(folder)
    return made


def test_what_is_in_trouble_says_so_and_nothing_that_was_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    watchers = in_trouble(tmp_path / "gone")
    with listening() as records:
        world = World(*watchers.values())
        agent = world.builder([pays(1), ANSWER], streaming=True).credentials(SECRETS)

        async def played() -> object:
            built = agent.act(**cast("Any", RULES)).build()
            await built.run(said("message"), identity=WHO)
            for watcher in watchers.values():
                if not isinstance(watcher, Complains):
                    cast("Any", watcher).flush(SECONDS)
            health = built.health()
            await built.close(timeout=SECONDS)
            return health, built.health()

        health = run(played())
    printed = capfd.readouterr()
    held = {
        "log records": "\n".join(records.lines).encode(),
        "health": repr(health).encode(),
        "notices": repr([getattr(one, "notices", ()) for one in watchers.values()]).encode(),
        "printed": f"{printed.out}{printed.err}".encode(),
    }
    assert leaks(held, WORD) == []
    unheard = {
        name
        for name, one in watchers.items()
        if not getattr(one, "notices", ()) and one.id.encode() not in held["log records"]
    }
    assert unheard == set()

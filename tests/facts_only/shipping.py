"""Every recorder there is, each shipping to somewhere real, and the bytes that left it."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast
from unittest import mock
from urllib.request import Request, urlopen

import msgspec

from facts_only.collector import over_grpc, over_http
from file_ledger import on_file
from footprint_core import Recorder, before_tool
from footprint_observe.plugins import recorder
from footprint_observe.recording import queued
from planted import RULES, SECRETS, WHO, World, asks, pays, said
from story import run

GATE = before_tool("gate")(asks)

SECONDS = 20.0
"""How long a recorder may take to ship what it was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipping:
    """A recorder, and what it shipped since that was asked for last; asked for behind a flush."""

    recorder: Recorder
    shipped: Callable[[], bytes]


Made: TypeAlias = Callable[[ExitStack, Path, str], Shipping]
"""Makes a recorder: what to close behind it, a folder of its own, and its id."""


def _otlp(name: str, *, over: Any, packed: bool = False, waits: bool = False, **options: Any) -> Made:
    """The recorder of that name, on its way to a collector; beside a ledger in which a question waits."""

    def made(stack: ExitStack, folder: Path, id: str) -> Shipping:
        if waits:
            options["ledger"] = _waiting(folder)
        collected = stack.enter_context(over())
        packing = {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"} if packed else {}
        with mock.patch.dict(os.environ, packing):
            one = cast("Any", recorder(name)).to_otlp(collected.endpoint, id=id, **options)
        return Shipping(recorder=one, shipped=collected.drained)

    return made


def _waiting(folder: Path) -> Path:
    """A ledger file with everything planted in it, and a question that waits."""
    path = folder / "waiting.db"
    world = World(ledger=on_file(path))
    agent = world.builder([pays(1)]).credentials(SECRETS).act(**cast("Any", RULES)).tool_middleware(GATE)

    async def pauses() -> None:
        await agent.build().run(said("message"), identity=WHO)
        await world.ledger.close()

    run(pauses())
    return path


def _page(_: ExitStack, folder: Path, id: str) -> Shipping:
    made = cast("Any", recorder("otel_metrics")).to_prometheus(port=0, ledger=_waiting(folder), id=id)

    def shipped() -> bytes:
        return b"\n".join(_fetched(made.url, kind) for kind in ("text/plain", "application/openmetrics-text"))

    return Shipping(recorder=made, shipped=shipped)


def _fetched(url: str, kind: str) -> bytes:
    with urlopen(Request(url, headers={"Accept": kind}), timeout=SECONDS) as answer:
        return str(answer.headers).encode() + bytes(answer.read())


def _console(_: ExitStack, __: Path, id: str) -> Shipping:
    file = io.StringIO()
    made: Any = recorder("console")(file=file, id=id)

    def shipped() -> bytes:
        said = file.getvalue().encode()
        file.seek(0)
        file.truncate()
        return said

    return Shipping(recorder=made, shipped=shipped)


def _jsonl(stack: ExitStack, folder: Path, id: str) -> Shipping:
    path = folder / "events.jsonl"
    made: Any = recorder("jsonl")(path, id=id)
    return Shipping(recorder=made, shipped=stack.enter_context(path.open("rb")).read)


def _memory(_: ExitStack, __: Path, id: str) -> Shipping:
    made: Any = recorder("memory")(keep=None, id=id)
    return Shipping(recorder=made, shipped=partial(_kept, made))


def _queued(_: ExitStack, __: Path, id: str) -> Shipping:
    made: Any = recorder("memory")(keep=None, id=id)
    return Shipping(recorder=queued(made), shipped=partial(_kept, made))


def _kept(memory: Any) -> bytes:
    kept = msgspec.json.encode(memory.events) if memory.events else b""
    memory.clear()
    return kept


_spans = partial(_otlp, "otel_spans")

_metrics = partial(_otlp, "otel_metrics", waits=True, interval=3600.0)

RECORDERS: dict[str, Made] = {
    "otel_spans, spans over HTTP": _spans(over=over_http, decisions="spans"),
    "otel_spans, notable over packed HTTP": _spans(over=over_http, packed=True, decisions="notable"),
    "otel_spans, events over HTTP": _spans(over=over_http, decisions="events"),
    "otel_spans, spans over packed gRPC": _spans(over=over_grpc, packed=True, decisions="spans"),
    "otel_spans, notable over gRPC": _spans(over=over_grpc, decisions="notable"),
    "otel_spans, events over gRPC": _spans(over=over_grpc, decisions="events"),
    "otel_metrics, over HTTP": _metrics(over=over_http),
    "otel_metrics, over packed gRPC": _metrics(over=over_grpc, packed=True),
    "otel_metrics, on a page": _page,
    "console": _console,
    "jsonl": _jsonl,
    "memory": _memory,
    "queued, around a recorder": _queued,
}
"""Every recorder in every way it ships; what stands before a comma is its entry point, or `queued`."""


class Exports:
    """Recorders that ship, by what they are called."""

    def __init__(self, shipping: Mapping[str, Shipping]) -> None:
        self._shipping = shipping
        self.recorders: tuple[Recorder, ...] = tuple(one.recorder for one in shipping.values())

    def drained(self) -> dict[str, bytes]:
        """What each has shipped since it was asked last, of everything it was told.

        Nothing was lost on the way, or there would be bytes nobody looked at.
        """
        for one in self.recorders:
            assert one.flush(SECONDS), one.id
            assert getattr(one, "dropped", 0) == 0, one.id
        return {name: one.shipped() for name, one in self._shipping.items()}

    def own_words(self) -> bytes:
        """What the recorders say about themselves."""
        return repr([(one, getattr(one, "notices", ())) for one in self.recorders]).encode()


@contextmanager
def exports(folder: Path, made: Mapping[str, Made] = RECORDERS) -> Generator[Exports]:
    """Recorders that ship until the block is left; then they are closed, and their collectors behind them."""
    with ExitStack() as stack:
        shipping: dict[str, Shipping] = {}
        for number, (name, make) in enumerate(made.items()):
            own = folder / str(number)
            own.mkdir()
            shipping[name] = one = make(stack, own, f"swept-{number}")
            stack.callback(one.recorder.close, SECONDS)
        yield Exports(shipping)

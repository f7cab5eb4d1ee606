"""Plays conversations in front of every recorder, and looks for what was planted in what left."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from facts_only.shipping import RECORDERS, Made, exports
from planted import Story, World
from planted_forms import forms, found, pieces
from story import run


class Records(logging.Handler):
    """Keeps every log record as it would be written, with its arguments and its traceback."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.lines: list[str] = []
        self._format = logging.Formatter("%(name)s %(levelname)s %(message)s")

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{self._format.format(record)} {record.args!r} {record.__dict__!r}")


@contextmanager
def listening() -> Generator[Records]:
    """Every record of the product's loggers and of those of OpenTelemetry, down to the finest."""
    records = Records()
    loggers = [logging.getLogger(name) for name in ("footprint", "opentelemetry")]
    levels = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.DEBUG)
        one.addHandler(records)
    try:
        yield records
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)
            one.removeHandler(records)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What came of conversations.

    Attributes:
        held: The bytes everything exported, by what it is called.
        kept: The facts of each conversation, as JSON.
        untold: The conversations a recorder shipped nothing about, and the recorder.
    """

    held: dict[str, bytes] = field(repr=False)
    kept: dict[str, bytes] = field(repr=False)
    untold: list[str]


def swept(folder: Path, stories: Mapping[str, Story], made: Mapping[str, Made] = RECORDERS) -> Swept:
    """Play conversations in front of recorders.

    Args:
        folder: Where recorders may write.
        stories: The conversations, by name.
        made: The recorders.
    """
    kept: dict[str, bytes] = {}
    untold: list[str] = []
    with listening() as records, warnings.catch_warnings(record=True) as warned, exports(folder, made) as out:
        warnings.simplefilter("always")
        world = World(*out.recorders)
        held: dict[str, bytes] = dict.fromkeys(made, b"")
        for name, story in stories.items():
            facts = len(world.facts)
            run(story(world))
            kept[name] = msgspec.json.encode(world.facts[facts:])
            for kind, shipped in out.drained().items():
                held[kind] += shipped
                if not shipped:
                    untold.append(f"{name}: {kind}")
        held["notices"] = out.own_words()
    held["events"] = msgspec.json.encode(world.seen.events)
    held["log records"] = "\n".join(records.lines).encode()
    held["warnings"] = "\n".join(map(str, warned)).encode()
    return Swept(held=held, kept=kept, untold=untold)


def leaks(held: Mapping[str, bytes], text: str) -> list[str]:
    """Where a text is, whole in any form or in pieces."""
    return found(held, {**forms(text), **pieces(text)})

"""A recorder that its agent closed says so when another agent has it, and loses nothing in a `with` block."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from otlp_receiver import OtlpReceiver
from recorders.console import Console
from recorders.jsonl import Jsonl
from recorders.otel_metrics import OtelMetrics
from recorders.otel_spans import OtelSpans
from story import run
from telling.faults.turns import SPANS, agent_of

MADE: dict[str, Callable[[Path, str], Any]] = {
    "console": lambda _folder, _endpoint: Console(file=io.StringIO()),
    "jsonl": lambda folder, _: Jsonl(folder / "events"),
    "otel_metrics": lambda _, endpoint: OtelMetrics.to_otlp(endpoint),
    "otel_metrics page": lambda _folder, _endpoint: OtelMetrics.to_prometheus(port=0),
    "otel_spans": lambda _, endpoint: OtelSpans.to_otlp(endpoint),
}


def turn(recorder: Any) -> tuple[str, ...]:
    """What the health of an agent says of the recorder, behind a turn, and closed."""

    async def played() -> tuple[str, ...]:
        async with agent_of(recorder) as agent:
            await agent.run("go")
            return agent.health().watchers[0].notices

    return run(played())


@pytest.mark.parametrize("name", MADE)
def test_the_second_agent_says_that_its_recorder_was_closed(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with OtlpReceiver() as receiver, caplog.at_level(logging.WARNING, "footprint"):
        recorder = MADE[name](tmp_path, receiver.endpoint)
        assert turn(recorder) == ()
        assert not any("was closed" in said for said in caplog.messages)
        (notice, *_) = turn(recorder)
        assert "was closed with the last agent that had it" in notice
        turn(recorder)
    assert [said for said in caplog.messages if "was closed" in said] == [notice]


def test_in_a_block_it_is_open_for_every_agent() -> None:
    with OtlpReceiver() as receiver:
        with OtelSpans.to_otlp(receiver.endpoint) as spans:
            assert [turn(spans), turn(spans)] == [(), ()]
        assert len(receiver.wait(2 * SPANS)) == 2 * SPANS

"""A dead collector is dialled from a thread of the recorder's own, never from where a run is played."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from telling.faults.collectors import free_port
from telling.faults.turns import SPANS

TESTS = Path(__file__).parents[2]
PROGRAM = f"""
import sys, threading
sys.path[:0] = [{str(TESTS)!r}, {str(TESTS.parent)!r}]
dialled = set()
def hook(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        dialled.add(threading.current_thread().name)
sys.addaudithook(hook)

import logging
logging.disable()
from recorders.otel_spans import OtelSpans
from story import run
from telling.faults.turns import agent_of

spans = OtelSpans.to_otlp(sys.argv[1])
agent = agent_of(spans, turns=20)
async def play():
    for _ in range(20):
        await agent.session().run("go")
run(play())
spans.flush(0.2)
print(*sorted(dialled), spans.queued + spans.dropped)
"""


def test_only_the_recorders_thread_knows_of_the_network() -> None:
    command = [sys.executable, "-c", PROGRAM, f"http://localhost:{free_port()}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (f"footprint-otel_spans {20 * SPANS}\n", "")

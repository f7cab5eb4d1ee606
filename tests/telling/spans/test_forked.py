"""A forked process: what is open is its parent's, which ends it once; what the child begins is its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from otlp_receiver import OtlpReceiver

TESTS = Path(__file__).parents[2]
FORKS_IN_A_TOOL = """
import os, sys
from footprint_core import Agent
from footprint_core.providers import Scripted, call, reply
from recorders.otel_spans import OtelSpans

def forks() -> str:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    else:
        # A run of the child's own, inside of the tool of its parent.
        model = Scripted([reply(text="hello")])
        Agent.create(provider=model, model="m", name="child").watch(spans).build().run_sync("go")
        spans.flush(5.0)
        if sys.argv[2] == "leaves":
            os._exit(0)
    return "forked"

spans = OtelSpans.to_otlp(sys.argv[1])
model = Scripted([reply(calls=[call("c1", "forks", {})]), reply(text="done")])
agent = Agent.create(provider=model, model="m", name="parent").tool(forks).watch(spans).build()
agent.run_sync("go")
spans.close(5.0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="This system cannot fork a process.")
@pytest.mark.parametrize("child", ["leaves", "goes on"])
def test_a_fork_in_a_tool_doubles_no_span(child: str) -> None:
    with OtlpReceiver() as receiver:
        done = subprocess.run(
            [sys.executable, "-c", FORKS_IN_A_TOOL, receiver.endpoint, child],
            env={"PYTHONPATH": f"{TESTS}:{TESTS.parent}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        receiver.wait(6)
        # The child's run began inside the tool of its parent, and hangs there.
        assert receiver.tree() == (
            (
                "invoke_agent parent",
                (
                    ("chat m", ()),
                    ("execute_tool forks", (("invoke_agent child", (("chat m", ()),)),)),
                    ("chat m", ()),
                ),
            ),
        )
        assert len({span.span_id for span in receiver.spans}) == len(receiver.spans)

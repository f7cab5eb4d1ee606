"""A rule's declared limit, and what is told of the threads that did not keep it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from footprint_core import MessageDeniedError, allow
from footprint_core.threads import THREADS
from ruled import RESULT, RULED, Played, RuledMoment, act_at, paying
from story import run

LIMIT = 0.02
LONG = 20.0


class Slow:
    """A plain rule with every hook; it answers when it is released."""

    name = "slow"
    timeout = LIMIT

    def __init__(self, moment: RuledMoment, released: threading.Event) -> None:
        self.moment = moment
        self.released = released

    def on_message(self, message: Any) -> Any:
        return self._late() if message.phase == self.moment else allow()

    def on_tool_call(self, _: Any) -> Any:
        return self._late() if self.moment == "before-tool" else allow()

    def on_tool_result(self, _: Any) -> Any:
        return self._late() if self.moment == "after-tool" else allow()

    def _late(self) -> Any:
        self.released.wait(LONG)
        return allow()


@pytest.mark.parametrize("moment", RULED)
def test_threads_left_behind_are_told_and_what_they_answer_later_is_ignored(moment: RuledMoment) -> None:
    released = threading.Event()
    builder, model = paying()
    played = Played(builder.act(**act_at(moment, Slow(moment, released))), model)

    async def story() -> None:
        assert played.agent.health().threads_left_behind == 0
        try:
            played.outcome = await played.agent.run("please pay")
        except MessageDeniedError as error:
            played.error = error
        rows, requests = played.rows, played.requests
        assert played.agent.health().threads_left_behind == 1
        released.set()
        while THREADS.left_behind:  # noqa: ASYNC110 - a count of threads sets no event
            await asyncio.sleep(0)
        assert played.agent.health().threads_left_behind == 0
        assert (played.rows, played.requests) == (rows, requests)

    try:
        run(story())
    finally:
        released.set()
    assert not played.acted(moment)
    assert "slow" in played.refusal(moment)
    assert "0.02" in played.refusal(moment)
    row = [row for row in played.rows if row["moment"] == moment][-1]
    assert (row["outcome"], row["why"]) == ("deny", played.refusal(moment))
    assert row.get("before") == (RESULT if moment == "after-tool" else None)

"""A recorded conversation as a model and its tools: each says again what it said then."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

from footprint_core.errors import RunError
from footprint_core.messages import ToolCall
from footprint_core.outcomes import ToolArgs
from footprint_core.plain import Json
from footprint_core.providers.port import Chunk, Completed, ModelRequest
from footprint_core.tools.tool import Tool, ToolContext, accept_any
from footprint_observe.backtest.transcript import Transcript
from footprint_observe.backtest.turns import RecordedTurn


class RecordingEndedError(RunError):
    """The model was asked for a reply the recording does not hold.

    Attributes:
        behind: What it had to reply to.
    """

    def __init__(self, *, behind: Literal["message", "result"]) -> None:
        self.behind: Literal["message", "result"] = behind
        super().__init__(f"The recording ends behind a {behind}, without a reply; there is nothing to play.")


class RecordedModel:
    """A provider that gives the recorded replies of one turn after another, and the results of its calls.

    Attributes:
        name: `recorded`.
    """

    name = "recorded"

    def __init__(self) -> None:
        self._turn = RecordedTurn(text="")
        self._given = 0

    def begin(self, turn: RecordedTurn) -> None:
        """Go to the start of a turn; what is left of the one before is passed over."""
        self._turn = turn
        self._given = 0

    async def reply(self, _request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        """The next reply of the turn, whatever the request says.

        Raises:
            RecordingEndedError: The turn has no more.
        """
        if self._given == len(self._turn.replies):
            raise RecordingEndedError(behind="result" if self._given else "message")
        reply = self._turn.replies[self._given]
        self._given += 1
        calls = tuple(ToolCall(id=call.id, name=call.name, args_json=call.args_json) for call in reply.calls)
        yield Completed(text=reply.text, tool_calls=calls, stop_reason="tool_use" if calls else "stop")

    def result(self, iteration: int, call_id: str) -> Json:
        """What was recorded for a call of this turn: JSON where the text is JSON, else the text."""
        # Of the calls of one reply the loop runs only the first under an id.
        call = next(call for call in self._turn.replies[iteration - 1].calls if call.id == call_id)
        return call.value


def recorded_tools(transcript: Transcript, model: RecordedModel) -> tuple[Tool, ...]:
    """A tool for every name the conversation calls, in the order of the first calls."""

    async def body(args: ToolArgs, context: ToolContext) -> Json:  # noqa: ARG001 - what a tool is called with
        """What was recorded for the call that is being run."""
        return model.result(context.iteration, context.call_id)

    calls = [call for turn in transcript.turns for reply in turn.replies for call in reply.calls]
    return tuple(
        Tool(
            name=name,
            description="",
            schema={"type": "object"},
            keys=frozenset(),
            check=accept_any,
            body=body,
            is_async=True,
            context_parameter="context",
        )
        for name in dict.fromkeys(call.name for call in calls)
    )

"""One call of a client, on the same gates, the same walker and the same reading as a call of the loop."""

from __future__ import annotations

import msgspec

from footprint_core.loop.dispatch import finish, settle, take
from footprint_core.loop.pause import Origin
from footprint_core.loop.segment import configured, new_turn, run_segment
from footprint_core.loop.turn import Answered, Ending, Ran, Turn
from footprint_core.messages import Messages, ToolCall, ToolMessage
from footprint_core.spec import AgentSpec
from footprint_core.state import RunState


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What a client gets of a call.

    Attributes:
        text: The result, or the refusal.
        is_error: Whether it is a refusal, or the tool raised.
    """

    text: str
    is_error: bool


async def serve_call(spec: AgentSpec, call: ToolCall) -> Served:
    """Decide about one call of a client and run it; a run of its own in the ledger.

    There is no model, no conversation and no identity: the iteration is 0, the history is empty, and a
    person cannot be asked.

    Raises:
        LedgerError: The ledger did not take what had to be durable; nothing acted on it.
    """
    state = RunState()
    state.calls = (call,)
    turn = new_turn(spec, state, spec.new_id(), 1, 0, None, served=True)
    origin = Origin(conversation_id=None, follows=None, before=Messages())
    failed = False

    async def _steps(turn: Turn) -> Ending:
        nonlocal failed
        settled = await settle(turn, take(turn, 0))
        failed = isinstance(settled, Ran) and settled.failed
        await finish(turn, 0, settled)
        return Answered(text=state.messages[0].text)

    await run_segment(turn, configured(turn, origin, turn_index=0), _steps, origin=origin)
    replied = state.messages[0]
    return Served(
        text=replied.text, is_error=failed or (isinstance(replied, ToolMessage) and replied.refused)
    )

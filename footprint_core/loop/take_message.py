"""The input moment: the one place where a user's message enters a conversation."""

from __future__ import annotations

import msgspec

from footprint_core import plain
from footprint_core.chain.calls import Refused
from footprint_core.chain.contents import walk_content
from footprint_core.facts import MessageTaken
from footprint_core.loop.turn import DeniedMessage, Turn
from footprint_core.messages import Messages

_EMPTY = Messages()


async def take_message(turn: Turn, text: str, turn_index: int) -> DeniedMessage | None:
    """Let the rules decide about the message, then begin the turn; a refusal enters no conversation."""
    turn.stage = "input"
    text = plain.detach(text)
    walked = await walk_content(
        turn.spec.chains.contents,
        text,
        turn.writer,
        phase="input",
        iteration=0,
        history=_EMPTY,
        identity=turn.identity,
    )
    if isinstance(walked, Refused):
        turn.writer.note(MessageTaken(turn_index=turn_index, message_chars=len(text), text=msgspec.UNSET))
        return DeniedMessage(reason=walked.reason, phase="input", rule=walked.rule)
    turn.writer.note(MessageTaken(turn_index=turn_index, message_chars=len(walked.text), text=walked.text))
    return None

"""A person is asked: the pause is on record before the caller is handed it."""

from __future__ import annotations

from typing import Any

import msgspec

from footprint_core import plain
from footprint_core.decisions import Decision
from footprint_core.facts import PauseOpened, SegmentEnded
from footprint_core.loop.turn import PausedRun, Question, Settled, Turn
from footprint_core.messages import Messages
from footprint_core.tools.tool import Checked, checked, invalid_text


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a turn began.

    Attributes:
        conversation_id: The application's conversation, or None.
        follows: The run before this one, or None.
        before: The conversation as it was before this turn.
        rows: The decision rows of earlier segments.
    """

    conversation_id: str | None
    follows: str | None
    before: Messages
    rows: tuple[Decision, ...] = ()


class MadePause(msgspec.Struct, frozen=True, kw_only=True):
    """A pause that is ready to be opened: nothing of it is noted yet.

    Attributes:
        paused: What the caller will be handed; its checkpoint lacks the rows.
        fact: What opens it.
        rows: The decision rows of earlier segments.
    """

    paused: PausedRun
    fact: PauseOpened
    rows: tuple[Decision, ...]


def make_pause(turn: Turn, question: Question, origin: Origin) -> MadePause:
    """Make the checkpoint of a question. Whatever fails fails here, where the segment can still say so."""
    # pydantic is loaded by the first pause of a process, not by the import of the package.
    from footprint_core.pause.checkpoint import digest, new_salt

    args_problem = _args_problem(turn, question)
    pause_id, salt = turn.spec.new_id(), new_salt()
    # Through JSON at once, so that what came back through it later is equal.
    checkpoint: dict[str, Any] = plain.decode(plain.encode(_checkpoint(turn, question, origin, pause_id)))
    over = digest(salt, checkpoint)
    checkpoint.update(salt=salt, digest=over)
    fact = PauseOpened(
        pause_id=pause_id,
        pause_kind=question.kind,
        iteration=turn.state.iteration,
        call_id=question.call_id,
        tool_name=question.tool_name,
        tool_source=question.tool_source,
        middleware=question.middleware,
        expires_us=checkpoint["expires_us"],
        salt=salt,
        digest=over,
    )
    paused = PausedRun(question=question, pause_id=pause_id, checkpoint=checkpoint, args_problem=args_problem)
    return MadePause(paused=paused, fact=fact, rows=origin.rows)


async def open_pause(turn: Turn, made: MadePause, end: SegmentEnded) -> PausedRun:
    """File the pause and the segment's end, and complete the checkpoint by the rows as they are kept.

    Cancelled while it is filed, the pause is on record all the same: `turn.paused` has it then.
    """
    from footprint_core.pause.checkpoint import signature
    from footprint_core.pause.kept import body_of

    paused, key = made.paused, turn.spec.checkpoint_key
    turn.writer.note(made.fact)
    turn.writer.note(end)
    try:
        await turn.writer.commit(body_of(paused.checkpoint, key), pause_id=paused.pause_id)
    finally:
        if not turn.writer.broken:
            rows = (*made.rows, *turn.writer.decisions())
            paused.checkpoint["rows"] = plain.decode(plain.encode([msgspec.to_builtins(row) for row in rows]))
            paused.checkpoint["signature"] = None if key is None else signature(key, paused.checkpoint)
            turn.paused = paused
    return paused


# The pause and the end of the segment come behind what is noted when the checkpoint is made.
_FACTS_BEHIND = 2


def _checkpoint(turn: Turn, question: Question, origin: Origin, pause_id: str) -> dict[str, Any]:
    trace = turn.writer.trace
    opened_us = turn.writer.now()
    expires = question.expires_in
    return {
        "version": 1,
        "pause_id": pause_id,
        "opened_us": opened_us,
        "expires_us": None if expires is None else opened_us + int(expires * 1_000_000),
        "run_id": turn.writer.run_id,
        "segment": turn.writer.segment,
        "position": turn.writer.position + _FACTS_BEHIND,
        "agent_id": turn.spec.agent_id,
        "conversation_id": origin.conversation_id,
        "rules": {moment: list(names) for moment, names in turn.spec.rule_names().items()},
        "trace": None if trace is None else [trace.trace_id, trace.span_id],
        "identity": turn.identity,
        "follows": origin.follows,
        "call": _plain(question),
        "held": [[index, _plain(one)] for index, one in sorted(turn.held.items())],
        "state": turn.state.to_plain(),
        "before": msgspec.to_builtins(origin.before[:]),
    }


def _plain(settled: Settled) -> dict[str, Any]:
    plain_form: dict[str, Any] = plain.copy(msgspec.to_builtins(settled))
    return plain_form


def _args_problem(turn: Turn, question: Question) -> str | None:
    """What checking the args would say now; advice, which decides nothing."""
    if question.kind != "ask":
        return None
    tool = turn.spec.tools.get(question.tool_name)
    if tool is None:
        return f"There is no tool called {question.tool_name}."
    found = checked(tool, question.args)
    return None if isinstance(found, Checked) else invalid_text(tool.name, found)

"""Everything about one call: who asked for it, what was decided, by whom, what ran, and how it ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypedDict, TypeVar, cast

import msgspec
from sqlite_utils import Database

from footprint_core import facts as fa
from footprint_core import plain
from footprint_core.clock import iso
from footprint_core.facts.words import CallStatus
from footprint_core.messages import ToolCall
from footprint_core.plain import Json
from footprint_observe.query.database import Record, last_id, query, reading
from footprint_observe.query.filters import checked_text
from footprint_observe.query.refusals import NoSuchCallError
from footprint_observe.query.rows import DecisionRow, Row, decision_record, entry_record, rows
from footprint_observe.query.runs import meant

F = TypeVar("F", bound=fa.Fact)

_AT_ONCE = 50_000
_NEWEST = """
SELECT run_id FROM facts WHERE id > :after AND id <= :last AND kind = 'call.taken' AND tool_call_id = :call
ORDER BY id DESC LIMIT 1
"""
_CALLS = """
SELECT id, run_id, segment, position, recorded_at, iteration, tool_call_id, tool_name, tool_source,
  status, executed, in_doubt, decided_by_rule, error_class, duration_us
FROM tool_calls WHERE run_id = :run AND tool_call_id = :call ORDER BY position
"""
# A call's rows lie between its call.taken and the end of its iteration.
_ABOUT = """
f.run_id = :run AND f.position >= :position AND f.position < ifnull((
  SELECT i.position FROM facts AS i
  WHERE i.run_id = :run AND i.position > :position AND i.kind = 'iteration.ended' ORDER BY i.position LIMIT 1
), 9223372036854775807)
AND f.tool_call_id = :call AND ifnull(f.iteration, :iteration) = :iteration ORDER BY f.position
"""
_REPLY = """
f.run_id = :run AND f.position < :position AND f.kind = 'model.replied' ORDER BY f.position DESC LIMIT 1
"""
_RUN = "f.run_id = :run AND f.kind = 'run.configured' ORDER BY f.position LIMIT 1"
_MESSAGE = "f.run_id = :run AND f.kind = 'message.taken' ORDER BY f.position LIMIT 1"


class WhyRow(TypedDict):
    """One call of a run.

    Attributes:
        id: The place in the file of the row with which it was taken up.
        run_id: The run.
        segment: The segment of the run in which it was taken up.
        position: The place of that row in the run.
        recorded_at: When it was taken up: ISO 8601, UTC.
        agent: The agent.
        identity: On whose behalf the run was.
        message: The message the run answers, as the rules let it through.
        iteration: The reply of the model that asked for it, from 1; 0 for a call of a client.
        tool_call_id: The id the model gave it.
        tool_name: The tool.
        tool_source: The server the tool came from, or None.
        asked_args: The arguments as the model wrote them.
        permission: What a permission checker decided about it.
        decisions: What rules and persons decided about it, in order.
        check_ins: Consent a tool declares: asked for with its evidence, and given or refused by whom.
        credentials: Credentials it needed, and what became of them.
        pauses: Questions to a person: opened, answered, closed.
        approved_args: What a person approved, when a rule changed it behind the approval.
        ran_args: The arguments that ran, or were about to.
        result: The tool's own result, or the message of what it raised.
        read: What the model read of it, when that is not the result.
        status: ran, failed, denied, invalid, unknown, blocked or cancelled; None while it is open.
        executed: Whether the tool ran.
        in_doubt: Whether it may have run: it was about to, and how it ended is not on record.
        decided_by_rule: The rule whose denial it was.
        error_class: The class of what went wrong.
        duration_us: How long the tool ran, in microseconds.
    """

    id: int
    run_id: str
    segment: int
    position: int
    recorded_at: str
    agent: str
    identity: Json
    message: Json
    iteration: int
    tool_call_id: str
    tool_name: str
    tool_source: str | None
    asked_args: Json
    permission: list[Record]
    decisions: list[DecisionRow]
    check_ins: list[Record]
    credentials: list[Record]
    pauses: list[Record]
    approved_args: Json
    ran_args: Json
    result: Json
    read: Json
    status: CallStatus | None
    executed: bool
    in_doubt: bool
    decided_by_rule: str | None
    error_class: str | None
    duration_us: int | None


def why(
    path: str | os.PathLike[str],
    call: str,
    *,
    run: str | None = None,
    looked_through: Callable[[int, int], object] | None = None,
) -> list[WhyRow]:
    """Everything about the calls of one run under an id; more than one where the model used it again.

    Args:
        path: The ledger file.
        call: The id the model gave the call.
        run: The run: its id, the beginning of one, or `last`; when absent, the newest run with such a call,
            for which the file is read from its end.
        looked_through: Is told from time to time how many rows were looked through, and of how many.

    Raises:
        QuestionError: The id is no text.
        NoSuchRunError: No run is meant, or more than one.
        NoSuchCallError: There is no call of that id.
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    checked_text(call, "The id of a call")
    with reading(path) as db:
        run_id = _newest(db, call, looked_through) if run is None else meant(db, run)
        found = list(query(db, _CALLS, {"run": run_id, "call": call}))
        if not found:
            raise NoSuchCallError("The run has no call of that id; `footprint show` lists its calls.")
        return [_told(db, one) for one in found]


def _newest(db: Database, call: str, looked_through: Callable[[int, int], object] | None) -> str:
    # Nothing finds a call by its id alone, so the file is read from its end; in short transactions.
    newest = last_id(db)
    for last in range(newest, 0, -_AT_ONCE):
        if looked_through is not None:
            looked_through(newest - last, newest)
        for row in query(db, _NEWEST, {"after": last - _AT_ONCE, "last": last, "call": call}):
            return str(row["run_id"])
    raise NoSuchCallError(
        "No run of this ledger has a call of that id; `footprint show` lists those of a run."
    )


def _told(db: Database, call: Record) -> WhyRow:
    place = {"run": call["run_id"], "call": call["tool_call_id"]}
    place |= {"position": call["position"], "iteration": call["iteration"]}
    about = list(rows(db, _ABOUT, place))
    decided = [decision_record(row) for row in about if isinstance(row.entry.fact, fa.Decided)]
    configured = _first(db, _RUN, place, fa.RunConfigured)
    taken = _first(db, _MESSAGE, place, fa.MessageTaken)
    intended = _last(about, fa.ToolIntended)
    finished = _last(about, fa.ToolFinished)
    answered = _last(about, fa.CallAnswered)
    told: dict[str, Any] = {
        **call,
        "recorded_at": iso(about[0].entry.time),
        "executed": bool(call["executed"]),
        "in_doubt": bool(call["in_doubt"]),
        "agent": None if configured is None else configured.agent_name,
        "identity": _value(configured, "identity"),
        "message": _value(taken, "text"),
        "asked_args": _asked_args(db, place),
        "permission": _records(about, fa.PermissionChecked),
        "decisions": decided,
        "check_ins": _records(about, fa.CheckInAsked, fa.CheckInAnswered),
        "credentials": _records(about, fa.CredentialRequested, fa.CredentialAcquired, fa.CredentialFailed),
        "pauses": _records(about, fa.PauseOpened, fa.PauseAnswered, fa.PauseClosed),
        "approved_args": next((row["before"] for row in decided if row["after_approval"]), None),
        "ran_args": _value(intended, "args"),
        "result": _value(finished, "result"),
        "read": _value(answered, "text"),
    }
    return cast("WhyRow", {name: told[name] for name in WhyRow.__annotations__})


def _asked_args(db: Database, place: dict[str, Any]) -> Json:
    reply = _first(db, _REPLY, place, fa.ModelReplied)
    if reply is None or reply.iteration != place["iteration"]:
        return None
    calls: Json = reply.calls
    for one in cast("tuple[ToolCall, ...]", calls) if isinstance(calls, tuple) else ():
        if one.id == place["call"]:
            try:
                return one.args
            except ValueError:
                # What the model wrote is no JSON; it is shown as it is.
                return one.args_json
    return None


def _first(db: Database, condition: str, place: dict[str, Any], kind: type[F]) -> F | None:
    return _last(list(rows(db, condition, place)), kind)


def _last(about: Sequence[Row], kind: type[F]) -> F | None:
    return next((row.entry.fact for row in reversed(about) if isinstance(row.entry.fact, kind)), None)


def _records(about: Iterable[Row], *kinds: type[fa.Fact]) -> list[Record]:
    return [entry_record(row) for row in about if isinstance(row.entry.fact, kinds)]


def _value(fact: fa.Fact | None, name: str) -> Json:
    value = getattr(fact, name, None)
    return None if value is msgspec.UNSET else plain.copy(value)

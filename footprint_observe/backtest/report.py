"""What a back-test found: how much ran, which rows it left, and where the recording is no longer true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from footprint_core.decisions import Verdict
from footprint_core.moments import LoopMoment

RowKey: TypeAlias = tuple[str, LoopMoment, Verdict]
"""Rule, moment and outcome of a row."""

What: TypeAlias = Literal[
    "message-denied",
    "answer-denied",
    "call-denied",
    "call-declined",
    "call-blocked",
    "call-invalid",
    "args-changed",
    "result-denied",
    "stopped",
]
"""How a run left its recording.

- `message-denied`: a rule refused the message; the recorded replies to it were passed over.
- `answer-denied`: a rule refused the answer; the conversation goes on without that turn.
- `call-denied`, `call-declined`: a rule or the person refused a call; the recorded next reply follows.
- `call-blocked`: a reply used one call id twice; the later call was not run.
- `call-invalid`: the arguments were no JSON object; the call was not run.
- `args-changed`: a rule changed the arguments; the recorded result is that of the others.
- `result-denied`: a rule kept the result from the model; the recorded next reply follows.
- `stopped`: a person was asked and nobody answered; the rest of the conversation was not played.

A message, a result or an answer that a rule changed is none of them: its row says so.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """One place behind which the recording may not be what would have happened.

    Attributes:
        conversation_id: The conversation.
        line: The line it stands on.
        what: What happened.
        call_id: The call, as the ledger has it, or None.
        rule: The rule that decided, or that asked; None when no rule did.
    """

    conversation_id: str
    line: int
    what: What
    call_id: str | None = None
    rule: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestReport:
    """What a back-test found.

    Attributes:
        conversations: Conversations that were played.
        runs: Messages of users that were put to the agent.
        unplayed: Messages of users behind a question that stopped their conversation.
        calls: Calls that came to an end.
        executed: Calls of them that were given their recorded result.
        refused: Calls of them that were not run: denied, declined, blocked or invalid.
        asked: Questions to a person.
        approved: Questions that were answered with yes.
        declined: Questions that were answered with no.
        stopped: Questions that were left open, each the end of its conversation.
        denied_messages: Messages a rule refused at input.
        denied_answers: Answers a rule refused at output.
        unanswered_messages: Messages of users behind which the recording ends.
        unanswered_results: Results of tools behind which the recording ends.
        rows: How many rows the ledger has of these runs, by rule, moment and outcome.
        divergences: Where the recording is no longer true, in order.
    """

    conversations: int
    runs: int
    unplayed: int
    calls: int
    executed: int
    refused: int
    asked: int
    approved: int
    declined: int
    stopped: int
    denied_messages: int
    denied_answers: int
    unanswered_messages: int
    unanswered_results: int
    rows: Mapping[RowKey, int]
    divergences: tuple[Divergence, ...]

    @property
    def unanswered(self) -> int:
        """Messages and results behind which the recording ends."""
        return self.unanswered_messages + self.unanswered_results

"""Plays recorded conversations through the governed loop: each is a session, each message of a user a run.

The recorded replies follow whatever the rules decide, since no model is there to answer otherwise; where a
rule refused something, the report marks that the recording is no longer what would have happened.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, get_args

from footprint_core.act import ActOptions
from footprint_core.agent import Agent
from footprint_core.errors import BuilderError, MessageDeniedError, ProviderError
from footprint_core.holding import hold, release
from footprint_core.ledger import Ledger
from footprint_core.pause.person import PersonDecision, check_in_approved, check_in_declined
from footprint_core.pause.results import is_ask_pause
from footprint_core.watch import Watcher
from footprint_observe.backtest.calls import CallWatch
from footprint_observe.backtest.recorded import RecordedModel, RecordingEndedError, recorded_tools
from footprint_observe.backtest.report import BacktestReport, Divergence, What
from footprint_observe.backtest.rules import Rules, check_rules, options_of
from footprint_observe.backtest.tally import Tally
from footprint_observe.backtest.transcript import Transcript
from footprint_observe.backtest.turns import RecordedTurn

Answering: TypeAlias = Literal["approve", "decline", "stop"]
"""What happens when a rule asks a person: yes, no, or the conversation ends there."""

_BY = "backtest"


async def run_backtest(
    transcripts: Iterable[Transcript],
    rules: Rules,
    *,
    ledger: Ledger,
    answer: Answering = "approve",
    watch: Sequence[Watcher] = (),
) -> BacktestReport:
    """Play conversations, one after another, under the rules.

    Args:
        transcripts: The conversations.
        rules: A mapping that all of them share, or a callable that makes one for each.
        ledger: Where the rows go; it stays open.
        answer: How the questions of rules are answered, by `backtest`.
        watch: Who watches; they stay open.

    Raises:
        BuilderError: The rules cannot be used, or the answer is none.
        LedgerError: The ledger did not take what had to be durable.
    """
    if answer not in get_args(Answering):
        raise BuilderError(f"A back-test has no such answer; use one of {', '.join(get_args(Answering))}.")
    check_rules(rules)
    tally = Tally()
    held = (ledger, *watch)
    # The agent of a conversation closes what nobody else holds.
    for thing in held:
        hold(thing)
    try:
        for transcript in transcripts:
            await _Playing(transcript, options_of(rules), ledger, answer, watch, tally).play()
    finally:
        for thing in held:
            release(thing)
    return tally.report()


class _Playing:
    """One conversation while it is played."""

    def __init__(
        self,
        transcript: Transcript,
        options: ActOptions,
        ledger: Ledger,
        answer: Answering,
        watch: Sequence[Watcher],
        tally: Tally,
    ) -> None:
        self._transcript = transcript
        self._ledger = ledger
        self._person = _person(answer)
        self._tally = tally
        self._model = RecordedModel()
        self._agent = (
            # A recording ends by itself, so no budget may end it before.
            Agent.create(provider=self._model, model="recorded", name="backtest", max_iterations=sys.maxsize)
            .system(transcript.system)
            .tool(*recorded_tools(transcript, self._model))
            .act(**options)
            .ledger(ledger)
            .watch(*watch, CallWatch(tally.count, self._diverge))
            .build()
        )
        self._session = self._agent.session(conversation_id=transcript.id)
        self._finished = False

    async def play(self) -> None:
        """Play every turn, unless a question that stays open ends the conversation."""
        self._tally.count("conversations")
        turns = self._transcript.turns
        async with self._agent:
            for number, turn in enumerate(turns, 1):
                self._tally.count("runs")
                goes_on = await self._turn(turn)
                if self._session.last_run_id is not None:
                    self._tally.rows(self._ledger.decisions(self._session.last_run_id))
                if not goes_on:
                    self._tally.count("unplayed", len(turns) - number)
                    return

    async def _turn(self, turn: RecordedTurn) -> bool:
        """Play a turn; whether the conversation goes on."""
        self._model.begin(turn)
        say = self._session.follow_up if self._finished else self._session.run
        try:
            outcome = await say(turn.text)
            while is_ask_pause(outcome):
                if self._person is None:
                    self._tally.count("stopped")
                    self._diverge("stopped", call_id=outcome.tool_call_id, rule=outcome.middleware)
                    return False
                self._tally.count(self._person["decision"])
                outcome = await self._session.resume(outcome.checkpoint, self._person)
        except MessageDeniedError as denied:
            at_input = denied.phase == "input"
            self._tally.count("denied_messages" if at_input else "denied_answers")
            self._diverge("message-denied" if at_input else "answer-denied", rule=denied.middleware)
        except ProviderError as error:
            ended = error.__cause__
            if not isinstance(ended, RecordingEndedError):
                raise
            self._tally.count("unanswered_results" if ended.behind == "result" else "unanswered_messages")
        else:
            self._finished = True
        return True

    def _diverge(self, what: What, *, call_id: str | None = None, rule: str | None) -> None:
        self._tally.diverged(
            Divergence(
                conversation_id=self._transcript.id,
                line=self._transcript.line,
                what=what,
                call_id=call_id,
                rule=rule,
            )
        )


def _person(answer: Answering) -> PersonDecision | None:
    match answer:
        case "approve":
            return check_in_approved(by=_BY)
        case "decline":
            return check_in_declined(by=_BY)
        case "stop":
            return None

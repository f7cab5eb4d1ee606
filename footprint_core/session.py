"""A conversation over a frozen agent: one turn at a time, from a message to an answer or a question."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeAlias, cast, overload

from footprint_core import plain
from footprint_core.cancellation import arrive
from footprint_core.errors import (
    BuilderError,
    NoConversationError,
    OutputSchemaError,
    PendingQuestionError,
    ReentrantCallError,
    RunInFlightError,
    RunTakenOverError,
    StaleDecisionError,
)
from footprint_core.facts import RunConfigured
from footprint_core.loop.check_input import check_identity, check_message, refuse_running_loop
from footprint_core.loop.conclude import Concluded, conclude, released
from footprint_core.loop.kept_conversation import kept_conversation
from footprint_core.loop.pause import Origin
from footprint_core.loop.resume import resume_run
from footprint_core.loop.run import run_message
from footprint_core.loop.segment import configured, new_turn, run_segment
from footprint_core.loop.show_pause import show_pause
from footprint_core.loop.turn import Ending, PausedRun, Turn
from footprint_core.messages import Messages
from footprint_core.pause.person import NOTHING
from footprint_core.pause.results import Answer, Outcome, Pause
from footprint_core.plain import Json
from footprint_core.spec import AgentSpec
from footprint_core.state import RunState
from footprint_core.watch import being_told


class Session:
    """An independent conversation over an agent's description, ledger and watchers.

    Attributes:
        conversation_id: What the application calls the conversation, or None.
        last_run_id: The run of the last turn that began, also when it failed.
    """

    def __init__(
        self, spec: AgentSpec, *, after: str | None = None, conversation_id: str | None = None
    ) -> None:
        self._spec = spec
        self._ended: RunState | None = None
        self._turn_index = 0
        self._follows: str | None = None
        self._pending: Pause | None = None
        self._busy = False
        if conversation_id is not None and not isinstance(cast("object", conversation_id), str):
            raise BuilderError("session(conversation_id=...) takes a text; write the id as one.")
        self.conversation_id: str | None = plain.detach(conversation_id)
        self.last_run_id: str | None = None
        if after is not None:
            self._go_on_behind(after)

    async def run(self, message: str, *, identity: Json = None) -> Outcome:
        """Begin a new conversation with a message.

        Args:
            message: What the user says.
            identity: Who the user is, as JSON; rules and tools are shown it.

        Returns:
            The answer, or a question to a person.

        Raises:
            InvalidRunInputError: The message is empty, blank or no string, or JSON cannot hold the identity.
            MessageDeniedError: A rule refused the message or the answer.
            PolicyHaltError: A permission checker ended the run.
            ProviderError: The model provider raised.
            LedgerError: The ledger did not take what had to be durable.
            PendingQuestionError: A question to a person is open.
            RunInFlightError: The session is running a turn.
        """
        work = self._alone(self._first(message, identity))
        # A refused message must not be found in a frame of the traceback.
        del message
        return released(await work)

    async def follow_up(self, message: str, *, identity: Json = None) -> Outcome:
        """Go on with the conversation of the last finished turn. As `run`.

        Raises:
            NoConversationError: No turn was finished before.
        """
        work = self._alone(self._next(message, identity))
        del message
        return released(await work)

    def run_sync(self, message: str, *, identity: Json = None) -> Outcome:
        """`run`, for programs without an event loop; plain tools run in the calling thread.

        Raises:
            RunError: There is a running event loop; await `run` there.
        """
        start = self.starting_sync(message, identity=identity)
        del message
        return start()

    def starting_sync(self, message: str, *, identity: Json = None) -> Callable[[], Outcome]:
        """A turn for `run_sync` that is begun by calling what is returned."""
        refuse_running_loop()
        work = self._alone(self._first(message, identity, door="run_sync", inline=True))
        return lambda: released(asyncio.run(work))

    async def run_typed(self, message: str, *, identity: Json = None) -> Outcome:
        """`run`, for an answer that must match the declared schema: `Answer.value` is it.

        Raises:
            OutputSchemaError: The answer does not match; it is on record.
        """
        work = self._alone(self._first(message, identity, door="run_typed"))
        del message
        outcome = released(await work)
        if isinstance(outcome, Answer) and outcome.schema_stage is not None:
            unmet = OutputSchemaError(stage=outcome.schema_stage)
            # A turn begins with its first segment, and one that was paused is finished by `resume`.
            unmet.run_id, unmet.segment = outcome.run_id, 1
            raise unmet
        return outcome

    @overload
    async def resume(
        self, checkpoint: Mapping[str, Json], answer: object = NOTHING, *, rewalk: bool = False
    ) -> Outcome: ...

    @overload
    async def resume(self, *, pause_id: str, answer: object = NOTHING, rewalk: bool = False) -> Outcome: ...

    async def resume(
        self,
        checkpoint: Mapping[str, Json] | None = None,
        answer: object = NOTHING,
        *,
        pause_id: str | None = None,
        rewalk: bool = False,
    ) -> Outcome:
        """Answer the question of a pause and go on, here or in another process than paused it.

        Args:
            checkpoint: What the pause gave, also after a round trip through JSON.
            pause_id: Its id instead, where the agent's ledger keeps the bodies of pauses: a `MemoryLedger`,
                or a `SqliteLedger` with keys.
            answer: `check_in_approved(by=...)` or `check_in_declined(by=...)`; for a tool that asked while
                it ran, any JSON value.
            rewalk: Ask permission and every rule again, on an agent whose rules changed. The approval
                counts only if the rule that asked asks again about the same args.

        Raises:
            ForeignCheckpointError: It is no checkpoint of this agent, or it was edited.
            DecisionRequiredError: The answer is no decision; the pause stays answerable.
            PauseAnswerRequiredError: A tool waits for an answer; the pause stays answerable.
            StaleDecisionError: The pause was answered before.
            UnknownPauseError: The ledger has no pause of that id, or keeps no body of it.
            KeyRingError: The ledger's keys do not open the body.
            LedgerError: The ledger did not take what had to be durable.
        """
        return await self.resuming(checkpoint, pause_id, answer, rewalk=rewalk)

    async def resuming(
        self,
        checkpoint: Mapping[str, Json] | None,
        pause_id: str | None,
        answer: object,
        *,
        rewalk: bool,
    ) -> Outcome:
        """`resume`, of which exactly one of the first two is given."""
        begin = partial(self._resume, checkpoint, pause_id, answer, rewalk=rewalk)
        return released(await self._alone(begin, resuming=True))

    async def recover(self, run_id: str) -> Outcome:
        """Go on with a run whose process died, from what the ledger holds.

        Replies of the model, results of tools and answers of people are those on record. A tool that may have
        run is not run again, and the model is told so, unless it is `idempotent`. A rule on whose decision
        nothing had acted is asked again. The conversation is this session's from then on. A run that another
        process still runs is taken from it: its next step there fails.

        Args:
            run_id: The run; `footprint doctor` lists those without an end.

        Returns:
            The answer, or a question to a person.

        Raises:
            RecoverError: The run is not in this ledger, over, paused or given up, or the agent's rules or
                tools are not those it was going on with.
            MessageLostError: Redaction or erasure took a value that is needed.
            NoConversationError: The ledger lacks a run before it in its conversation.
            RunTakenOverError: Another process goes on with it.
            RunError, LedgerError: As `run`.
        """
        return released(await self._alone(partial(self._recover, run_id)))

    def abandon_pause(self) -> Pause | None:
        """Drop the question that is open, so that the next turn can start; what was dropped, or None.

        Its checkpoint can still be resumed.
        """
        dropped, self._pending = self._pending, None
        return dropped

    def forget(self, run_id: str) -> None:
        """Drop the question that is open, if it is of a run that was given up."""
        if self._pending is not None and self._pending.run_id == run_id:
            self._pending = None

    def _first(self, message: str, identity: Json, *, door: str = "run", inline: bool = False) -> _Begin:
        check_message(message, door)
        check_identity(identity, door)
        origin = Origin(conversation_id=self.conversation_id, follows=None, before=Messages())
        return partial(self._begin, message, identity, origin, RunState(), turn_index=0, inline=inline)

    def _next(self, message: str, identity: Json) -> _Begin:
        check_message(message, "follow_up")
        check_identity(identity, "follow_up")
        ended, turn_index = self._ended, self._turn_index + 1
        if ended is None:
            return _nothing_to_follow
        origin = Origin(conversation_id=self.conversation_id, follows=self._follows, before=ended.messages)
        state = RunState.following(ended)
        return partial(self._begin, message, identity, origin, state, turn_index=turn_index, inline=False)

    async def _alone(self, begin: _Begin, *, resuming: bool = False) -> Concluded:
        if being_told():
            raise ReentrantCallError("A watcher called the agent it watches; start the turn outside of it.")
        if self._busy:
            raise RunInFlightError("This session is running a turn; await it, or use agent.session().")
        if self._pending is not None and not resuming:
            raise PendingQuestionError(
                tool_name=self._pending.tool_name, tool_call_id=self._pending.tool_call_id
            )
        self._busy = True
        try:
            await arrive()
            return await begin()
        finally:
            self._busy = False

    async def _begin(
        self, message: str, identity: Json, origin: Origin, state: RunState, *, turn_index: int, inline: bool
    ) -> Concluded:
        turn = self._turn(state, self._spec.new_id(), 1, 0, plain.detach(identity), inline=inline)
        opening = configured(turn, origin, turn_index=turn_index)
        steps = partial(run_message, text=message, turn_index=turn_index)
        return await self._play(turn, opening, steps, origin)

    def _turn(
        self,
        state: RunState,
        run_id: str,
        segment: int,
        position: int,
        identity: Json,
        *,
        inline: bool = False,
    ) -> Turn:
        self.last_run_id = run_id
        return new_turn(self._spec, state, run_id, segment, position, identity, inline=inline)

    async def _play(
        self, turn: Turn, opening: RunConfigured, steps: Callable[[Turn], Awaitable[Ending]], origin: Origin
    ) -> Concluded:
        try:
            ending = await run_segment(turn, opening, steps, origin=origin)
        finally:
            # Also when a cancellation waited for the commit: the answer, or the pause, is on record then.
            if turn.answered:
                self._ended = turn.state
                self._turn_index = turn.state.turn_index
                self._follows = turn.writer.run_id
            rows = (*origin.rows, *turn.writer.decisions())
            if turn.paused is not None:
                self._pending = show_pause(turn.paused, turn.writer.run_id, rows)
        if isinstance(ending, PausedRun):
            # The one that is open here, so that `abandon_pause` hands back what the caller has.
            return cast("Pause", self._pending)
        return conclude(turn, ending, rows)

    async def _resume(
        self, data: Mapping[str, Json] | None, pause_id: str | None, answer: object, *, rewalk: bool
    ) -> Concluded:
        # pydantic is loaded by the first resume of a process, not by the import of the package.
        from footprint_core.loop.reopen import answering, held, meant, origin_of, place, reopen, taken

        spec = self._spec
        try:
            data = await meant(spec, data, pause_id)
            restored = await reopen(spec, data, answer, rewalk=rewalk)
        except StaleDecisionError:
            # Answered elsewhere: it is no longer open here either.
            self._answered(pause_id if data is None else data.get("pause_id"))
            raise
        checkpoint, pending = restored.checkpoint, self._pending
        if pending is not None and pending.pause_id != checkpoint.pause_id:
            raise PendingQuestionError(tool_name=pending.tool_name, tool_call_id=pending.tool_call_id)
        at = await place(spec, restored)
        turn = self._turn(restored.state, checkpoint.run_id, at.segment + 1, at.position, checkpoint.identity)
        turn.held, turn.taken = held(restored, rewalk=rewalk), taken(restored)
        origin = origin_of(restored, at.rows)
        opening = configured(turn, origin, turn_index=restored.state.turn_index, resumed_from=restored.trace)
        steps = partial(resume_run, answering=answering(restored, rewalk=rewalk))
        try:
            return await self._play(turn, opening, steps, origin)
        except RunTakenOverError as error:
            if turn.stage not in _UNANSWERED:
                raise
            # Two processes answered at once; this one lost before it acted.
            stale = StaleDecisionError(
                "The pause was answered by another process meanwhile; look at its run."
            )
            stale.run_id, stale.segment = error.run_id, error.segment
            self._answered(checkpoint.pause_id)
            raise stale from None
        finally:
            # Only an answer that is on record makes the run this session's.
            if turn.stage not in _UNANSWERED:
                self._answered(checkpoint.pause_id)
                if pending is None:
                    self._adopt(checkpoint.run_id, origin, restored.state.turn_index)

    async def _recover(self, run_id: str) -> Concluded:
        # Loaded by the first recovery of a process, not by the import of the package.
        from footprint_core.loop.recover import recover_run
        from footprint_core.loop.take_over import left_behind, take_over

        left = await left_behind(self._spec, run_id)
        position = await take_over(self._spec, left)
        turn = self._turn(left.state, run_id, left.at.segment + 1, position, left.identity)
        turn_index, origin = left.state.turn_index, left.origin
        opening = configured(turn, origin, turn_index=turn_index, resumed_from=left.at.trace)
        try:
            return await self._play(turn, opening, partial(recover_run, found=left.standing), origin)
        finally:
            if turn.stage != "start":
                self._adopt(run_id, origin, turn_index)

    def _go_on_behind(self, run_id: str) -> None:
        if not isinstance(cast("object", run_id), str):
            raise BuilderError("session(after=...) takes the id of a run as a text; pass its run_id.")
        run_id = plain.detach(run_id)
        kept = kept_conversation(self._spec.ledger, self._spec.agent_id, run_id)
        self._ended, self._turn_index, self._follows = kept.ended, kept.ended.turn_index, run_id
        if self.conversation_id is None:
            self.conversation_id = kept.conversation_id

    def _adopt(self, run_id: str, origin: Origin, turn_index: int) -> None:
        """Go on with the conversation of a run that began in another session."""
        self.conversation_id = origin.conversation_id
        if self._follows != run_id:
            # The turn came to no answer: the conversation is the one before it, if there was one.
            first = turn_index == 0
            self._ended = None if first else RunState(origin.before)
            self._turn_index = 0 if first else turn_index - 1
            self._follows = origin.follows

    def _answered(self, pause_id: object) -> None:
        if self._pending is not None and self._pending.pause_id == pause_id:
            self._pending = None


_UNANSWERED = frozenset({"start", "resume"})
"""The stages of a resumed segment at which its answer is not on record yet."""

_Begin: TypeAlias = Callable[[], Awaitable[Concluded]]


async def _nothing_to_follow() -> Concluded:
    """Refused only where nothing else holds back a turn: one that is going, or a question that is open."""
    raise NoConversationError("There is no finished turn to follow up on; call run() first.")

"""A conversation over a frozen agent: one turn at a time, from a message to an answer or a question."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, assert_never, cast

from footprint_core import plain
from footprint_core.cancellation import arrive
from footprint_core.commit import Writer
from footprint_core.decisions import Decision
from footprint_core.errors import (
    BuilderError,
    InvalidRunInputError,
    MessageDeniedError,
    NoConversationError,
    OutputSchemaError,
    PendingQuestionError,
    PolicyHaltError,
    ReentrantCallError,
    RunError,
    RunInFlightError,
    RunTakenOverError,
    StaleDecisionError,
)
from footprint_core.facts import RunConfigured
from footprint_core.loop.kept_conversation import kept_conversation
from footprint_core.loop.pause import Origin
from footprint_core.loop.resume import resume_run
from footprint_core.loop.run import run_message
from footprint_core.loop.segment import configured, run_segment
from footprint_core.loop.show_pause import show_pause
from footprint_core.loop.turn import Answered, DeniedMessage, Ending, Halted, PausedRun, Turn
from footprint_core.messages import Messages
from footprint_core.pause.person import NOTHING
from footprint_core.pause.results import Answer, Outcome, Pause
from footprint_core.plain import Json
from footprint_core.spec import AgentSpec
from footprint_core.state import RunState
from footprint_core.watch import being_told

if TYPE_CHECKING:
    from footprint_core.pause.restore import Restored


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
        return _released(await work)

    async def follow_up(self, message: str, *, identity: Json = None) -> Outcome:
        """Go on with the conversation of the last finished turn. As `run`.

        Raises:
            NoConversationError: No turn was finished before.
        """
        work = self._alone(self._next(message, identity))
        del message
        return _released(await work)

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
        _refuse_running_loop()
        work = self._alone(self._first(message, identity, door="run_sync", inline=True))
        return lambda: _released(asyncio.run(work))

    async def run_typed(self, message: str, *, identity: Json = None) -> Outcome:
        """`run`, for an answer that must match the declared schema: `Answer.value` is it.

        Raises:
            OutputSchemaError: The answer does not match; it is on record.
        """
        work = self._alone(self._first(message, identity, door="run_typed"))
        del message
        outcome = _released(await work)
        if isinstance(outcome, Answer) and outcome.schema_stage is not None:
            unmet = OutputSchemaError(stage=outcome.schema_stage)
            # A turn begins with its first segment, and one that was paused is finished by `resume`.
            unmet.run_id, unmet.segment = outcome.run_id, 1
            raise unmet
        return outcome

    async def resume(
        self, checkpoint: Mapping[str, Json], answer: object = NOTHING, *, rewalk: bool = False
    ) -> Outcome:
        """Answer the question of a pause and go on, here or in another process than paused it.

        Args:
            checkpoint: What the pause gave, also after a round trip through JSON.
            answer: `check_in_approved(by=...)` or `check_in_declined(by=...)`; for a tool that asked while
                it ran, any JSON value.
            rewalk: Ask permission and every rule again, on an agent whose rules changed. The approval
                counts only if the rule that asked asks again about the same args.

        Raises:
            ForeignCheckpointError: It is no checkpoint of this agent, or it was edited.
            DecisionRequiredError: The answer is no decision; the pause stays answerable.
            PauseAnswerRequiredError: A tool waits for an answer; the pause stays answerable.
            StaleDecisionError: The pause was answered before.
            LedgerError: The ledger did not take what had to be durable.
        """
        begin = partial(self._resume, checkpoint, answer, rewalk=rewalk)
        return _released(await self._alone(begin, resuming=True))

    def abandon_pause(self) -> Pause | None:
        """Drop the question that is open, so that the next turn can start; what was dropped, or None.

        Its checkpoint can still be resumed.
        """
        dropped, self._pending = self._pending, None
        return dropped

    def _first(self, message: str, identity: Json, *, door: str = "run", inline: bool = False) -> _Begin:
        _check_message(message, door)
        _check_identity(identity, door)
        origin = Origin(conversation_id=self.conversation_id, follows=None, before=Messages())
        return partial(self._begin, message, identity, origin, RunState(), turn_index=0, inline=inline)

    def _next(self, message: str, identity: Json) -> _Begin:
        _check_message(message, "follow_up")
        _check_identity(identity, "follow_up")
        ended, turn_index = self._ended, self._turn_index + 1
        if ended is None:
            return _nothing_to_follow
        origin = Origin(conversation_id=self.conversation_id, follows=self._follows, before=ended.messages)
        state = RunState.following(ended)
        return partial(self._begin, message, identity, origin, state, turn_index=turn_index, inline=False)

    async def _alone(self, begin: _Begin, *, resuming: bool = False) -> _Concluded:
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
    ) -> _Concluded:
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
        spec = self._spec
        audience = spec.bus.audience()
        self.last_run_id = run_id
        writer = Writer(
            ledger=spec.ledger,
            audience=audience,
            state=state,
            clock=spec.clock(),
            run_id=run_id,
            segment=segment,
            position=position,
        )
        return Turn(
            spec=spec,
            state=state,
            writer=writer,
            audience=audience,
            identity=identity,
            inline=inline,
        )

    async def _play(
        self, turn: Turn, opening: RunConfigured, steps: Callable[[Turn], Awaitable[Ending]], origin: Origin
    ) -> _Concluded:
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
        writer = turn.writer
        match ending:
            case Answered():
                return _answer(turn, ending.text, rows)
            case DeniedMessage():
                denied = MessageDeniedError(reason=ending.reason, phase=ending.phase, middleware=ending.rule)
                denied.run_id, denied.segment = writer.run_id, writer.segment
                return denied
            case Halted():
                halted = PolicyHaltError(
                    reason=ending.reason,
                    iteration=ending.iteration,
                    proposed={"name": ending.tool_name, "args": ending.proposed},
                    tool_call_id=ending.call_id,
                    checker_id=ending.checker,
                )
                halted.run_id, halted.segment = writer.run_id, writer.segment
                return halted
            case PausedRun():
                # The one that is open here, so that `abandon_pause` hands back what the caller has.
                return cast("Pause", self._pending)
            case _:
                assert_never(ending)

    async def _resume(self, data: Mapping[str, Json], answer: object, *, rewalk: bool) -> _Concluded:
        # pydantic is loaded by the first resume of a process, not by the import of the package.
        from footprint_core.loop.reopen import answering, held, origin_of, place, reopen, taken

        spec = self._spec
        try:
            restored = await reopen(spec, data, answer, rewalk=rewalk)
        except StaleDecisionError:
            # Answered elsewhere: it is no longer open here either.
            self._answered(data.get("pause_id"))
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
                    self._adopt(restored)

    def _go_on_behind(self, run_id: str) -> None:
        if not isinstance(cast("object", run_id), str):
            raise BuilderError("session(after=...) takes the id of a run as a text; pass its run_id.")
        run_id = plain.detach(run_id)
        kept = kept_conversation(self._spec.ledger, self._spec.agent_id, run_id)
        self._ended, self._turn_index, self._follows = kept.ended, kept.ended.turn_index, run_id
        if self.conversation_id is None:
            self.conversation_id = kept.conversation_id

    def _adopt(self, restored: Restored) -> None:
        """Go on with the conversation of a run that was paused in another session."""
        self.conversation_id = restored.checkpoint.conversation_id
        if self._follows != restored.checkpoint.run_id:
            # The turn came to no answer: the conversation is the one before it, if there was one.
            first = restored.state.turn_index == 0
            self._ended = None if first else RunState(restored.before)
            self._turn_index = 0 if first else restored.state.turn_index - 1
            self._follows = restored.checkpoint.follows

    def _answered(self, pause_id: object) -> None:
        if self._pending is not None and self._pending.pause_id == pause_id:
            self._pending = None


_UNANSWERED = frozenset({"start", "resume"})
"""The stages of a resumed segment at which its answer is not on record yet."""

_Concluded: TypeAlias = Answer | Pause | MessageDeniedError | PolicyHaltError
_Begin: TypeAlias = Callable[[], Awaitable[_Concluded]]


def _released(concluded: _Concluded) -> Outcome:
    if isinstance(concluded, MessageDeniedError | PolicyHaltError):
        raise concluded
    return concluded


async def _nothing_to_follow() -> _Concluded:
    """Refused only where nothing else holds back a turn: one that is going, or a question that is open."""
    raise NoConversationError("There is no finished turn to follow up on; call run() first.")


def _check_message(message: object, door: str) -> None:
    if not isinstance(message, str):
        raise InvalidRunInputError(f"{door}() takes a message as text, not {type(message).__name__}.")
    if not message.strip():
        raise InvalidRunInputError(f"{door}() got an empty message; give it text.")


def _check_identity(identity: Json, door: str) -> None:
    lost = None if identity is None else plain.lost_at(identity)
    if lost is not None:
        # Two people whose identities JSON cannot hold would look the same to a rule.
        path, kind = lost
        raise InvalidRunInputError(
            f"{door}() takes an identity as JSON data, and at {path} stands a {kind}; give plain values."
        )


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RunError("run_sync() was called inside a running event loop; await run() there.")


def _answer(turn: Turn, text: str, rows: tuple[Decision, ...]) -> Answer:
    judged = turn.judged
    return Answer(
        text=text,
        run_id=turn.writer.run_id,
        decisions=rows,
        stopped_early=turn.stopped_early,
        schema_met=None if judged is None else judged.stage is None,
        schema_stage=None if judged is None else judged.stage,
        value=None if judged is None else judged.value,
    )

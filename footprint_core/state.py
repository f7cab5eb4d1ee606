"""The fold: what a run is, after the facts it has noted. Nothing else changes a run's state.

Everything a request needs is a counter or a shared view, so that no step costs more as history grows.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from footprint_core import facts as fa
from footprint_core import plain
from footprint_core.facts.window import likeness
from footprint_core.messages import AssistantMessage, Message, Messages, ToolCall, ToolMessage, UserMessage
from footprint_core.plain import Json

# Most facts change nothing, and the arms of `apply` are tried one after another.
_SILENT = frozenset({fa.CallTaken, fa.Decided, fa.ToolIntended, fa.IterationEnded, fa.PermissionChecked})


class RunState:
    """A run, folded.

    Attributes:
        messages: The conversation as the model would be sent it now.
        message_chars: Characters in it.
        turns: Turns of the window in it: user and assistant messages.
        gained: Messages that came since the last model call.
        turn_index: 0 for `run`, one more for each follow-up.
        iteration: Model calls of this turn so far.
        calls: The calls of the last reply.
        answered: How many of them are answered.
        candidate: The text that would be the answer.
        results: What tools gave that are not answered yet, as plain JSON, by call.
        input_tokens: Tokens read by all model calls of the run.
        output_tokens: Tokens written by them.
        last_input_tokens: Tokens the last model call read; None when it was not reported.
        last_output_tokens: Tokens it wrote; None when it was not reported.
        wrapped_up: Whether the budget's closing instruction was given.
        attempts: How often an answer was judged by the output schema.
        asked: Whether a model call was made.
        held_visits: Window visits in a row that removed nothing because of a pinned result.
        last_visit: The iteration of the last window visit that was filed in full, and its likeness.
        refused_spans: First and stop index of messages whose summary was not smaller than they are.
    """

    __slots__ = (
        "answered",
        "asked",
        "attempts",
        "calls",
        "candidate",
        "gained",
        "held_visits",
        "input_tokens",
        "iteration",
        "last_input_tokens",
        "last_output_tokens",
        "last_visit",
        "message_chars",
        "messages",
        "output_tokens",
        "refused_spans",
        "results",
        "turn_index",
        "turns",
        "wrapped_up",
    )

    def __init__(self, messages: Messages | None = None) -> None:
        self.messages = Messages() if messages is None else messages
        self.message_chars = sum(len(message.text) for message in self.messages)
        self.turns = sum(not isinstance(message, ToolMessage) for message in self.messages)
        self.gained = len(self.messages)
        self.turn_index = 0
        self.iteration = 0
        self.calls: tuple[ToolCall, ...] = ()
        self.answered = 0
        self.candidate = ""
        self.results: dict[str, Json] = {}
        self.input_tokens = 0
        self.output_tokens = 0
        self.last_input_tokens: int | None = None
        self.last_output_tokens: int | None = None
        self.wrapped_up = False
        self.attempts = 0
        self.asked = False
        self.held_visits = 0
        self.last_visit: tuple[int, str] | None = None
        self.refused_spans: set[tuple[int, int]] = set()

    @classmethod
    def following(cls, ended: RunState) -> RunState:
        """The state at the beginning of the next turn of a conversation; nothing in it is counted anew."""
        state = cls()
        state.messages = ended.messages
        state.message_chars = ended.message_chars
        state.turns = ended.turns
        state.gained = len(ended.messages)
        return state

    def apply(self, fact: fa.Fact) -> None:
        """Fold one fact in."""
        if type(fact) in _SILENT:
            return
        match fact:
            case fa.ModelAsked():
                self.iteration = fact.iteration
                self.gained = 0
                self.asked = True
            case fa.ModelReplied():
                self._replied(fact)
            case fa.ToolFinished():
                self.results[fact.call_id] = fact.result
            case fa.CallAnswered():
                result = self.results.pop(fact.call_id, None)
                text = plain.rendered(result) if fact.text is msgspec.UNSET else fact.text
                message = ToolMessage(
                    call_id=fact.call_id, tool_name=fact.tool_name, text=text, refused=fact.refused
                )
                self._add(message)
                self.answered += 1
            case fa.MessageTaken():
                self.turn_index = fact.turn_index
                if fact.text is not msgspec.UNSET:
                    self._add(UserMessage(text=fact.text))
            case fa.WindowVisited():
                self._visited(fact)
            case fa.BudgetExhausted():
                if fact.action == "wrapped-up":
                    self.wrapped_up = True
                    self._add(UserMessage(text=fact.instruction, kind="instruction"))
            case fa.OutputJudged():
                self._judged(fact)
            case fa.SegmentEnded():
                if fact.outcome == "answered":
                    self._add(AssistantMessage(text=fact.text))
            case (
                fa.RunConfigured()
                | fa.ModelFailed()
                | fa.CallTaken()
                | fa.Decided()
                | fa.PermissionChecked()
                | fa.CheckInAsked()
                | fa.CheckInAnswered()
                | fa.CredentialRequested()
                | fa.CredentialAcquired()
                | fa.CredentialFailed()
                | fa.ToolIntended()
                | fa.ToolPaused()
                | fa.PauseOpened()
                | fa.PauseAnswered()
                | fa.PauseClosed()
                | fa.IterationEnded()
                | fa.RouteTaken()
                | fa.RunRecovered()
                | fa.RunAbandoned()
            ):
                pass
            case _:
                assert_never(fact)

    def _add(self, message: Message) -> None:
        self.messages = self.messages.plus(message)
        self.message_chars += len(message.text)
        self.gained += 1
        if not isinstance(message, ToolMessage):
            self.turns += 1

    def _replied(self, fact: fa.ModelReplied) -> None:
        if fact.usage is None:
            self.last_input_tokens = self.last_output_tokens = None
        else:
            self.input_tokens += fact.usage.input
            self.output_tokens += fact.usage.output
            self.last_input_tokens = fact.usage.input
            self.last_output_tokens = fact.usage.output
        self.candidate = fact.text
        if fact.route == "tool-calls":
            self.calls = fact.calls
            self.answered = 0
            self._add(AssistantMessage(text=fact.text, calls=fact.calls))
        else:
            self.calls = ()

    def _visited(self, fact: fa.WindowVisited) -> None:
        # A visit that differs in nothing from the one before was held when that one was.
        held = self.held_visits > 0
        if fact.same_as is None:
            self.last_visit = (fact.iteration, likeness(fact))
            held = not fact.removed and any(r.reason == "last-tool-result" for r in fact.refusals)
        self.held_visits = self.held_visits + 1 if held else 0
        if fact.refused_span is not None:
            self.refused_spans.add(fact.refused_span)
        if fact.removed:
            self._trim(fact)

    def _judged(self, fact: fa.OutputJudged) -> None:
        self.attempts = fact.attempt
        if fact.outcome == "retried":
            self._add(AssistantMessage(text=fact.text))
            self._add(UserMessage(text=fact.correction, kind="instruction"))

    def _trim(self, fact: fa.WindowVisited) -> None:
        # The indices of what is left are others now.
        self.refused_spans = set()
        gone = frozenset(fact.removed)
        kept: list[Message] = []
        for index, message in enumerate(self.messages):
            if index not in gone:
                kept.append(message)
            if index == fact.notice_after and fact.notice is not msgspec.UNSET:
                kept.append(UserMessage(text=fact.notice, kind="notice"))
            if index == fact.notice_after and fact.summary is not msgspec.UNSET:
                kept.append(UserMessage(text=fact.summary, kind="summary"))
        gained = self.gained
        self.messages = Messages(kept)
        self.message_chars = sum(len(message.text) for message in kept)
        self.turns = sum(not isinstance(message, ToolMessage) for message in kept)
        self.gained = gained

    def to_plain(self) -> dict[str, Json]:
        """The state as plain JSON, for a checkpoint."""
        out: dict[str, Json] = {name: getattr(self, name) for name in self.__slots__}
        out["messages"] = msgspec.to_builtins(self.messages[:])
        out["calls"] = msgspec.to_builtins(self.calls)
        out["last_visit"] = None if self.last_visit is None else list(self.last_visit)
        out["refused_spans"] = [list(span) for span in sorted(self.refused_spans)]
        return out

    @classmethod
    def from_plain(cls, data: dict[str, Json]) -> RunState:
        """The state a checkpoint holds.

        Raises:
            msgspec.ValidationError: It is not of the right shape.
        """
        held = msgspec.convert(data, type=_Held)
        state = cls()
        for name in cls.__slots__:
            setattr(state, name, getattr(held, name))
        state.messages = Messages(held.messages)
        return state


class _Held(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The shape of a state in a checkpoint."""

    messages: tuple[UserMessage | AssistantMessage | ToolMessage, ...]
    message_chars: int
    turns: int
    gained: int
    turn_index: int
    iteration: int
    calls: tuple[ToolCall, ...]
    answered: int
    candidate: str
    results: dict[str, Json]
    input_tokens: int
    output_tokens: int
    last_input_tokens: int | None
    wrapped_up: bool
    attempts: int
    asked: bool
    held_visits: int
    last_output_tokens: int | None = None
    last_visit: tuple[int, str] | None = None
    refused_spans: set[tuple[int, int]] = set()

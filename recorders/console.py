"""Prints a line for each thing worth seeing in a run: facts, as events tell them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar, TextIO, TypeAlias, assert_type, get_args

from rich.console import Console as RichConsole
from rich.text import Text

from footprint_core.events import (
    AgentConfigured,
    ArgsInvalid,
    BudgetPressure,
    BudgetSpent,
    CheckInDecided,
    CheckInRequested,
    ContextEvicted,
    ContextInjected,
    CredentialAcquired,
    CredentialFailed,
    CredentialRequested,
    DecisionFiled,
    Event,
    FatalError,
    IterationFinished,
    IterationStarted,
    ModelCallEnded,
    ModelCallStarted,
    ObserverError,
    OutputRetried,
    OutputUnmet,
    PauseRequested,
    PauseResumed,
    PermissionAnswered,
    PermissionHalted,
    RouteDecided,
    SlotComposed,
    TokenStreamed,
    ToolCallEnded,
    ToolCallStarted,
    ToolsOffered,
    TurnEnded,
    TurnStarted,
)
from footprint_observe.recording.handover import Handover
from footprint_observe.recording.names import Names
from footprint_observe.recording.opened import Opened

_BATCH = 64
_QUEUE = 4096
_RUN_CHARS = 6
_COLOURS = {
    **dict.fromkeys(("allow", "gate_open", "approved", "answered"), "green"),
    **dict.fromkeys(("ask", "paused", "check-in", "human"), "yellow"),
    **dict.fromkeys(("deny", "denied", "declined", "halt", "halted", "failed", "invalid", "unmet"), "red"),
}

_Silent: TypeAlias = (
    # What the line of a neighbour tells.
    CheckInRequested
    | CheckInDecided
    | PermissionHalted
    | CredentialRequested
    | ToolCallStarted
    | ModelCallStarted
    | TurnStarted
    | RouteDecided
    # What happens in every turn, or many times in one.
    | TokenStreamed
    | IterationStarted
    | IterationFinished
    | ContextInjected
    | SlotComposed
    | ToolsOffered
)


class _Terminal(RichConsole):
    def on_broken_pipe(self) -> None:
        """Fail like any print; rich would point the standard output of the program at nothing."""
        raise BrokenPipeError


class Console(Opened):
    """A watcher that prints a line for each decision, check, call, reply, pause, start and end.

    Lines are printed from a thread, so a terminal that stands still stops no run; lines that no longer fit
    are lost, and counted. `with Console() as console:` keeps it open for every agent inside.

    Args:
        file: Where to print; without one, standard error. Colours appear only on a terminal.
        id: The watcher's id.
    """

    ignores: ClassVar[frozenset[type[Event]]] = frozenset(get_args(_Silent))
    """The events that have no line."""

    def __init__(self, *, file: TextIO | None = None, id: str = "console") -> None:
        self._id = id
        self._rich = _Terminal(file=file, stderr=file is None, highlight=False, soft_wrap=True)
        self._names = Names()
        self._last: tuple[str, int] | None = None
        self._handover: Handover[Event] = Handover(self._print, id=id, batch=_BATCH, bound=_QUEUE, delay=0.0)

    @property
    def id(self) -> str:
        """The watcher's id."""
        return self._id

    @property
    def dropped(self) -> int:
        """How many events could not be printed."""
        return self._handover.dropped

    @property
    def queued(self) -> int:
        """How many events wait to be printed."""
        return self._handover.queued

    @property
    def errors(self) -> int:
        """How often printing failed."""
        return self._handover.errors

    @property
    def notices(self) -> tuple[str, ...]:
        """What whoever runs the agent should know about this recorder."""
        said = self._handover.notices
        return (*said, f"{lost} lines could not be printed.") if (lost := self.dropped) else said

    def on_event(self, event: Event, /) -> None:
        """Take one event."""
        if type(event) not in self.ignores:
            self._handover.put(self._names.shown(event))

    def flush(self, timeout: float, /) -> bool:
        """Print what is queued, within `timeout` seconds; False when something is left, or was lost."""
        return self._handover.flush(timeout)

    def close(self, timeout: float, /) -> None:
        """Print what is queued and end the thread, within `timeout` seconds."""
        self._handover.close(timeout)

    def _print(self, events: list[Event]) -> bool:
        lines: list[Text] = []
        for event in events:
            position = (event.run_id, event.sequence)
            if isinstance(event, ContextEvicted) and position == self._last:
                # Many messages leave the window together, with an event each.
                continue
            self._last = position
            if (told := line(event)) is not None:
                lines.append(told)
        if lines:
            # Together, since printing costs several times as much as making a line.
            self._rich.print(Text("\n").join(lines))
        return True


def line(event: Event) -> Text | None:
    """The line about an event: the time of day in UTC, the end of the run's id, and what happened.

    None for one that is not worth a line.
    """
    if (told := _told(event)) is None:
        return None
    what, verdict, rest = told
    at = datetime.fromtimestamp(event.time // 1_000_000, UTC)
    millis = event.time // 1000 % 1000
    out = Text(f"{at:%H:%M:%S}.{millis:03d} {_visible(event.run_id[-_RUN_CHARS:])} ", style="dim")
    out.append(f"{what:<12} ", style="bold")
    out.append(_visible(verdict), style=_COLOURS.get(verdict, ""))
    words = _visible(" ".join(word for word in rest if word))
    return out.append(f" {words}" if words else "")


_Told: TypeAlias = tuple[str, str, tuple[str, ...]]


def _told(event: Event) -> _Told | None:
    """What a line says: a heading, one word, and the rest. First what every run has."""
    match event:
        case AgentConfigured():
            begun = "resumed" if event.resumed else "started"
            return "run", begun, (event.agent_name, f"model {event.model}")
        case DecisionFiled():
            return event.moment, event.outcome, _decision(event)
        case ModelCallEnded():
            return "model", event.stop_reason or "failed", _reply(event)
        case ToolCallEnded():
            return "tool", event.status, _call(event)
        case TurnEnded():
            calls = _many(event.iteration_count, "model call")
            tokens = f"{event.total_input_tokens} tokens in, {event.total_output_tokens} out"
            return "run", event.outcome, (f"{calls}, {tokens}, {_seconds(event.duration)}",)
        case _:
            return _told_of_people(event)


_OfPeople: TypeAlias = (
    PauseRequested | PauseResumed | PermissionAnswered | CredentialAcquired | CredentialFailed
)
_OfTrouble: TypeAlias = (
    ArgsInvalid
    | BudgetPressure
    | ContextEvicted
    | OutputRetried
    | OutputUnmet
    | BudgetSpent
    | FatalError
    | ObserverError
)


def _told_of_people(event: _OfPeople | _OfTrouble | _Silent) -> _Told | None:
    """Who was asked, what was permitted, which credential was given."""
    match event:
        case PauseRequested():
            by = f"by {event.middleware}" if event.middleware else ""
            return "pause", event.kind, (event.tool_name, event.tool_call_id, by)
        case PauseResumed():
            waited = f"after {_seconds(event.paused)}"
            return "resume", event.answer, (event.tool_name, event.tool_call_id, waited)
        case PermissionAnswered():
            rule = f"({event.policy_rule_id})" if event.policy_rule_id else ""
            return "permission", event.result, (event.target, event.tool_call_id, f"by {event.checker}", rule)
        case CredentialAcquired():
            return "credential", "acquired", (event.service, event.tool_call_id, f"({event.kind})")
        case CredentialFailed():
            return "credential", "failed", (event.service, event.tool_call_id, event.error_class or "")
        case _:
            return _told_of_trouble(event)


def _told_of_trouble(event: _OfTrouble | _Silent) -> _Told | None:
    """What did not fit, did not match, or went wrong."""
    match event:
        case ArgsInvalid():
            return "arguments", "invalid", (event.tool_name, event.tool_call_id, _many(event.issues, "issue"))
        case BudgetPressure():
            figures = f"{event.projected} of {event.cap} {event.unit}"
            return "window", "pressure", (event.slot, figures, f"({event.plan_action})")
        case ContextEvicted():
            return "window", "evicted", (event.slot, f"({event.reason})")
        case OutputRetried():
            left = f"{event.retries_remaining} left"
            return "schema", "retry", (f"attempt {event.attempt},", f"{left},", event.stage)
        case OutputUnmet():
            by = f"by {event.broken_by}" if event.broken_by else ""
            return "schema", "unmet", (_many(event.attempts, "attempt"), event.stage, by)
        case BudgetSpent():
            pending = _many(event.pending_tool_calls, "call")
            return "budget", event.action, (event.reason, str(event.limit), f"{pending} pending")
        case FatalError():
            return "error", event.error_class, (f"at {event.stage}",)
        case ObserverError():
            return "watcher", event.error_class, (event.watcher, f"on {event.event}")
        case _:
            # An event that is new has neither an arm nor a place in the list, and does not type-check here.
            assert_type(event, _Silent)
            return None


def _decision(event: DecisionFiled) -> tuple[str, ...]:
    redacted = sum(event.redactions.values()) if event.redactions else 0
    return (
        event.middleware,
        f"on {event.tool_name}" if event.tool_name else "",
        event.tool_call_id or "",
        "changed" if event.changed else "",
        "" if event.answer == "given" else f"({event.answer})",
        event.error_class or "",
        "(shadow)" if event.shadow else "",
        f"{_many(redacted, 'field')} redacted" if redacted else "",
    )


def _reply(event: ModelCallEnded) -> tuple[str, ...]:
    usage = "" if event.usage is None else f"{event.usage.input} tokens in, {event.usage.output} out,"
    calls = f"{_many(event.tool_call_count, 'call')}," if event.tool_call_count else ""
    return (event.error_class or "", f"iteration {event.iteration},", calls, usage, _seconds(event.duration))


def _call(event: ToolCallEnded) -> tuple[str, ...]:
    return (
        event.tool_name,
        event.tool_call_id,
        f"by {event.decided_by_rule}" if event.decided_by_rule else "",
        event.error_class or "",
        "" if event.duration is None else _seconds(event.duration),
    )


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _seconds(duration: float) -> str:
    return f"{duration:.3f} s"


def _visible(text: str) -> str:
    # A name may come from a provider or a server; an escape sequence in it would steer the terminal.
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)

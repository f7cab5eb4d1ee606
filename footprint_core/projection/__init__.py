"""What watchers are told of a fact: exhaustive, one arm a fact, and never a value.

A fact added to the union without an arm here fails type checking, by name. Silent facts are written out.
"""

from __future__ import annotations

from typing import assert_never

from footprint_core import events as ev
from footprint_core import facts as fa
from footprint_core.ledger import Entry, Marks
from footprint_core.projection import calls, gates, models, segments
from footprint_core.projection.composition import composed, window_visited
from footprint_core.projection.place import NONE, Kinds


def events_for(
    entry: Entry, *, run_id: str, segment: int, marks: Marks = (), unwanted: Kinds = NONE
) -> tuple[ev.Event, ...]:
    """The events of a fact, in the order they are delivered; `unwanted` ones of every call are left out."""
    at = (run_id, segment, entry.position, entry.time)
    fact = entry.fact
    match fact:
        # Those of every call come first: an arm costs one look at each before it.
        case fa.Decided():
            # What another ledger filed was told when it was filed.
            return () if fact.imported is not None else (gates.decided(fact, at, marks),)
        case fa.ToolIntended() | fa.ToolFinished():
            return ()
        case fa.ModelAsked():
            return composed(fact, at, unwanted)
        case fa.ModelReplied():
            return models.replied(fact, at, unwanted)
        case fa.CallTaken():
            return (calls.call_taken(fact, at),)
        case fa.CallAnswered():
            return calls.answered(fact, at)
        case fa.IterationEnded():
            return () if ev.IterationFinished in unwanted else (segments.iteration_ended(fact, at),)
        case fa.RunConfigured():
            return (segments.configured(fact, at),)
        case fa.MessageTaken():
            return (segments.turn_started(fact, at),)
        case fa.WindowVisited():
            return window_visited(fact, at)
        case fa.ModelFailed():
            return (models.model_failed(fact, at),)
        case fa.PermissionChecked():
            return gates.permission(fact, at)
        case fa.CheckInAsked():
            return (gates.check_in_asked(fact, at),)
        case fa.CheckInAnswered():
            return (gates.check_in_answered(fact, at),)
        case fa.CredentialRequested():
            return (gates.credential_requested(fact, at),)
        case fa.CredentialAcquired():
            return (gates.credential_acquired(fact, at),)
        case fa.CredentialFailed():
            return (gates.credential_failed(fact, at),)
        case fa.PauseOpened():
            return () if fact.imported else (calls.pause_opened(fact, at),)
        case fa.PauseAnswered():
            return (calls.pause_answered(fact, at),)
        case fa.RouteTaken():
            return (segments.route_taken(fact, at),)
        case fa.OutputJudged():
            return segments.output_judged(fact, at)
        case fa.BudgetExhausted():
            return (segments.budget_exhausted(fact, at),)
        case fa.SegmentEnded():
            return segments.ended(fact, at)
        case fa.ToolPaused() | fa.PauseClosed() | fa.RunRecovered() | fa.RunAbandoned():
            return ()
        case _:
            assert_never(fact)

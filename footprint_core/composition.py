"""What watchers are told of a request: what left the window, and the slots the model is shown."""

from __future__ import annotations

from typing import TypeAlias

from footprint_core import events as ev
from footprint_core import facts as fa

At: TypeAlias = tuple[str, int, int, int]
"""Where an event comes from: run id, segment, position, and time in microseconds."""


def evicted(fact: fa.WindowVisited, at: At) -> tuple[ev.Event, ...]:
    """One event per message that left."""
    one = ev.ContextEvicted(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        slot="messages",
        reason="budget",
        iteration=fact.iteration,
    )
    return (one,) * fact.removed_messages


def composed(fact: fa.ModelAsked, at: At) -> tuple[ev.Event, ...]:
    """The slots in order, then the tools that are offered, then the call itself."""
    run_id, segment, sequence, time = at
    iteration, count = fact.iteration, len(fact.tools)
    out: list[ev.Event] = []
    slots: tuple[tuple[ev.Slot, int, int, int], ...] = (
        (
            "system-prompt",
            int(fact.system_chars > 0),
            int(fact.first and fact.system_chars > 0),
            fact.system_chars,
        ),
        ("messages", fact.messages, fact.new_messages, fact.message_chars),
        ("tools", count, count if fact.first else 0, fact.tool_chars),
    )
    for slot, pieces, gained, chars in slots:
        if gained > 0:
            out.append(
                ev.ContextInjected(
                    run_id=run_id,
                    segment=segment,
                    sequence=sequence,
                    time=time,
                    slot=slot,
                    pieces=gained,
                    iteration=iteration,
                )
            )
        out.append(
            ev.SlotComposed(
                run_id=run_id,
                segment=segment,
                sequence=sequence,
                time=time,
                slot=slot,
                iteration=iteration,
                pieces=pieces,
                chars=chars,
            )
        )
    out.append(
        ev.ToolsOffered(
            run_id=run_id,
            segment=segment,
            sequence=sequence,
            time=time,
            iteration=iteration,
            offered=fact.tools,
            count=count,
        )
    )
    out.append(
        ev.IterationStarted(run_id=run_id, segment=segment, sequence=sequence, time=time, iteration=iteration)
    )
    out.append(
        ev.ModelCallStarted(
            run_id=run_id,
            segment=segment,
            sequence=sequence,
            time=time,
            iteration=iteration,
            provider=fact.provider,
            model=fact.model,
            server=fact.server,
            messages_count=fact.messages,
            tools_count=count,
        )
    )
    return tuple(out)

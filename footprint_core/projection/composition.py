"""What watchers are told of a request: what left the window, and the slots the model is shown."""

from __future__ import annotations

from footprint_core import events as ev
from footprint_core import facts as fa
from footprint_core.projection.place import NONE, At, Kinds


def window_visited(fact: fa.WindowVisited, at: At) -> tuple[ev.Event, ...]:
    """One event per message that left, then the pressure that made it."""
    one = ev.ContextEvicted(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        slot="messages",
        reason="budget",
        iteration=fact.iteration,
    )
    left = (one,) * fact.removed_messages
    if (pressure := fact.pressure) is None:
        return left
    pressed = ev.BudgetPressure(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        slot="messages",
        unit="tokens",
        cap=pressure.cap,
        projected=pressure.projected,
        overflow_by=pressure.projected - pressure.cap,
        plan_action=pressure.action,
        iteration=fact.iteration,
    )
    return (*left, pressed)


def composed(fact: fa.ModelAsked, at: At, unwanted: Kinds = NONE) -> tuple[ev.Event, ...]:
    """The slots in order, then the tools that are offered, then the call itself."""
    run_id, segment, sequence, time = at
    told: list[ev.Event] = []
    if ev.SlotComposed not in unwanted or ev.ContextInjected not in unwanted:
        told += _slots(fact, at)
    if ev.ToolsOffered not in unwanted:
        offered = ev.ToolsOffered(
            run_id=run_id,
            segment=segment,
            sequence=sequence,
            time=time,
            iteration=fact.iteration,
            offered=fact.tools,
            count=len(fact.tools),
        )
        told.append(offered)
    if ev.IterationStarted not in unwanted:
        started = ev.IterationStarted(
            run_id=run_id, segment=segment, sequence=sequence, time=time, iteration=fact.iteration
        )
        told.append(started)
    called = ev.ModelCallStarted(
        run_id=run_id,
        segment=segment,
        sequence=sequence,
        time=time,
        iteration=fact.iteration,
        provider=fact.provider,
        model=fact.model,
        server=fact.server,
        messages_count=fact.messages,
        tools_count=len(fact.tools),
    )
    return (*told, called)


def _slots(fact: fa.ModelAsked, at: At) -> list[ev.Event]:
    """For each slot what it gained since the last call, when it gained something, and how it stands."""
    run_id, segment, sequence, time = at
    system, tools = int(fact.system_chars > 0), len(fact.tools)
    slots: tuple[tuple[ev.Slot, int, int, int], ...] = (
        ("system-prompt", system, system if fact.first else 0, fact.system_chars),
        ("messages", fact.messages, fact.new_messages, fact.message_chars),
        ("tools", tools, tools if fact.first else 0, fact.tool_chars),
    )
    out: list[ev.Event] = []
    for slot, pieces, gained, chars in slots:
        if gained > 0:
            injected = ev.ContextInjected(
                run_id=run_id,
                segment=segment,
                sequence=sequence,
                time=time,
                slot=slot,
                pieces=gained,
                iteration=fact.iteration,
            )
            out.append(injected)
        stands = ev.SlotComposed(
            run_id=run_id,
            segment=segment,
            sequence=sequence,
            time=time,
            slot=slot,
            iteration=fact.iteration,
            pieces=pieces,
            chars=chars,
        )
        out.append(stands)
    return out

"""The model is called. Nothing can change its reply before it is recorded."""

from __future__ import annotations

import asyncio
import re
from typing import get_args

import msgspec

from footprint_core import plain
from footprint_core.errors import ProviderError
from footprint_core.events import TokenStreamed
from footprint_core.facts import ModelAsked, ModelFailed, ModelReplied, Route, StopReason
from footprint_core.loop.turn import Turn
from footprint_core.messages import ToolCall, harmless_id
from footprint_core.pause.signal import PauseSignal
from footprint_core.providers.port import Completed, ModelRequest, Whole, whole

_STOPS: tuple[object, ...] = get_args(StopReason)


async def call_model(turn: Turn, iteration: int, *, offer_tools: bool) -> ModelReplied:
    """Ask the model; everything noted before is durable before the request goes out.

    Args:
        turn: The segment.
        iteration: Which call of the turn it is, from 1.
        offer_tools: Whether the model is told of the tools.

    Raises:
        ProviderError: The provider raised, or ended without a reply.
    """
    spec, state = turn.spec, turn.state
    turn.stage = "model"
    turn.writer.note(_asked(turn, iteration, offer_tools=offer_tools))
    await turn.writer.commit()
    if turn.writer.cancellation.asked:
        await turn.writer.cancellation.heed()
    request = ModelRequest(
        system=spec.system,
        messages=state.messages,
        tools=spec.offers.tools if offer_tools else (),
        model=spec.model,
    )
    began = turn.writer.now()
    try:
        completed, first_chunk = await _read(turn, request, iteration, began)
    except (Exception, PauseSignal, asyncio.CancelledError) as error:
        kind = type(error).__name__
        turn.writer.note(_failed(iteration, kind, turn.writer.now() - began))
        if isinstance(error, asyncio.CancelledError) and turn.writer.cancellation.here:
            raise
        raise ProviderError(provider=spec.provider.name, error_class=kind) from error
    ended = turn.writer.now()
    stopped = plain.detach(completed.stop_reason)
    replied = ModelReplied(
        iteration=iteration,
        call_count=len(completed.tool_calls),
        # A provider may hand on a word of its own, and watchers are told it.
        stop_reason=stopped if stopped in _STOPS else "other",
        duration_us=ended - began,
        route=_route(turn, completed, iteration),
        usage=completed.usage,
        response_id=None if completed.response_id is None else _name(completed.response_id),
        response_model=None if completed.response_model is None else _name(completed.response_model),
        first_chunk_us=first_chunk,
        text=plain.detach(completed.text),
        calls=_usable(completed.tool_calls, iteration),
    )
    turn.writer.note(replied, at=ended)
    return replied


def _name(given: str) -> str | None:
    """A name a provider gave, as watchers may be told it: only one in which no sentence fits."""
    # The provider's own object, of whatever class, would go into rows and events.
    name: str = plain.detach(given)
    return name if _NAME.fullmatch(name) else None


_NAME = re.compile(r"[A-Za-z0-9_.:/@+-]{1,200}")


def _asked(turn: Turn, iteration: int, *, offer_tools: bool) -> ModelAsked:
    spec, state = turn.spec, turn.state
    return ModelAsked(
        iteration=iteration,
        provider=spec.provider.name,
        model=spec.model,
        server=getattr(spec.provider, "server", None),
        messages=len(state.messages),
        message_chars=state.message_chars,
        new_messages=state.gained,
        system_chars=len(spec.system),
        tools=spec.offers.names if offer_tools else (),
        tool_chars=spec.offers.chars if offer_tools else 0,
        first=not state.asked,
    )


def _failed(iteration: int, kind: str, took: int) -> ModelFailed:
    return ModelFailed(iteration=iteration, error_class=kind, duration_us=took)


async def _read(
    turn: Turn, request: ModelRequest, iteration: int, began: int
) -> tuple[Completed, int | None]:
    """The reply, and the microseconds until its first chunk; chunks are counted as they arrive."""
    completed: Completed | None = None
    first_chunk: int | None = None
    chunks = 0
    writer, audience = turn.writer, turn.audience
    with audience.enclose("model", writer.run_id, writer.segment, iteration):
        reply = turn.spec.provider.reply(request)
        if type(reply) is Whole:
            # It is there already, and has no chunks.
            return whole(reply.take(), "provider"), None
        async for piece in reply:
            if isinstance(piece, Completed):
                completed = piece
                continue
            if first_chunk is None:
                first_chunk = writer.now() - began
            if audience.listening and TokenStreamed not in audience.unwanted:
                writer.signal(
                    TokenStreamed(
                        run_id=writer.run_id,
                        segment=writer.segment,
                        sequence=writer.position,
                        time=writer.now(),
                        iteration=iteration,
                        token_index=chunks,
                        chars=len(piece.text),
                    )
                )
            chunks += 1
    return whole(completed, "provider"), first_chunk


def _route(turn: Turn, completed: Completed, iteration: int) -> Route | None:
    """The calls alone decide: a stop reason that contradicts them is ignored.

    Where a schema judges the answer, the route is known behind it.
    """
    final: Route | None = "final" if turn.spec.shape is None else None
    if not completed.tool_calls:
        return final
    if iteration < turn.spec.max_iterations:
        return "tool-calls"
    return "wrap-up" if turn.spec.wrap_up and not turn.state.wrapped_up else final


def _usable(calls: tuple[ToolCall, ...], iteration: int) -> tuple[ToolCall, ...]:
    """The calls, each under an id that is harmless and unique in its reply.

    A model repeats ids, and can hide content in them.
    """
    calls = tuple(map(_written, calls))
    if len(calls) == 1 and harmless_id(calls[0].id):
        return calls
    seen: set[str] = set()
    usable: list[ToolCall] = []
    for index, call in enumerate(calls):
        harmless = harmless_id(call.id)
        if harmless and call.id not in seen:
            seen.add(call.id)
            usable.append(call)
            continue
        fresh = f"call-{iteration}-{index + 1}"
        while fresh in seen or any(fresh == other.id for other in calls):
            fresh += "x"
        seen.add(fresh)
        usable.append(msgspec.structs.replace(call, id=fresh, repeats=call.id if harmless else None))
    return tuple(usable)


def _written(call: ToolCall) -> ToolCall:
    """The call with texts that can be written: a lone surrogate could not, nor a text of another class."""
    id, name, args_json = map(plain.detach, (call.id, call.name, call.args_json))
    if id is call.id and name is call.name and args_json is call.args_json:
        return call
    return msgspec.structs.replace(call, id=id, name=name, args_json=args_json)

"""An agent, built through the builder's doors in the order a scenario names them."""

from __future__ import annotations

from typing import Any, assert_never

import msgspec
from msgspec import UNSET

from conformance.permission import SuiteChecker
from conformance.scenario import Budget, Sliding, Summarize, Window, Wiring
from conformance.schema import SuiteSchema
from conformance.values import Json
from conformance.world import World
from footprint_core import (
    Agent,
    AgentBuilder,
    WindowStrategy,
    sliding_window,
    static_credentials,
    summarize_oldest,
    token_budget,
)

_BUCKETS = {"input": "input", "beforeTool": "before_tool", "afterTool": "after_tool", "output": "output"}


def build_agent(world: World) -> Agent:
    """The agent of a scenario; called again, another agent of the same description.

    Raises:
        BuilderError: The description is refused.
    """
    spec = world.scenario.agent
    builder = Agent.create(
        provider=world.model,
        model="scripted-model",
        name="conformance",
        max_iterations=spec.max_iterations,
        wrap_up=spec.wrap_up_at_max_iterations,
        keep_last_tool_results=spec.keep_last_tool_results,
    )
    builder.ledger(world.ledger).watch(world.recording).tool(*world.tools)
    if spec.system is not None:
        builder.system(spec.system)
    if spec.permission is not None:
        builder.permission(SuiteChecker(spec.permission))
    if spec.credentials is not None:
        builder.credentials(static_credentials(spec.credentials))
    if spec.output_schema is not None:
        builder.output_schema(SuiteSchema(spec.output_schema), retries=spec.output_schema.retries)
    for place, step in enumerate(spec.wiring):
        _wire(builder, step, world, place)
    return builder.build()


def _wire(builder: AgentBuilder, step: Wiring, world: World, place: int) -> None:
    if step.act is not None:
        under = {key: _under(key, given, world, place) for key, given in step.act.items()}
        builder.act(**{_BUCKETS.get(key, key): given for key, given in under.items()})
    if step.message is not None:
        builder.message_middleware(*map(world.rule, step.message))
    if step.tool is not None:
        builder.tool_middleware(*map(world.rule, step.tool))
    if step.window is not None:
        builder.window(_strategy(step.window, world, place))
    if step.watch is not None:
        builder.watch(*(world.observers[key] for key in step.watch))


def _under(key: str, given: Json, world: World, place: int) -> Any:
    """What stands under a key of `act`; what is no list of rules and no window goes as it is."""
    if key in _BUCKETS and isinstance(given, list):
        return [world.rule(name) for name in given]
    if key != "window":
        return given
    try:
        window = msgspec.convert(given, Window)
    except msgspec.ValidationError:
        return given
    return _strategy(window, world, place)


def _strategy(window: Window, world: World, place: int) -> WindowStrategy:
    match window:
        case Sliding():
            return sliding_window(keep_recent_turns=window.keep_recent_turns)
        case Budget():
            return token_budget(threshold_tokens=window.threshold_tokens, **_kept(window))
        case Summarize():
            return summarize_oldest(
                threshold_tokens=window.threshold_tokens,
                summarizer=world.summarizer(place, window),
                model="summarizer-model",
                **_kept(window),
            )
        case _:
            assert_never(window)


def _kept(window: Budget | Summarize) -> dict[str, Json]:
    turns = window.keep_recent_turns
    return {} if turns is UNSET else {"keep_recent_turns": turns}

"""The frozen description of an agent: what every session and every segment of it works from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import assert_never

import msgspec

from footprint_core import plain
from footprint_core.chain.links import Chains, Link
from footprint_core.clock import AnchoredClock, Clock, new_id
from footprint_core.credentials import CredentialProvider
from footprint_core.facts import RuleRef
from footprint_core.ledger import Ledger
from footprint_core.moments import LOOP_MOMENTS, LoopMoment
from footprint_core.output_schema import Shape
from footprint_core.permission import NamedChecker
from footprint_core.providers.port import Provider, ToolOffer
from footprint_core.tools.tool import Tool
from footprint_core.watch import Bus
from footprint_core.window.strategy import WindowStrategy


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    """The tools as a model is told of them; counted once, since they never change.

    Attributes:
        tools: What goes into a request.
        names: Their names, in order.
        chars: Characters of their names, descriptions and schemas.
    """

    tools: tuple[ToolOffer, ...]
    names: tuple[str, ...]
    chars: int


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An agent.

    Attributes:
        agent_id: What tells it from other agents.
        name: What people call it.
        provider: The model provider.
        model: The model.
        system: The system prompt, or empty.
        tools: Its tools, by name, in order.
        chains: Its rules.
        window: Its window strategy, or None.
        ledger: Where its facts go.
        bus: Who watches.
        offers: Its tools, as the model is told of them.
        rules: Its posture: the rules of each moment in the order they are asked.
        max_iterations: Model calls one turn may make.
        wrap_up: Whether a turn whose budget ended is closed by one more call without tools.
        permission: Who decides whether a call may be made at all, or None.
        credentials: Who gives the secrets tools need, or None.
        shape: The schema an answer must match, or None.
        parallel_tools: Whether the bodies of one reply's calls run at the same time.
        checkpoint_key: Signs checkpoints, or None.
        keep_last_tool_results: How many tools' latest results the window keeps; 0 keeps none.
        clock: Makes the clock of a segment.
        new_id: Makes ids.
    """

    agent_id: str
    name: str
    provider: Provider
    model: str
    system: str
    tools: Mapping[str, Tool]
    chains: Chains
    window: WindowStrategy | None
    ledger: Ledger
    bus: Bus
    offers: Offers
    rules: Mapping[LoopMoment, tuple[RuleRef, ...]]
    max_iterations: int = 10
    wrap_up: bool = True
    permission: NamedChecker | None = None
    credentials: CredentialProvider | None = None
    shape: Shape | None = None
    parallel_tools: bool = False
    checkpoint_key: bytes | None = None
    keep_last_tool_results: int = 2
    clock: Callable[[], Clock] = AnchoredClock
    new_id: Callable[[], str] = new_id

    def rule_names(self) -> dict[LoopMoment, tuple[str, ...]]:
        """The names of the rules of each moment, in order."""
        return {moment: tuple(ref.name for ref in refs) for moment, refs in self.rules.items()}


def offers(tools: Iterable[Tool]) -> Offers:
    """The tools as a model is told of them."""
    offered = tuple(ToolOffer(name=t.name, description=t.description, schema=t.schema) for t in tools)
    chars = sum(len(t.name) + len(t.description) + len(plain.encode(t.schema)) for t in offered)
    return Offers(tools=offered, names=tuple(t.name for t in offered), chars=chars)


def posture(chains: Chains, window: WindowStrategy | None) -> dict[LoopMoment, tuple[RuleRef, ...]]:
    """The posture: the rules of each moment in the order they are asked."""
    return {moment: _standing(moment, chains, window) for moment in LOOP_MOMENTS}


def _standing(moment: LoopMoment, chains: Chains, window: WindowStrategy | None) -> tuple[RuleRef, ...]:
    match moment:
        case "input" | "output":
            return _refs(chains.contents)
        case "before-tool":
            return _refs(chains.calls)
        case "after-tool":
            return _refs(chains.results)
        case "window":
            return () if window is None else (RuleRef(name=window.name),)
        case _:
            assert_never(moment)


def _refs(links: tuple[Link, ...]) -> tuple[RuleRef, ...]:
    return tuple(RuleRef(name=link.name, version=link.version) for link in links)

"""The frozen description of an agent: what every session and every segment of it works from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from footprint_core import plain
from footprint_core.chain.links import Chains, Link
from footprint_core.clock import AnchoredClock, Clock, new_id
from footprint_core.facts import RuleRef
from footprint_core.ledger import Ledger
from footprint_core.moments import LoopMoment
from footprint_core.providers.port import Provider, ToolOffer
from footprint_core.tools.tool import Tool
from footprint_core.watch import Bus
from footprint_core.window.strategy import WindowStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """The tools as a model is told of them; counted once, since they never change.

    Attributes:
        tools: What goes into a request.
        names: Their names, in order.
        chars: Characters of their names, descriptions and schemas.
    """

    tools: tuple[ToolOffer, ...]
    names: tuple[str, ...]
    chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
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
        max_iterations: Model calls one turn may make.
        wrap_up: Whether a turn whose budget ended is closed by one more call without tools.
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
    max_iterations: int = 10
    wrap_up: bool = True
    keep_last_tool_results: int = 2
    clock: Callable[[], Clock] = AnchoredClock
    new_id: Callable[[], str] = new_id
    offers: Offers = field(init=False)
    rules: Mapping[LoopMoment, tuple[RuleRef, ...]] = field(init=False)

    def __post_init__(self) -> None:
        tools = tuple(
            ToolOffer(name=tool.name, description=tool.description, schema=tool.schema)
            for tool in self.tools.values()
        )
        chars = sum(len(t.name) + len(t.description) + len(plain.encode(t.schema)) for t in tools)
        names = tuple(tool.name for tool in tools)
        object.__setattr__(self, "offers", Offers(tools=tools, names=names, chars=chars))
        object.__setattr__(self, "rules", _rules(self.chains, self.window))

    def rule_names(self) -> dict[LoopMoment, tuple[str, ...]]:
        """The names of the rules of each moment, in order."""
        return {moment: tuple(ref.name for ref in refs) for moment, refs in self.rules.items()}


def _rules(chains: Chains, window: WindowStrategy | None) -> dict[LoopMoment, tuple[RuleRef, ...]]:
    """The posture: the rules of each moment in the order they are asked."""
    contents = _refs(chains.contents)
    return {
        "input": contents,
        "before-tool": _refs(chains.calls),
        "after-tool": _refs(chains.results),
        "window": () if window is None else (RuleRef(name=window.name),),
        "output": contents,
    }


def _refs(links: tuple[Link, ...]) -> tuple[RuleRef, ...]:
    return tuple(RuleRef(name=link.name, version=link.version) for link in links)

"""A rule as a link of a chain: its name read once, its hooks, and where it was named."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from footprint_core import plain
from footprint_core.chain.code_version import code_version
from footprint_core.clock import is_seconds
from footprint_core.errors import BuilderError
from footprint_core.middleware import Phase

Hook: TypeAlias = Callable[[Any], object | Awaitable[object]]
"""A rule's hook. What it returns is not trusted: `judge` looks at it."""

Rule: TypeAlias = object
"""A rule before it was looked at."""

_HOOKS = ("on_tool_call", "on_tool_result", "on_message")


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One rule in a chain.

    Attributes:
        name: The rule's name when the agent was built.
        version: The rule's version then, or a hash of its hooks' code, or None.
        rule: The object itself, so that it is attached once.
        timeout: Seconds it may take to answer, or None.
        on_tool_call: Its hook before a tool, or None.
        on_tool_result: Its hook after a tool, or None.
        on_message: Its hook for messages, or None.
        guarded: The phase at which it only passes through, since it was named for the other.
    """

    name: str
    version: str | None
    rule: Rule
    timeout: float | None = None
    on_tool_call: Hook | None = None
    on_tool_result: Hook | None = None
    on_message: Hook | None = None
    guarded: Phase | None = None


class Chains(msgspec.Struct, frozen=True, kw_only=True):
    """The chains of an agent, each in the order it is walked.

    Attributes:
        calls: Before a tool, first to last.
        results: After a tool, last to first.
        contents: At both message moments.
    """

    calls: tuple[Link, ...]
    results: tuple[Link, ...]
    contents: tuple[Link, ...]


def link(rule: Rule) -> Link:
    """A rule as a link.

    Raises:
        BuilderError: Its name is missing, blank or no string, or its timeout is no number of seconds.
    """
    if isinstance(rule, type):
        raise BuilderError(f"A rule is an object, not the class {rule.__name__}; make one of it.")
    name = getattr(rule, "name", None)
    if not isinstance(name, str) or not name.strip():
        raise BuilderError(
            f"A rule ({type(rule).__name__}) has no name; give it a non-blank `name`; its rows say it."
        )
    timeout = getattr(rule, "timeout", None)
    if timeout is not None and not is_seconds(timeout):
        raise BuilderError(
            f"The rule {name!r} has a timeout that is no number of seconds above 0; mend it or leave it out."
        )
    call, result, message = (_hook(rule, hook) for hook in _HOOKS)
    return Link(
        name=plain.detach(name),
        version=_version(rule, (call, result, message)),
        rule=rule,
        timeout=timeout,
        on_tool_call=call,
        on_tool_result=result,
        on_message=message,
    )


def _version(rule: Rule, hooks: tuple[Hook | None, ...]) -> str | None:
    version = getattr(rule, "version", None)
    if version is None:
        return code_version(dict(zip(_HOOKS, hooks, strict=True)))
    stated: str = plain.detach(str(version))
    return stated


def _hook(rule: Rule, name: str) -> Hook | None:
    hook = getattr(rule, name, None)
    return hook if callable(hook) else None


def unique(links: Iterable[Link], chain: str) -> tuple[Link, ...]:
    """The links of one chain, every rule and every name once.

    Raises:
        BuilderError: A rule or a name occurs twice.
    """
    seen: dict[str, Link] = {}
    rules: set[int] = set()
    for one in links:
        # Also by the object: its name was read once for each time it was given, and may have changed since.
        if one.name in seen or id(one.rule) in rules:
            again = "twice" if id(one.rule) in rules else "by two rules"
            raise BuilderError(
                f"The name {one.name!r} is used {again} in the {chain} chain; name each rule once."
            )
        seen[one.name] = one
        rules.add(id(one.rule))
    return tuple(seen.values())


def chains(tools: Iterable[Link], contents: Iterable[Link]) -> Chains:
    """The chains of two lists of links, each rule where it has a hook."""
    tool_links = unique(tools, "tool")
    return Chains(
        calls=tuple(one for one in tool_links if one.on_tool_call is not None),
        results=tuple(one for one in reversed(tool_links) if one.on_tool_result is not None),
        contents=unique(contents, "message"),
    )

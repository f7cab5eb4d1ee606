"""Permission: whether a call may be made at all, decided before any rule is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol, cast, final

import msgspec

from footprint_core import plain
from footprint_core.errors import BuilderError
from footprint_core.facts import PermissionResult
from footprint_core.middleware import ToolCallContext
from footprint_core.tools.function import tool as tool_of
from footprint_core.tools.tool import Tool


@final
class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """What a checker decided about a call.

    Attributes:
        result: `allow` and `gate_open` let the call go on to the rules, `deny` answers it, `halt` ends the
            run.
        tell_model: What the model reads of a denial or a halt; a text of the product's own without it.
        rationale: Why, for the ledger; a denial without `tell_model` tells it to the model.
        reason: Why the run ended, for the ledger and the `PolicyHaltError`; never told to the model.
        policy_rule_id: The rule of the policy that decided, for events.
    """

    result: PermissionResult
    tell_model: str | None = None
    rationale: str | None = None
    reason: str | None = None
    policy_rule_id: str | None = None


class PermissionChecker(Protocol):
    """Decides whether a call may be made. Asked about every call, with the args the model sent."""

    @property
    def name(self) -> str:
        """A non-blank name; events say it."""
        ...

    def check(self, call: ToolCallContext, /) -> Permission | Awaitable[Permission]:
        """Decide; what it raises is a denial."""
        ...


class PermissionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """An allow list: the tools one role may call.

    Attributes:
        name: What events call the checker.
        role: The active role.
        allowed: The tools it may call.
    """

    name: str
    role: str
    allowed: frozenset[str]

    @classmethod
    def from_roles(
        cls, roles: Mapping[str, Iterable[str]], /, *, role: str, name: str = "policy"
    ) -> PermissionPolicy:
        """A checker that permits the tools of the active role, and no other.

        Args:
            roles: The tools of each role.
            role: The active role.
            name: What events call the checker.

        Raises:
            BuilderError: The active role is none of the roles, or its tools are no list of names.
        """
        if role not in roles:
            known = ", ".join(map(repr, roles)) or "none"
            raise BuilderError(f"There is no role {role!r}; the roles are {known}.")
        allowed = _names(roles[role])
        if allowed is None:
            raise BuilderError(f"The tools of the role {role!r} are no list of names; give one.")
        return cls(name=name, role=role, allowed=allowed)

    def permits(self, tool_name: str, /) -> bool:
        """Whether the active role may call a tool."""
        return tool_name in self.allowed

    def check(self, call: ToolCallContext, /) -> Permission:
        """Allow what the active role may call."""
        if self.permits(call.tool_name):
            return Permission(result="allow")
        return Permission(result="deny", rationale=f"the role {self.role} may not call it")


def _names(given: object) -> frozenset[str] | None:
    """The names of a list; None when it is none. One text would pass for a list of its letters."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        return None
    found: set[str] = set()
    for name in cast("Iterable[object]", given):
        if not isinstance(name, str):
            return None
        found.add(name)
    return frozenset(found)


def gated_tools(
    tools: Iterable[Tool | Callable[..., object]], permitted: Callable[[str], bool], /
) -> tuple[Tool, ...]:
    """The tools to offer: those whose name is permitted, in order.

    Offering decides what a model sees. It is no permission: give the agent a checker too.
    """
    made = (given if isinstance(given, Tool) else tool_of(given) for given in tools)
    return tuple(one for one in made if permitted(one.name) is True)


class NamedChecker(msgspec.Struct, frozen=True, kw_only=True):
    """A checker, and the name it had when the agent was described."""

    name: str
    checker: PermissionChecker


def named_checker(checker: object) -> NamedChecker:
    """A checker that can be used; its name is read once.

    Raises:
        BuilderError: It has no name or no `check`.
    """
    name = getattr(checker, "name", None)
    if isinstance(checker, type) or not isinstance(name, str) or not name.strip():
        raise BuilderError("A permission checker is an object with a non-blank `name`; give it one.")
    if not callable(getattr(checker, "check", None)):
        raise BuilderError(f"The permission checker {name!r} has no check(call) method; give it one.")
    return NamedChecker(name=plain.detach(name), checker=cast("PermissionChecker", checker))

"""Who may call a tool at all: a policy from the library, and checkers of one's own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import assert_type

from footprint_core import (
    Agent,
    AgentBuilder,
    Answer,
    Permission,
    PermissionChecker,
    PermissionPolicy,
    PolicyHaltError,
    Tool,
    ToolCallContext,
    gated_tools,
)
from footprint_core.providers import Scripted, call, reply


@dataclass(frozen=True)
class Office:
    """Every result there is."""

    name: str
    closed: bool = False

    def check(self, call: ToolCallContext) -> Permission:
        if self.closed:
            return Permission(result="halt", reason="The office is closed.")
        if call.args.get("amount", 0) > 100:
            return Permission(result="gate_open", policy_rule_id="P-1")
        if call.tool_name == "delete":
            return Permission(result="deny", tell_model="Nothing is deleted.", rationale="kept for ten years")
        return Permission(result="allow")


class Remote:
    name = "remote"

    async def check(self, call: ToolCallContext, /) -> Permission:
        await asyncio.sleep(0)
        return Permission(result="allow", policy_rule_id=f"P-{call.iteration}")


def look_up(key: str) -> str:
    """Look a key up."""
    return key


def delete(key: str) -> str:
    """Delete a key."""
    return key


policy = PermissionPolicy.from_roles({"support": ["look_up"], "admin": ["look_up", "delete"]}, role="support")
checkers: list[PermissionChecker] = [policy, Office("office"), Remote()]


async def told(checker: PermissionChecker) -> str:
    model = Scripted([reply(calls=[call("1", "delete", {"key": "k"})]), reply(text="Done.")])
    builder = Agent.create(provider=model, model="m", name="office").tool(look_up, delete)
    assert_type(builder.permission(checker), AgentBuilder)
    assert isinstance(await builder.build().run("Delete k"), Answer)
    return model.requests[1].messages[-1].text


async def ended_by(checker: PermissionChecker) -> str | None:
    try:
        await told(checker)
    except PolicyHaltError as halted:
        assert_type(halted.reason, str | None)
        return halted.checker_id
    return None


async def main() -> None:
    said = [await told(checker) for checker in checkers]
    assert said[1:] == ["Nothing is deleted.", "k"]
    assert said[0] != "k"
    assert await ended_by(Office("office", closed=True)) == "office"

    offered = gated_tools([look_up, delete], policy.permits)
    assert_type(offered, tuple[Tool, ...])
    assert [one.name for one in offered] == ["look_up"]


if __name__ == "__main__":
    asyncio.run(main())

"""Every other door of the builder; each hands the builder back."""

from __future__ import annotations

import asyncio
from typing import Any, assert_type

from footprint_core import (
    Agent,
    AgentBuilder,
    Answer,
    Decision,
    Ledger,
    MemoryLedger,
    MessageContext,
    MessageOutcome,
    Outcome,
    Session,
    ToolCallContext,
    ToolOutcome,
    allow,
    before_tool,
    on_message,
    sliding_window,
)
from footprint_core.providers import Scripted, reply


@before_tool("calls")
def calls(call: ToolCallContext) -> ToolOutcome:
    return allow()


@on_message("messages")
def messages(message: MessageContext) -> MessageOutcome:
    return allow()


async def main() -> None:
    ledger: Ledger = MemoryLedger()
    script = [reply(text="One."), reply(text="Two."), reply(text="Three.")]
    builder = Agent.create(
        provider=Scripted(script),
        model="m",
        name="doors",
        id="doors-1",
        max_iterations=3,
        wrap_up=False,
        keep_last_tool_results=0,
    )
    assert_type(builder, AgentBuilder)
    assert_type(builder.system("Be brief."), AgentBuilder)
    assert_type(builder.tool_middleware(calls), AgentBuilder)
    assert_type(builder.message_middleware(messages), AgentBuilder)
    assert_type(builder.window(sliding_window(keep_recent_turns=3)), AgentBuilder)
    assert_type(builder.ledger(ledger), AgentBuilder)
    assert_type(builder.tool(), AgentBuilder)
    assert_type(builder.build(), Agent)

    async with builder.build() as agent:
        out = await agent.run("One?", identity={"user": "u-1"})
        assert_type(out, Outcome)
        assert isinstance(out, Answer)
        assert_type(out.decisions, tuple[Decision, ...])
        row: dict[str, Any] = out.decisions[0].to_dict()
        assert row["middleware"] == "messages"
        assert ledger.decisions(out.run_id) == out.decisions
        session = agent.session(conversation_id="c-1")
        assert_type(session, Session)
        assert isinstance(await session.run("Two?"), Answer)
        assert isinstance(await session.follow_up("Three?"), Answer)
        assert_type(agent.last_run_id, str | None)


def without_a_loop() -> None:
    agent = Agent.create(provider=Scripted([reply(text="Hi.")]), model="m", name="plain").build()
    out = agent.run_sync("Hi")
    assert_type(out, Outcome)
    assert isinstance(out, Answer)


if __name__ == "__main__":
    asyncio.run(main())
    without_a_loop()

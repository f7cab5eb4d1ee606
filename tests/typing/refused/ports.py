"""Windows, providers, ledgers and tools that are not what they have to be."""

from __future__ import annotations

from collections.abc import AsyncIterator

from footprint_core import (
    Agent,
    AgentBuilder,
    Ledger,
    MemoryLedger,
    ToolOutcome,
    WindowPlan,
    WindowStrategy,
    WindowView,
    allow,
    sliding_window,
    summarize_oldest,
    token_budget,
    tool,
)
from footprint_core.providers import Chunk, Completed, ModelRequest, Provider, Scripted


class Verdict:
    """A window plans; it answers with no verb."""

    name = "verdict"

    def plan(self, view: WindowView) -> ToolOutcome:
        return allow()


class Later:
    name = "later"

    async def plan(self, view: WindowView) -> WindowPlan | None:
        return None


class Forgetful:
    def plan(self, view: WindowView) -> WindowPlan | None:
        return None


class AtOnce:
    name = "at-once"

    async def reply(self, request: ModelRequest) -> Completed:
        return Completed(text=request.system)


class Words:
    name = "words"

    async def reply(self, request: ModelRequest) -> AsyncIterator[str]:
        yield request.system


class Nameless:
    async def reply(self, request: ModelRequest) -> AsyncIterator[Chunk | Completed]:
        yield Completed(text=request.system)


class WriteOnly:
    def append_inline(self, batch: object) -> None:
        return None


# refused: mypy assignment, pyright reportAssignmentType
verdict: WindowStrategy = Verdict()
# refused: mypy assignment, pyright reportAssignmentType
later: WindowStrategy = Later()
# refused: mypy assignment, pyright reportAssignmentType
forgetful: WindowStrategy = Forgetful()
# refused: mypy assignment, pyright reportAssignmentType
at_once: Provider = AtOnce()
# refused: mypy assignment, pyright reportAssignmentType
words: Provider = Words()
# refused: mypy assignment, pyright reportAssignmentType
nameless: Provider = Nameless()
# refused: mypy assignment, pyright reportAssignmentType
write_only: Ledger = WriteOnly()


def describe(builder: AgentBuilder) -> None:
    # refused: mypy arg-type, pyright reportArgumentType
    builder.window(sliding_window)
    # refused: mypy arg-type, pyright reportArgumentType
    builder.window(None)
    # refused: mypy arg-type, pyright reportArgumentType
    builder.ledger(MemoryLedger)
    # refused: mypy arg-type, pyright reportArgumentType
    builder.ledger("decisions.db")
    # refused: mypy arg-type, pyright reportArgumentType
    builder.tool("look-up")
    # refused: mypy arg-type, pyright reportArgumentType
    builder.tool([len])
    # refused: mypy arg-type, pyright reportArgumentType
    builder.system(None)


# refused: mypy call-arg, pyright reportCallIssue
sliding_window(3)
# refused: mypy arg-type, pyright reportArgumentType
sliding_window(keep_recent_turns="3")
# refused: mypy call-arg, pyright reportCallIssue
token_budget()
# refused: mypy call-arg, pyright reportCallIssue
token_budget(1000)
# refused: mypy arg-type, pyright reportArgumentType
token_budget(threshold_tokens=1000.5)
# refused: mypy call-arg, pyright reportCallIssue
summarize_oldest(threshold_tokens=1000)
# refused: mypy arg-type, pyright reportArgumentType
summarize_oldest(threshold_tokens=1000, summarizer="small", model="small")
# refused: mypy call-overload, pyright reportArgumentType
tool(name=3)
# refused: mypy call-overload, pyright reportArgumentType
tool("look-up")
# refused: mypy call-arg, pyright reportCallIssue
Agent.create(provider=Scripted([]), model="m")
# refused: mypy arg-type, pyright reportArgumentType
Agent.create(provider=Scripted, model="m", name="n")


async def talk(agent: Agent) -> None:
    await agent.run("Hello")
    # refused: mypy arg-type, pyright reportArgumentType
    await agent.run(["Hello"])
    # refused: mypy call-arg, pyright reportCallIssue
    await agent.run("Hello", "somebody")

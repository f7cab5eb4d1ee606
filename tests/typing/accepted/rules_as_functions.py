"""Rules made of functions, plain and async, at every moment that takes rules."""

from __future__ import annotations

import asyncio

from footprint_core import (
    Agent,
    Answer,
    MessageContext,
    MessageOutcome,
    MessageRule,
    ToolCallContext,
    ToolCallRule,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    ToolResultRule,
    after_tool,
    allow,
    ask,
    before_tool,
    deny,
    on_message,
)
from footprint_core.providers import Scripted, call, reply


@before_tool("four-eyes", version="2")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    return ask("Twice?") if call.iteration > 1 else allow()


@before_tool("weekdays", timeout=2.5)
async def weekdays(call: ToolCallContext) -> ToolOutcome:
    await asyncio.sleep(0)
    return deny("Not today.") if call.identity == "nobody" else allow()


@after_tool("short")
def short(call: ToolResultContext) -> ToolResultOutcome:
    return allow(str(call.result)[:5], why="only the beginning")


@after_tool("no-failures")
async def no_failures(call: ToolResultContext) -> ToolResultOutcome:
    await asyncio.sleep(0)
    return deny("It did not work.") if call.failed else allow()


@on_message("polite")
def polite(message: MessageContext) -> MessageOutcome:
    return deny("Say please.") if "now!" in message.content else allow()


@on_message("no-names")
async def no_names(message: MessageContext) -> MessageOutcome:
    await asyncio.sleep(0)
    clean = message.content.replace("Ada", "[name]")
    return allow(clean, why="took a name out") if clean != message.content else allow()


@before_tool("said-less")
def said_less(call: ToolCallContext) -> ToolOutcome:
    """A function need not use every verb."""
    return allow()


made_call: ToolCallRule = before_tool("made")(lambda call: allow())
made_result: ToolResultRule = after_tool("made-result")(lambda call: deny("Nothing is read."))
made_message: MessageRule = on_message("made-message")(lambda message: allow("hello", why="always this"))


def read(page: int) -> str:
    """Read a page."""
    return f"page {page} of Ada"


async def main() -> None:
    script = [reply(calls=[call("1", "read", {"page": 1})]), reply(text="It is by Ada.")]
    builder = Agent.create(provider=Scripted(script), model="m", name="reader").tool(read)
    builder.act(
        input=(polite, no_names),
        before_tool=(four_eyes, weekdays, said_less, made_call),
        after_tool=(short, no_failures),
        output=(no_names,),
    )
    out = await builder.build().run("Who wrote it?")
    assert isinstance(out, Answer)
    assert out.text == "It is by [name]."


if __name__ == "__main__":
    asyncio.run(main())

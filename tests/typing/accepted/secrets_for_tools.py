"""Credentials: tools that declare a need, and providers, plain and async."""

from __future__ import annotations

import asyncio
from typing import assert_type

from footprint_core import (
    Agent,
    AgentBuilder,
    Answer,
    Credential,
    CredentialProvider,
    CredentialRequest,
    ToolContext,
    static_credentials,
    tool,
)
from footprint_core.providers import Scripted, call, reply


class Vault:
    def credential(self, request: CredentialRequest) -> Credential:
        if request.service != "mail":
            raise LookupError(request.service)
        return Credential(kind="bearer", secret=f"for {request.tool_name}")


class Exchange:
    async def credential(self, request: CredentialRequest, /) -> Credential:
        await asyncio.sleep(0)
        return Credential(kind="exchanged", secret=str(request.identity))


@tool(needs="mail")
def send(text: str, context: ToolContext) -> int:
    """Send a mail."""
    assert_type(context.credential, Credential | None)
    return 0 if context.credential is None else len(context.credential.secret) + len(text)


providers: tuple[CredentialProvider, ...] = (Vault(), Exchange(), static_credentials({"mail": "12345"}))


async def main() -> None:
    read: list[str] = []
    for provider in providers:
        model = Scripted([reply(calls=[call("1", "send", {"text": "hi"})]), reply(text="Sent.")])
        builder = Agent.create(provider=model, model="m", name="mail").tool(send)
        assert_type(builder.credentials(provider), AgentBuilder)
        assert isinstance(await builder.build().run("Send it", identity="u-1"), Answer)
        read.append(model.requests[1].messages[-1].text)
    assert read == ["10", "5", "7"]


if __name__ == "__main__":
    asyncio.run(main())

"""Rules that answer with every verb and tools that end in every way, each with a text in what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from footprint_core import (
    Tool,
    ToolContext,
    after_tool,
    allow,
    ask,
    ask_human,
    before_tool,
    deny,
    on_message,
    tool,
)


@dataclass(frozen=True, slots=True)
class Said:
    """Makes a text with the secret in it, about a place."""

    secret: str

    def __call__(self, what: str) -> str:
        return f"{self.secret} of the {what}"


_SOON = 0.002


def rules(verbs: Mapping[str, Sequence[str]], said: Said) -> dict[str, list[Any]]:
    """The rules of each moment, as `.act()` takes them."""
    makes: dict[str, Any] = {
        "input": on_message,
        "before_tool": before_tool,
        "after_tool": after_tool,
        "output": on_message,
    }
    return {
        moment: [
            makes[moment](f"{moment}-{i}", **_limit(verb))(_hook(verb, moment, said))
            for i, verb in enumerate(listed)
        ]
        for moment, listed in verbs.items()
    }


def _limit(verb: str) -> dict[str, float]:
    return {"timeout": _SOON} if verb == "late" else {}


def _hook(verb: str, moment: str, said: Said) -> Callable[[Any], Any]:
    async def late(_: object) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError

    def hook(asked: Any) -> Any:
        match verb:
            case "pass":
                return allow()
            case "why":
                return allow(why=said("why"))
            case "change" if moment == "before_tool":
                return allow({**asked.args, "note": said("new argument")}, why=said("why of a change"))
            case "change" if moment == "after_tool":
                return allow({said("key of a result"): said("new result")}, why=said("why of a change"))
            case "change":
                return allow(said("new message"), why=said("why of a change"))
            case "deny":
                return deny(said("reason"))
            case "raise":
                raise ValueError(said("error of a rule"))
            case "ask":
                return ask(said("question"), detail={said("key of a detail"): said("detail")})
            case _:
                return {said("key of junk"): said("junk")}

    return late if verb == "late" else hook


@cache
def tools(said: Said) -> tuple[Tool, ...]:
    """Tools that answer, raise, ask a person, need a consent, need a credential, and give what is no JSON."""

    @tool
    def echo(note: str) -> dict[str, Any]:
        return {said("key of a result"): [note, said("result")]}

    @tool
    def breaks(note: str) -> str:
        raise LookupError(said("error of a tool"), note)

    @tool
    def wonders(note: str) -> str:
        ask_human(said("question of a tool"), detail={said("key of a payload"): note})

    @tool(check_in="always", evidence=lambda args: {said("key of the evidence"): args})
    def wires(note: str) -> str:
        return said("result of a wire")

    @tool(needs="bank")
    async def pay(note: str, context: ToolContext) -> Any:
        assert context.credential is not None
        return [note, context.credential.secret]

    @tool
    def anything(note: str) -> Any:
        return {said("key of a result"): {note, said("result")}, "bytes": note.encode(), "what": object()}

    return (echo, breaks, wonders, wires, pay, anything)

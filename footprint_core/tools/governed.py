"""What a tool declares about itself: a need for a credential, and a person's consent."""

from __future__ import annotations

import inspect
from typing import cast

import msgspec

from footprint_core.errors import BuilderError
from footprint_core.tools.tool import CheckIn, Evidence, Tool


def governed(tool: Tool, *, needs: str | None, check_in: CheckIn | None, evidence: Evidence | None) -> Tool:
    """The tool with what it declares.

    Raises:
        BuilderError: One of the declarations cannot be used.
    """
    if needs is None and check_in is None and evidence is None:
        return tool
    if needs is not None and not (isinstance(cast("object", needs), str) and needs.strip()):
        raise BuilderError(f"The tool {tool.name} needs a credential for no service; name it: needs='mail'.")
    if check_in is not None and check_in != "always":
        _refuse_unless_plain(tool.name, "check_in", check_in)
    if evidence is not None:
        if check_in is None:
            raise BuilderError(f"The tool {tool.name} shows evidence to nobody; give it check_in= too.")
        _refuse_unless_plain(tool.name, "evidence", evidence)
    return msgspec.structs.replace(tool, needs=needs, check_in=check_in, evidence=evidence)


def _refuse_unless_plain(name: str, word: str, function: object) -> None:
    # A coroutine is never exactly True, so an async predicate would never trip.
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise BuilderError(f"The tool {name} takes a plain function of its args as {word}=; pass one.")

"""The official `mcp` package, which comes with an extra and is loaded on first use."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from footprint_core.errors import BuilderError


def need_mcp(door: str) -> None:
    """Load the package.

    Raises:
        BuilderError: It is not installed.
    """
    try:
        import_module("mcp")
    except ModuleNotFoundError as error:
        raise BuilderError(
            f"{door} needs the package mcp, of which {error.name} is missing; install footprint-ledger[mcp]."
        ) from None


def server_name(name: str, door: str) -> str:
    """The name a server's tools carry as their source.

    Raises:
        BuilderError: It is blank, or no text.
    """
    if not isinstance(cast("object", name), str) or not name.strip():
        raise BuilderError(f"{door} needs the name of the server, a text that is not blank; rules read it.")
    return name

"""A plugin of Datasette: what it does not answer is said in a sentence, and pages nobody needs are closed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

# Everything of Datasette itself, but for what the pages of a ledger are made of and the figures it states:
# the rest is for its own developers, or to sign in to it.
_CLOSED = r"/-/(?!static/|static-plugins/|dashboards|(databases|settings|versions)(\.json)?$)"
_BAD = 400
_BROKEN = 500


def register_routes(datasette: Any) -> list[tuple[str, Callable[..., Any]]]:
    """The pages that are closed."""
    del datasette
    return [(_CLOSED, _closed)]


def handle_exception(datasette: Any, request: Any, exception: Exception) -> Any:
    """The page of a failure.

    Datasette knows most of what an address may ask for in vain. Of the rest it says that it is broken itself,
    and prints a traceback.
    """
    refusal: Any = import_module("datasette.views.base").DatasetteError
    known: Any = exception
    if not isinstance(known, import_module("datasette.utils.asgi").Base400 | refusal):
        known = refusal(f"That cannot be answered ({type(exception).__name__}); correct the address.")
    if known.status == _BROKEN:
        known.status = _BAD
    return import_module("datasette.handle_exception").handle_exception(datasette, request, known)


async def _closed() -> Any:
    raise import_module("datasette.utils.asgi").NotFound("There is no such page here.")

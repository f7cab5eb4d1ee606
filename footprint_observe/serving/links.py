"""A plugin of Datasette: in every table, the id of a run leads to its timeline, that of a call to its why."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

_SHOWN = 7


def render_cell(row: Any, value: object, column: str, database: str) -> Any:
    """A cell as HTML; None where Datasette is to show it."""
    if not isinstance(value, str) or not value:
        return None
    # A row of a query and one of a table are of different classes, and both give their columns so.
    given: Mapping[str, object] = {name: row[name] for name in row.keys()}  # noqa: SIM118
    if column == "run_id":
        # What tells two runs apart stands at the end of their ids.
        short = value if len(value) <= _SHOWN else f"…{value[-_SHOWN:]}"
        return _link(database, "timeline", short, run_id=value)
    if column == "tool_call_id" and isinstance(run_id := given.get("run_id"), str):
        return _link(database, "why", value, run_id=run_id, tool_call_id=value)
    return None


def _link(database: str, query: str, text: str, **parameters: str) -> Any:
    markup: Any = import_module("markupsafe").Markup
    return markup('<a href="/{}/{}?{}" title="{}">{}</a>').format(
        database, query, urlencode(parameters), parameters["run_id"], text
    )

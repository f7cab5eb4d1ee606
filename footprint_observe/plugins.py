"""Finds recorders by name, through the entry-point group `footprint.recorders`.

Nobody imports the package `recorders` by name: the name is generic, and a file of a user that is called the
same wins over ours. When that happens the error names the file.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from footprint_core.errors import RecorderError
from footprint_core.watch import Watcher

GROUP = "footprint.recorders"
"""The entry-point group. Whoever publishes a recorder names it there, from a package of their own."""


def recorder_names() -> tuple[str, ...]:
    """The names of every installed recorder, sorted."""
    return tuple(sorted(entry_points(group=GROUP).names))


def recorder(name: str) -> Callable[..., Watcher]:
    """What makes the recorder of that name: its class, or a function.

    Raises:
        RecorderError: No recorder has the name, or what has it could not be loaded.
    """
    found = tuple(entry_points(group=GROUP, name=name))
    if not found:
        known = ", ".join(recorder_names()) or "none; install footprint-ledger"
        raise RecorderError(f"No recorder is called {name!r}; these are installed: {known}.")
    try:
        loaded: object = found[0].load()
    except Exception as error:
        # Whatever a foreign module raises when it is imported, the reader wants to know which one it was.
        raise RecorderError(_why(found[0], error)) from error
    if not callable(loaded):
        raise RecorderError(f"{_named(found[0])} is nothing that can be called; name a class or a function.")
    return cast("Callable[..., Watcher]", loaded)


def _named(point: EntryPoint) -> str:
    owner = "" if point.dist is None else f" of {point.dist.name}"
    return f"The recorder {point.name!r} (entry point {point.value}{owner})"


def _why(point: EntryPoint, error: Exception) -> str:
    package = point.module.partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and _within(error.name, point.module):
        return (
            f"{_named(point)} was not found, because the name {package} resolved to {_resolved(package)}; "
            f"rename what stands there or install the recorder's package again."
        )
    return f"{_named(point)} raised {type(error).__name__} when it was loaded; see the cause."


def _within(missing: str | None, module: str) -> bool:
    return missing is not None and (module == missing or module.startswith(f"{missing}."))


def _resolved(package: str) -> str:
    """The file or folder a package name stands for here."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        # A module can be put into sys.modules without a spec.
        return str(getattr(sys.modules.get(package), "__file__", None) or "nothing")
    if spec is None:
        return "nothing"
    if spec.origin is not None:
        return spec.origin
    return ", ".join(spec.submodule_search_locations or ()) or "nothing"

"""One small tree of errors, and the signal that stands outside of it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

import footprint_core
import footprint_observe
import recorders
from footprint_core import (
    BuilderError,
    FootprintError,
    KeyRingError,
    LedgerError,
    PauseSignal,
    RecorderError,
    ResumeError,
    RunError,
    ask_human,
    pause_here,
)

BRANCHES = (BuilderError, RunError, ResumeError, LedgerError, KeyRingError, RecorderError)
PACKAGES = (footprint_core, footprint_observe, recorders)


def raised_by_the_product() -> Iterator[type[BaseException]]:
    """Every class of the three packages that can be raised and has a public name."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, found in vars(importlib.import_module(module.name)).items():
                if (
                    isinstance(found, type)
                    and issubclass(found, BaseException)
                    and found.__module__ == module.name
                    and not name.startswith("_")
                ):
                    yield found


def test_every_error_of_the_product_stands_on_one_branch_of_one_tree() -> None:
    found = set(raised_by_the_product()) - {FootprintError, PauseSignal}
    assert set(BRANCHES) < found
    stray = {one for one in found if not issubclass(one, FootprintError)}
    assert not stray
    assert {one for one in found if sum(issubclass(one, branch) for branch in BRANCHES) != 1} == set()
    assert set(FootprintError.__subclasses__()) == set(BRANCHES)
    assert issubclass(FootprintError, Exception)


def test_every_error_of_the_tree_can_be_imported_from_the_core() -> None:
    core = {one for one in raised_by_the_product() if one.__module__ == "footprint_core.errors"}
    named = {name for name in footprint_core.__all__ if name.endswith("Error")}
    assert {one.__name__ for one in core} - named <= {"McpToolError"}


def test_the_signal_by_which_a_tool_pauses_is_no_exception() -> None:
    assert issubclass(PauseSignal, BaseException)
    assert not issubclass(PauseSignal, Exception)
    assert not issubclass(PauseSignal, FootprintError)
    for pauses in (lambda: pause_here({"n": 1}), lambda: ask_human("PIN?")):
        with pytest.raises(PauseSignal) as raised:
            carelessly(pauses)
        assert type(raised.value) is PauseSignal


def carelessly(work: Callable[[], object]) -> None:
    """What a tool does that wants to fail at nothing."""
    with suppress(Exception):
        work()

"""The rules a back-test runs: a mapping for `.act()`, or a callable that makes one for each conversation."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from footprint_core.act import ActOptions
from footprint_core.agent import Agent
from footprint_core.errors import BuilderError
from footprint_observe.backtest.recorded import RecordedModel

Rules: TypeAlias = ActOptions | Callable[[], ActOptions]
"""Rules that all conversations share, or what makes them anew for each one."""


def load_rules(path: str) -> Rules:
    """The rules `MODULE:NAME` names, checked.

    Raises:
        BuilderError: It cannot be imported, or is nothing `.act()` takes.
    """
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise BuilderError(f"The rules {path!r} are not named MODULE:NAME; write for example my_rules:rules.")
    try:
        loaded: object = operator.attrgetter(name)(importlib.import_module(module))
    except (Exception, SystemExit) as error:
        # Whatever a foreign module raises when it is imported, the reader wants to know which one it was.
        raise BuilderError(
            f"The rules {path} cannot be imported ({type(error).__name__}); correct the name, and run it "
            "where the module can be imported."
        ) from error
    rules = cast("Rules", loaded)
    check_rules(rules)
    return rules


def check_rules(rules: Rules) -> None:
    """Refuse rules no agent can be built with, before anything runs.

    Raises:
        BuilderError: They cannot be used.
    """
    Agent.create(provider=RecordedModel(), model="recorded", name="backtest").act(**options_of(rules))


def options_of(rules: Rules) -> ActOptions:
    """The rules for one conversation.

    Raises:
        BuilderError: The callable raised, or did not return a mapping.
    """
    made = _made(rules)
    if not isinstance(made, Mapping):
        raise BuilderError(
            f"The rules are of type {type(made).__name__}; give a mapping for .act(), or a callable that "
            "returns one."
        )
    return cast("ActOptions", made)


def _made(rules: object) -> object:
    if isinstance(rules, Mapping):
        return cast("Mapping[str, object]", rules)
    if not callable(rules):
        return rules
    try:
        return rules()
    except Exception as error:
        name = getattr(rules, "__name__", type(rules).__name__)
        raise BuilderError(
            f"The rules could not be made, because {name}() raised {type(error).__name__}; see the cause."
        ) from error

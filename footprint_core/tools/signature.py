"""How a function says what it takes."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

from footprint_core.errors import BuilderError


def type_hints(body: Callable[..., object], called: str) -> dict[str, Any]:
    """The annotations of a tool's function.

    Raises:
        BuilderError: One names something that is not found, or it is no function.
    """
    try:
        return typing.get_type_hints(body, include_extras=True)
    except NameError as error:
        raise BuilderError(
            f"The tool {called} is annotated with {error.name!r}, which is not found; import it at run time."
        ) from None
    except TypeError:
        raise BuilderError(f"The tool {called} is no function or method; wrap it in one.") from None


def parameters(body: Callable[..., object], called: str) -> tuple[inspect.Parameter, ...]:
    """The parameters of a tool's function.

    Raises:
        BuilderError: It does not say them, as some functions written in C.
    """
    try:
        return tuple(inspect.signature(body).parameters.values())
    except (TypeError, ValueError):
        raise BuilderError(f"The tool {called} does not say its parameters; wrap it in a function.") from None

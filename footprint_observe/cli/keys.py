"""The keys that commands open sealed values with: a file, or the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from footprint_observe.keyring import KeyRing

F = TypeVar("F", bound=Callable[..., Any])

VARIABLE = "FOOTPRINT_KEYS"


def keys_option(function: F) -> F:
    """The option that names the key file: the parameter `keys`, for `key_ring`."""
    return click.option(
        "--keys",
        "keys",
        metavar="FILE",
        help=f"The key file, one id:base64 a line; {VARIABLE} holds keys too.",
    )(function)


def key_ring(file: str | None) -> KeyRing:
    """The keys of a file, or of the environment when none is given.

    Raises:
        KeyRingError: They cannot be read.
        click.UsageError: There are none.
    """
    if file is not None:
        return KeyRing.from_file(file)
    if not os.environ.get(VARIABLE):
        raise click.UsageError(
            f"What is sealed is opened with its keys; give --keys FILE, or set {VARIABLE}."
        )
    return KeyRing.from_env(VARIABLE)

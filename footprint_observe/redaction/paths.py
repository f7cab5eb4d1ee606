"""Field paths: `before.customer.ssn`, `args.**.card`, `after`; each is met step by step, on the way down.

A path is the name of a value and then keys, joined by dots. `*` stands for any one key, `**` for any
number of them. The items of an array need no step of their own, and can be given one by their index.
"""

from __future__ import annotations

from typing import TypeAlias, cast, get_args

from footprint_core.errors import BuilderError
from footprint_core.facts import Fact, PauseOpened

Path: TypeAlias = tuple[str, ...]

Left: TypeAlias = tuple[Path, ...]
"""What is still to be met of some paths; one of which nothing is left has matched."""

MATCHED: Path = ()
"""What is left of a path that matched."""

VALUES: frozenset[str] = frozenset(
    # The salt and digest of a pause are our own.
    name
    for cls in get_args(Fact)
    if cls is not PauseOpened
    for name in cls.values
)
"""The names of all values of all facts: what a path can begin with."""


def parsed(path: object) -> Path:
    """A path as its steps.

    Raises:
        BuilderError: It is no text, has a step that is empty, or begins with no name of a value.
    """
    if not isinstance(path, str) or not all(step.strip() for step in path.split(".")):
        raise BuilderError(
            "A field of a redaction policy is a text of keys joined by dots, like 'before.customer.ssn'; "
            "write each so."
        )
    if path.partition(".")[0] not in VALUES | {"*", "**"}:
        raise BuilderError(
            f"A field of a redaction policy begins with the name of a value, '*' or '**'; the values are "
            f"{', '.join(sorted(VALUES))}."
        )
    steps: list[str] = []
    for step in path.split("."):
        if step != "**" or steps[-1:] != ["**"]:
            steps.append(step)
    return tuple(steps)


def behind(left: Left, key: str) -> Left:
    """What is left behind a key."""
    found: list[Path] = []
    for path in left:
        if path[0] == "**":
            found.append(path)
            path = path[1:] or ("*",)  # noqa: PLW2901 - the same path, `**` having met nothing
        if path[0] in {"*", key}:
            found.append(path[1:])
    return tuple(dict.fromkeys(found))


def paths(fields: object, argument: str = "fields") -> Left:
    """The fields of a policy.

    Args:
        fields: The paths as texts.
        argument: What they were given as.

    Raises:
        BuilderError: They are no list or tuple of paths.
    """
    if not isinstance(fields, list | tuple):
        raise BuilderError(
            f"Redaction.of({argument}=...) takes a list, not {type(fields).__name__}; put it in brackets."
        )
    return tuple(parsed(field) for field in cast("list[object] | tuple[object, ...]", fields))

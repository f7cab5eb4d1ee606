"""Field paths: `before.customer.ssn`, `args.**.card`, `after`; each is met step by step, on the way down.

A path is the name of a value and then keys, joined by dots. `*` stands for any one key, `**` for any
number of them. The items of an array need no step of their own, and can be given one by their index.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from footprint_core.errors import BuilderError

Path: TypeAlias = tuple[str, ...]

Left: TypeAlias = tuple[Path, ...]
"""What is still to be met of some paths; one of which nothing is left has matched."""

MATCHED: Path = ()
"""What is left of a path that matched."""


def parsed(path: object) -> Path:
    """A path as its steps.

    Raises:
        BuilderError: It is no text, or has a step that is empty.
    """
    if not isinstance(path, str) or not all(step.strip() for step in path.split(".")):
        raise BuilderError(
            "A field of a redaction policy is a text of keys joined by dots, like 'before.customer.ssn'; "
            "write each so."
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


def within(left: Left, index: int) -> Left:
    """What is left at an item of an array, which a path may leave out."""
    return tuple(dict.fromkeys((*left, *behind(left, str(index))))) if left else left


def paths(fields: object) -> Left:
    """The fields of a policy.

    Raises:
        BuilderError: They are no list or tuple of paths.
    """
    if not isinstance(fields, list | tuple):
        raise BuilderError(
            f"Redaction.of(fields=...) takes a list, not {type(fields).__name__}; put it in brackets."
        )
    return tuple(parsed(field) for field in cast("list[object] | tuple[object, ...]", fields))

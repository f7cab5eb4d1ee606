"""What changed between two stored values, as short as a person reads it."""

from __future__ import annotations

from rich.markup import escape

from footprint_core import plain
from footprint_core.plain import Json

_CONTEXT = 10


def difference(old: Json, new: Json, width: int = 70) -> str:
    """The change from one value to another: keys that went, came or changed; or the part of a text."""
    if plain.is_object(old) and plain.is_object(new):
        return _keys(old, new, width)
    one, two = _parts(plain.rendered(old), plain.rendered(new))
    return f"[red]- {_line(one, width)}[/]\n[green]+ {_line(two, width)}[/]"


def _keys(old: dict[str, Json], new: dict[str, Json], width: int) -> str:
    gone = ", ".join(key for key in old if key not in new)
    told = [f"[red]- {_line(gone, width)}[/]"] if gone else []
    for key, value in new.items():
        shown = _line(plain.rendered(value), width)
        if key not in old:
            told.append(f"[green]+ {_line(key, width)}: {shown}[/]")
        elif not plain.same(old[key], value):
            was = _line(plain.rendered(old[key]), width)
            told.append(f"{_line(key, width)}: [red]{was}[/] -> [green]{shown}[/]")
    return "\n".join(told)


def _parts(old: str, new: str) -> tuple[str, str]:
    """The parts of two texts that differ, each with a little of what stands around it."""
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    tail = next((i for i in range(shorter - head) if old[-1 - i] != new[-1 - i]), shorter - head)
    start = max(0, head - _CONTEXT)
    parts: list[str] = []
    for text in (old, new):
        stop = min(len(text), len(text) - tail + _CONTEXT)
        parts.append(("…" if start else "") + text[start:stop] + ("…" if stop < len(text) else ""))
    return parts[0], parts[1]


def _line(text: str, width: int) -> str:
    line = "".join(c if c.isprintable() else " " for c in text)
    return escape(line if len(line) <= width else line[: width - 1] + "…")

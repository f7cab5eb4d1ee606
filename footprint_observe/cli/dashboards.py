"""`footprint dashboards export`: what viewers are set up with, as files of one's own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from footprint_observe.cli.exits import Exit
from footprint_observe.cli.output import counted, note
from footprint_observe.shipped import dashboards as shipped

F = TypeVar("F", bound=Callable[..., Any])

_SOURCES = {
    "prometheus": "Prometheus",
    "ledger": "Ledger",
    "jaeger": "Jaeger",
    "tempo": "Tempo",
}
"""The data sources by their variable in the dashboards, with the names they are shipped with."""

# What makes the dashboards, and pictures of them, are in a clone only.
_LEFT_OUT = frozenset({"__pycache__", "pictures"})


class _UnwritableError(click.ClickException):
    """The files could not be written."""

    exit_code = Exit.LEDGER


@click.group()
def dashboards() -> None:
    """Dashboards and configurations for Grafana, Prometheus, Jaeger and Datasette."""


def _name_options(function: F) -> F:
    for option, variable in (
        ("tempo", "tempo"),
        ("sqlite", "ledger"),
        ("jaeger", "jaeger"),
        ("prometheus",) * 2,
    ):
        function = click.option(
            f"--{option}",
            variable,
            default=_SOURCES[variable],
            show_default=True,
            metavar="NAME",
            help="What Grafana calls this data source.",
        )(function)
    return function


@dashboards.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@_name_options
@click.option("--force", is_flag=True, help="Replace files that are there already.")
def export(*, folder: Path, force: bool, **names: str) -> None:
    """Copy them into DIR, with the names your Grafana has for its data sources.

    Import grafana/*.json into a Grafana that has them, or start everything on this machine with
    compose.yaml, which says how. Each file says at its top what it is for.
    """
    texts = dict(_files(shipped(), names))
    there = [name for name in texts if os.path.lexists(folder / name)]
    if there and not force:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise _UnwritableError(
            f"{folder / there[0]}{more} is there already; give --force, or another folder."
        )
    try:
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise _UnwritableError(f"{error.filename or folder} could not be written ({why}).") from None
    note(f"{folder}: {counted(len(texts), 'file')}")


def _files(source: Path, names: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Every file, by its path in the folder, with the names of the data sources put in."""
    for path in sorted(source.rglob("*")):
        within = path.relative_to(source)
        if not path.is_file() or path.suffix == ".py" or _LEFT_OUT & set(within.parts):
            continue
        text = path.read_bytes()
        match within.parts:
            case ("grafana", _):
                text = _chosen(text, names)
            case ("provisioning", "datasources", _):
                text = _called(text, names)
            case _:
                pass
        yield str(within), text


def _chosen(dashboard: bytes, names: Mapping[str, str]) -> bytes:
    """A dashboard whose data sources are those of the names, until its reader chooses others."""
    whole = cast("dict[str, Any]", json.loads(dashboard))
    for variable in whole["templating"]["list"]:
        if variable["type"] == "datasource":
            name = names[variable["name"]]
            variable["current"].update(text=name, value=name)
    return (json.dumps(whole, indent=2, sort_keys=True) + "\n").encode()


def _called(provisioning: bytes, names: Mapping[str, str]) -> bytes:
    """Data sources that are called by the names."""
    text = provisioning.decode()
    for variable, shipped_name in _SOURCES.items():
        # JSON's texts are YAML's, too.
        text = text.replace(f'name: "{shipped_name}"\n', f"name: {json.dumps(names[variable])}\n")
    return text.encode()

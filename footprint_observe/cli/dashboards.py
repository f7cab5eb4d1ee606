"""`footprint dashboards export`: what viewers are set up with, as files of one's own."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeVar, cast

import click

from footprint_observe.cli.exits import Exit
from footprint_observe.cli.output import counted, note
from footprint_observe.shipped import dashboards as shipped

F = TypeVar("F", bound=Callable[..., Any])


class _Source(NamedTuple):
    """A data source: what the dashboards, the shipped files and the command line call it."""

    variable: str
    name: str
    option: str
    help: str


_SOURCES: Final = (
    _Source(
        "prometheus", "Prometheus", "--prometheus", "What your Grafana calls the Prometheus with the metrics."
    ),
    _Source("ledger", "Ledger", "--sqlite", "What it calls the ledger file, its SQLite data source."),
    _Source("jaeger", "Jaeger", "--jaeger", "What it calls its Jaeger."),
    _Source("tempo", "Tempo", "--tempo", "What it calls its Tempo."),
)
_VARIABLES: Final = {source.name: source.variable for source in _SOURCES}

_NAME: Final = re.compile(r'(?m)(?<=name: )"(\w+)"$')
"""A name of a data source as the provisioning is shipped with it."""

# What makes the dashboards, and pictures of them, are in a clone only.
_LEFT_OUT = frozenset({"__pycache__", "pictures"})


class _UnwritableError(click.ClickException):
    """The files could not be written."""

    exit_code = Exit.LEDGER


@click.group()
def dashboards() -> None:
    """Dashboards and configurations for Grafana, Prometheus, Jaeger and Datasette."""


def _name_options(function: F) -> F:
    for source in reversed(_SOURCES):
        function = click.option(
            source.option,
            source.variable,
            default=source.name,
            show_default=True,
            metavar="NAME",
            help=source.help,
        )(function)
    return function


def _folder(_: click.Context, __: click.Parameter, value: str) -> Path:
    # An empty variable of a shell would be the folder one is in.
    if not value:
        raise click.BadParameter("it is empty; name a folder.")
    return Path(value)


@dashboards.command()
@click.argument("folder", metavar="DIR", callback=_folder)
@_name_options
@click.option("--force", is_flag=True, help="Replace files that are there already.")
def export(*, folder: Path, force: bool, **names: str) -> None:
    """Copy them into DIR, with the names your Grafana has for its data sources.

    Import grafana/*.json into a Grafana that has them, or start everything on this machine with
    compose.yaml, which says how. Every YAML file says at its top what it is for.
    """
    _check_names(names)
    texts = dict(_files(shipped(), names))
    there = _there(folder, texts)
    if there and not force:
        more = f" and {len(there) - 1} more are" if len(there) > 1 else " is"
        raise _UnwritableError(f"{there[0]}{more} there already; give --force, or another folder.")
    try:
        _write(folder, texts)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise _UnwritableError(f"{error.filename or folder} could not be written ({why}).") from None
    note(f"{folder}: {counted(len(texts), 'file')}")


def _check_names(names: Mapping[str, str]) -> None:
    """Refuse names that no Grafana can have for its data sources."""
    for source in _SOURCES:
        name = names[source.variable]
        if not name.strip() or not name.isprintable():
            raise click.UsageError(f"{source.option} is no name; give what Grafana shows for it.")
        if list(names.values()).count(name) > 1:
            raise click.UsageError(f"{source.option} names another data source, too; each has its own.")


def _there(folder: Path, texts: Collection[str]) -> list[Path]:
    """What would be replaced: files, and links in the place of folders."""
    links = [path for path in _folders(folder, texts) if path.is_symlink()]
    return [*links, *(folder / name for name in texts if os.path.lexists(folder / name))]


def _folders(folder: Path, texts: Collection[str]) -> list[Path]:
    """The folders within the folder, the outer first."""
    inner = {parent for name in texts for parent in Path(name).parents if parent != Path()}
    return [folder / one for one in sorted(inner)]


def _write(folder: Path, texts: Mapping[str, bytes]) -> None:
    """Put every file in its place, or none where one cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    links = [path for path in _folders(folder, texts) if path.is_symlink()]
    _check_places(folder, texts, links)
    # All of it is written beside first: a disk that is full leaves what was there as it was.
    with TemporaryDirectory(prefix=".footprint-", dir=folder) as beside:
        staged = {folder / name: Path(beside, name) for name in texts}
        for name, text in texts.items():
            path = Path(beside, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        for link in links:
            link.unlink()
        for path, ready in staged.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            # A link is replaced, and what it leads to is left alone.
            ready.replace(path)


def _check_places(folder: Path, texts: Collection[str], links: Collection[Path]) -> None:
    """Refuse what is in the way and would be found out when some files are replaced already."""
    for path in _folders(folder, texts):
        if path in links or any(link in path.parents for link in links) or not os.path.lexists(path):
            continue
        if not path.is_dir():
            raise _UnwritableError(f"{path} is in the way: there must be a folder. Move it, or give another.")
        if not os.access(path, os.W_OK | os.X_OK):
            raise _UnwritableError(f"{path} may not be written to; change that, or give another folder.")
    for name in texts:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            raise _UnwritableError(f"{path} is in the way: there must be a file. Move it, or give another.")


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

    def put(found: re.Match[str]) -> str:
        # Grafana puts its environment in where there is a dollar; two of them are one.
        name = names[_VARIABLES[found[1]]].replace("$", "$$")
        # JSON's texts are YAML's too, but for its escapes of what is beyond 16 bits.
        return json.dumps(name, ensure_ascii=False)

    return _NAME.sub(put, provisioning.decode()).encode()

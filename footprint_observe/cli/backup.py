"""`footprint backup`: a copy of the ledger, while agents go on."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from footprint_observe.cli.options import db_option
from footprint_observe.cli.output import note
from footprint_observe.store.backup import backup as copied


@click.command()
@click.argument("dest", type=click.Path(path_type=Path))
@db_option
def backup(*, dest: Path, path: str) -> None:
    """Copy the ledger into DEST, a new file, while agents go on appending.

    The copy holds every row there is when it begins. Ask it with --db like the ledger itself.
    """
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("copying", total=None)
        copied(path, dest, progress=lambda done, of: progress.update(task, completed=done, total=of))
    note(f"{dest}: {dest.stat().st_size:,} bytes")

"""The command `footprint` as a person types it, and what it printed."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner, Result

from footprint_observe.cli import main

QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("runs",),
    ("show", "last"),
    ("timeline", "last"),
    ("decisions",),
    ("why", "call-1"),
    ("pending",),
    ("totals",),
    ("find", "refund"),
    ("tail", "--since", "1d", "--limit", "1"),
    ("sql", "select * from runs"),
)
"""Every command that asks a ledger, as it has an answer in the file of the demonstration."""


def footprint(*args: str, code: int = 0, env: Mapping[str, str] | None = None) -> Result:
    """Run the command in this process and see that it ends as it should."""
    result = CliRunner().invoke(main, args, env={"COLUMNS": "100", **(env or {})})
    assert result.exit_code == code, result.output
    if result.exception is not None:
        assert isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def refused(*args: str, code: int, env: Mapping[str, str] | None = None) -> str:
    """What the command says when it refuses: one sentence on standard error, and nothing else."""
    result = footprint(*args, code=code, env=env)
    assert result.stdout == ""
    assert [line.startswith("Error: ") for line in result.stderr.splitlines()].count(True) == 1
    return result.stderr


def records(*args: str, env: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """What the command prints with `--json`."""
    return [json.loads(line) for line in footprint(*args, "--json", env=env).stdout.splitlines()]


def demonstrate(path: Path) -> str:
    """The path of a ledger with the run of the demonstration in it."""
    path.write_bytes(_demonstration())
    return str(path)


@cache
def _demonstration() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "l.db"
        footprint("demo", "--approve", "--db", str(path))
        # The demonstration read its own file, which leaves a log, empty, that the next writer takes away.
        assert not path.with_name("l.db-wal").stat().st_size
        return path.read_bytes()


def installed() -> str:
    """The command as it is installed beside this Python; a test is skipped where it is not."""
    command = shutil.which("footprint", path=str(Path(sys.executable).parent))
    if command is None:
        pytest.skip("the package is not installed with its command here")
    return command


def environment(**more: str) -> dict[str, str]:
    """The environment of a process that is no terminal's, without what the product reads from it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOOTPRINT")}
    for name in ("NO_COLOR", "FORCE_COLOR", "PAGER", "LESS", "COLUMNS", "LINES"):
        kept.pop(name, None)
    return {**kept, **more}

"""The type checkers, run over a copy of the product and programs beside it: somebody's project."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tests" / "typing"

_STRICT = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "enableTypeIgnoreComments": False}


class Finding(NamedTuple):
    """An error of a checker; `file` is relative to the project, `line` counts from 1."""

    file: str
    line: int
    code: str
    message: str


def project(at: Path) -> Path:
    """A project made of the core and of the programs, accepted and refused."""
    shutil.copytree(ROOT / "footprint_core", at / "footprint_core", ignore=shutil.ignore_patterns("*.pyc"))
    for kind in ("accepted", "refused"):
        shutil.copytree(PROGRAMS / kind, at / kind, ignore=shutil.ignore_patterns("*.pyc"))
    (at / "pyrightconfig.json").write_text(json.dumps(_STRICT), encoding="utf-8")
    return at


@contextmanager
def changed(root: Path, file: str, old: str, new: str) -> Iterator[None]:
    """One textual change of a project, undone at the end."""
    path = root / file
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file} no longer holds, exactly once: {old}"
    path.write_text(text.replace(old, new), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")


def mypy(root: Path, *paths: str) -> list[Finding]:
    """What `mypy --strict` says about files and folders, and about what they import."""
    options = ["--strict", "--config-file=", "--cache-dir=.mypy_cache", "--output=json"]
    said = _run(root, "mypy", *options, *paths)
    rows: list[dict[str, Any]] = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return [
        Finding(row["file"], row["line"], row["code"] or "", row["message"])
        for row in rows
        if row["severity"] == "error"
    ]


def pyright(root: Path, *paths: str) -> list[Finding]:
    """What pyright, strict, says about files and folders."""
    said = _run(root, "pyright", "--outputjson", "--pythonpath", sys.executable, *paths)
    rows: list[dict[str, Any]] = json.loads(said)["generalDiagnostics"]
    return [
        Finding(
            Path(row["file"]).resolve().relative_to(root.resolve()).as_posix(),
            row["range"]["start"]["line"] + 1,
            row.get("rule", ""),
            row["message"],
        )
        for row in rows
        if row["severity"] == "error"
    ]


CHECKERS: dict[str, Callable[..., list[Finding]]] = {"mypy": mypy, "pyright": pyright}


def _run(root: Path, checker: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", checker, *arguments],
        cwd=root,
        env={**os.environ, "MYPYPATH": str(root), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # 1 says that something was found; whatever is above, that the checker itself did not work.
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return done.stdout

"""The type checkers, run over copies of the product and the programs beside it: somebody's projects."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tests" / "typing"

_PYRIGHT = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "enableTypeIgnoreComments": False}


class Change(NamedTuple):
    """One textual change of a file."""

    file: str
    old: str
    new: str


class Project(NamedTuple):
    """A copy of the product, what is changed in it, and which files and folders are checked."""

    paths: tuple[str, ...]
    change: Change | None = None


class Finding(NamedTuple):
    """An error of a checker; `file` is relative to its project, `line` counts from 1."""

    file: str
    line: int
    code: str
    message: str


def home(factory: pytest.TempPathFactory) -> Path:
    """Where the projects of this session stand; tests of several files share them."""
    at = factory.getbasetemp() / "projects"
    at.mkdir(exist_ok=True)
    return at


def installed(checker: str) -> str:
    """A checker; the test is skipped where it is not installed."""
    pytest.importorskip(checker, reason=f"{checker} comes with the dev extra")
    return checker


def folder(root: Path, name: str) -> Path:
    """Where the project of a name stands."""
    return root / name.replace(" ", "-")


def lay_out(root: Path, projects: Mapping[str, Project]) -> None:
    """Make the projects that are not there yet."""
    unwanted = shutil.ignore_patterns("__pycache__")
    for name, project in projects.items():
        at = folder(root, name)
        if at.exists():
            continue
        shutil.copytree(ROOT / "footprint_core", at / "footprint_core", ignore=unwanted)
        for kind in ("accepted", "refused"):
            shutil.copytree(PROGRAMS / kind, at / kind, ignore=unwanted)
        if project.change is not None:
            _apply(at, project.change)


def _apply(at: Path, change: Change) -> None:
    path = at / change.file
    text = path.read_text(encoding="utf-8")
    assert text.count(change.old) == 1, f"{change.file} no longer holds, exactly once: {change.old}"
    path.write_text(text.replace(change.old, change.new), encoding="utf-8")


def check(checker: str, root: Path, projects: Mapping[str, Project]) -> dict[str, list[Finding]]:
    """What a checker, strict, says about each project."""
    lay_out(root, projects)
    if checker == "mypy":
        return {name: _mypy(folder(root, name), project.paths) for name, project in projects.items()}
    return _pyright(root, projects)


def _mypy(at: Path, paths: tuple[str, ...]) -> list[Finding]:
    # One cache for all of them: what is the same in every copy is read once.
    options = ["--strict", "--config-file=", "--cache-dir=../.mypy_cache", "--output=json"]
    said = _run("mypy", at, *options, *paths)
    rows: list[dict[str, Any]] = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return [
        Finding(row["file"], row["line"], row["code"] or "", row["message"])
        for row in rows
        if row["severity"] == "error"
    ]


def _pyright(root: Path, projects: Mapping[str, Project]) -> dict[str, list[Finding]]:
    # One process for all of them: most of its time goes into starting.
    folders = {folder(root, name).name: name for name in projects}
    config = {**_PYRIGHT, "executionEnvironments": [{"root": folder} for folder in folders]}
    (root / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    files = [str(folder(root, name) / path) for name, project in projects.items() for path in project.paths]
    said = _run("pyright", root, "--outputjson", "--pythonpath", sys.executable, *files)
    found: dict[str, list[Finding]] = {name: [] for name in projects}
    for row in json.loads(said)["generalDiagnostics"]:
        if row["severity"] == "error":
            place, *rest = Path(row["file"]).resolve().relative_to(root.resolve()).parts
            line = row["range"]["start"]["line"] + 1
            finding = Finding("/".join(rest), line, row.get("rule", ""), row["message"])
            found[folders[place]].append(finding)
    return found


def _run(checker: str, at: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", checker, *arguments],
        cwd=at,
        env={**os.environ, "MYPYPATH": str(at), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    # 1 says that something was found; whatever is above, that the checker itself did not work.
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return done.stdout

"""The architecture, as tests: import contracts, public doors, small files, a cheap import."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("footprint_core", "footprint_observe", "recorders")


def test_imports_go_one_way() -> None:
    pytest.importorskip("importlinter", reason="import-linter comes with the dev extra")
    command = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [str(command), "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "package", ["footprint_core", "footprint_core.mcp", "footprint_core.providers", "footprint_observe"]
)
def test_a_package_exports_what_it_lists_and_lists_it_in_order(package: str) -> None:
    module = importlib.import_module(package)
    names: list[str] = module.__all__
    assert len(names) == len(set(names))
    assert all(hasattr(module, name) for name in names)
    imported = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and name != "annotations" and type(value).__name__ != "module"
    }
    assert imported == set(names)


def test_only_the_one_writer_appends_to_a_ledger_and_tells_watchers() -> None:
    alone = {"append_inline": "footprint_core/commit.py", "publish": "footprint_core/commit.py"}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            where = path.relative_to(ROOT).as_posix()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    name = node.func.attr
                    # A ledger may be written in terms of its own inline append.
                    of_itself = isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
                    assert of_itself or alone.get(name, where) == where, f"{where} calls {name}"


def test_the_recorders_package_holds_a_docstring_and_nothing_else() -> None:
    source = (ROOT / "recorders" / "__init__.py").read_text(encoding="utf-8")
    assert source.startswith('"""')
    assert source.count("\n") == 1


def test_files_stay_under_four_hundred_lines() -> None:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            assert len(path.read_text(encoding="utf-8").splitlines()) < 400, path


def _loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_the_core_loads_no_schema_library_no_database_and_no_telemetry() -> None:
    loaded = _loaded_by("import footprint_core, footprint_core.providers, footprint_core.mcp")
    slow = {"pydantic", "sqlite3", "opentelemetry", "sqlite_utils", "click", "rich", "jsonschema", "mcp"}
    assert not loaded & slow
    # The same, seen to be able to fail: the first tool loads the schema library.
    made = "from footprint_core import tool; tool(name='t')(lambda: 1)"
    assert "pydantic" in _loaded_by(made)


def test_importing_the_ledger_loads_no_telemetry() -> None:
    assert "opentelemetry" not in _loaded_by("import footprint_observe")


def test_the_wheel_holds_three_packages_that_import_outside_the_repository(tmp_path: Path) -> None:
    pytest.importorskip("build", reason="build comes with the dev extra")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    target = tmp_path / "installed"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), str(wheel)],
        check=True,
        timeout=120,
    )
    top = {path.name for path in target.iterdir() if path.is_dir() and not path.name.endswith(".dist-info")}
    assert top - {"bin"} == set(PACKAGES)
    for package in PACKAGES:
        assert (target / package / "py.typed").exists()
    modules = [
        ".".join(path.relative_to(target).with_suffix("").parts).removesuffix(".__init__")
        for package in PACKAGES
        for path in (target / package).rglob("*.py")
    ]
    code = f"import sys; sys.path.insert(0, {str(target)!r}); import " + ", ".join(sorted(modules))
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr

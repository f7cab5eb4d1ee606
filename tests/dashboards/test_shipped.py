"""The wheel holds what a command copies or shows, and none of the program that makes dashboards."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from commanded import footprint
from footprint_observe import shipped

CLONE = Path(shipped.__file__).parent.parent

pytestmark = pytest.mark.skipif(not (CLONE / "pyproject.toml").is_file(), reason="the package is no clone's")


def test_the_wheel_holds_exactly_what_is_exported(tmp_path: Path) -> None:
    project = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))
    included: dict[str, str] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    held: set[str] = set()
    for source, target in included.items():
        assert target == f"footprint_observe/{source}"
        files = [CLONE / source, *(CLONE / source).rglob("*")]
        held |= {str(file.relative_to(CLONE / "dashboards")) for file in files if file.is_file()}
    footprint("dashboards", "export", str(tmp_path))
    assert held == {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}


def test_the_program_that_makes_dashboards_can_be_imported_from_a_clone() -> None:
    pytest.importorskip("grafana_foundation_sdk", reason="the extra `dev` has what makes the dashboards")
    import dashboards

    assert Path(str(dashboards.__file__)).parent == shipped.dashboards()

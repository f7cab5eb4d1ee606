"""`footprint dashboards export`: every file, with the user's names in it, and nothing lost by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commanded import footprint, refused
from footprint_core import FootprintError
from footprint_observe import shipped
from footprint_observe.cli.exits import Exit


def exported(folder: Path, *words: str) -> dict[str, bytes]:
    """The files of an export, by their paths in it."""
    footprint("dashboards", "export", str(folder), *words)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_everything_a_viewer_reads_is_copied_and_no_program(tmp_path: Path) -> None:
    files = exported(tmp_path / "new" / "folder")
    assert {
        "alerts.yaml",
        "collector.yaml",
        "compose.yaml",
        "grafana/governance.json",
        "grafana/runs.json",
        "jaeger-ui.json",
        "jaeger.yaml",
        "prometheus.yaml",
        "provisioning/dashboards/footprint.yaml",
        "provisioning/datasources/footprint.yaml",
        "tempo.yaml",
    } <= set(files)
    assert any(name.startswith("datasette/") for name in files)
    assert not any(name.endswith((".py", ".pyc")) or name.startswith("pictures/") for name in files)


def test_without_names_the_files_are_those_that_are_shipped(tmp_path: Path) -> None:
    for name, text in exported(tmp_path).items():
        assert text == (shipped.dashboards() / name).read_bytes(), name


def test_the_names_of_the_users_data_sources_are_put_in(tmp_path: Path) -> None:
    names = {"prometheus": "Mimir: EU", "sqlite": 'Ledger "A"', "jaeger": "Jaeger", "tempo": "Tempo é"}
    files = exported(tmp_path, *(word for key, name in names.items() for word in (f"--{key}", name)))
    called = {**names, "ledger": names["sqlite"]}
    for file in ("grafana/governance.json", "grafana/runs.json"):
        whole: dict[str, Any] = json.loads(files[file])
        chosen = {
            variable["name"]: (variable["current"]["text"], variable["current"]["value"])
            for variable in whole["templating"]["list"]
            if variable["type"] == "datasource"
        }
        assert chosen == {key: (called[key],) * 2 for key in ("prometheus", "ledger", "jaeger", "tempo")}
    yaml: Any = pytest.importorskip("yaml", reason="PyYAML comes with the extra `datasette`")
    sources = yaml.safe_load(files["provisioning/datasources/footprint.yaml"])["datasources"]
    assert sorted(source["name"] for source in sources) == sorted(names.values())


def test_what_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    (tmp_path / "prometheus.yaml").write_text("mine")
    said = refused("dashboards", "export", str(tmp_path), code=Exit.LEDGER)
    assert "prometheus.yaml is there already; give --force" in said
    assert [path.name for path in tmp_path.iterdir()] == ["prometheus.yaml"]
    assert (tmp_path / "prometheus.yaml").read_text() == "mine"
    assert exported(tmp_path, "--force")["prometheus.yaml"] != b"mine"
    assert "more is there already" in refused("dashboards", "export", str(tmp_path), code=Exit.LEDGER)


def test_a_folder_that_cannot_be_written_is_told_of_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refused("dashboards", "export", str(tmp_path / "file" / "folder"), code=Exit.LEDGER)
    assert "could not be written (Not a directory)" in said


def test_files_that_belong_to_others_and_links_are_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "alerts.yaml").symlink_to(tmp_path / "elsewhere")
    refused("dashboards", "export", str(tmp_path), code=Exit.LEDGER)
    assert not (tmp_path / "elsewhere").exists()


def test_a_wheel_has_them_inside_the_package_and_a_clone_beside_it(tmp_path: Path) -> None:
    package = tmp_path / "footprint_observe"
    beside = tmp_path / "dashboards"
    beside.mkdir()
    with pytest.raises(FootprintError, match="missing from this installation"):
        shipped.dashboards(package)
    (tmp_path / "pyproject.toml").touch()
    assert shipped.dashboards(package) == beside
    (package / "dashboards").mkdir(parents=True)
    assert shipped.dashboards(package) == package / "dashboards"

"""`footprint dashboards export`: every file, with the user's names in it, and nothing lost by it."""

from __future__ import annotations

import errno
import json
import os
import re
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
    assert provisioned(files) == {key: called[key] for key in SHIPPED}


def provisioned(files: dict[str, bytes]) -> dict[str, str]:
    """What the provisioning calls each data source in Grafana, which puts its environment in."""
    yaml: Any = pytest.importorskip("yaml", reason="PyYAML comes with the extra `datasette`")
    sources = yaml.safe_load(files["provisioning/datasources/footprint.yaml"])["datasources"]
    return {
        source["uid"].removeprefix("footprint-"): re.sub(r"\$(\$|\w*)", _put_in, source["name"])
        for source in sources
    }


def _put_in(found: re.Match[str]) -> str:
    return "$" if found[1] == "$" else ""


SHIPPED = {"prometheus": "Prometheus", "ledger": "Ledger", "jaeger": "Jaeger", "tempo": "Tempo"}


@pytest.mark.parametrize(
    ("words", "called"),
    [
        (("--prometheus", "Tempo", "--tempo", "Foo"), {"prometheus": "Tempo", "tempo": "Foo"}),
        (("--prometheus", "Tempo", "--tempo", "Prometheus"), {"prometheus": "Tempo", "tempo": "Prometheus"}),
        (("--sqlite", "Kasse 💶"), {"ledger": "Kasse 💶"}),
        (("--sqlite", "$HOME \\ $1"), {"ledger": "$HOME \\ $1"}),
    ],
    ids=["a name that was another's", "two names swapped", "beyond 16 bits", "dollars"],
)
def test_each_data_source_has_its_own_name(
    tmp_path: Path, words: tuple[str, ...], called: dict[str, str]
) -> None:
    assert provisioned(exported(tmp_path, *words)) == {**SHIPPED, **called}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--prometheus", ""), "--prometheus is no name"),
        (("--tempo", " "), "--tempo is no name"),
        (("--sqlite", "a\nb"), "--sqlite is no name"),
        (("--jaeger", "\udcff"), "--jaeger is no name"),
        (("--prometheus", "Tempo"), "--prometheus names another data source, too"),
        (("--jaeger", "x", "--tempo", "x"), "--jaeger names another data source, too"),
    ],
    ids=["empty", "blank", "two lines", "no text", "one that is shipped", "two that are equal"],
)
def test_a_name_no_grafana_can_have_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    assert said in footprint("dashboards", "export", str(tmp_path / "new"), *words, code=Exit.USAGE).stderr
    assert not (tmp_path / "new").exists()


def test_no_folder_is_not_the_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "it is empty" in footprint("dashboards", "export", "", code=Exit.USAGE).stderr
    assert not any(tmp_path.iterdir())


def test_the_help_says_of_each_name_whose_it_is() -> None:
    lines = footprint("dashboards", "export", "--help").stdout.splitlines()
    said = [line.split("NAME", 1)[1].strip() for line in lines if " NAME " in line]
    assert len(said) == len(set(said)) == len(SHIPPED)


def test_what_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    (tmp_path / "prometheus.yaml").write_text("mine")
    said = refused("dashboards", "export", str(tmp_path), code=Exit.LEDGER)
    assert "prometheus.yaml is there already; give --force" in said
    assert [path.name for path in tmp_path.iterdir()] == ["prometheus.yaml"]
    assert (tmp_path / "prometheus.yaml").read_text() == "mine"
    assert exported(tmp_path, "--force")["prometheus.yaml"] != b"mine"
    said = refused("dashboards", "export", str(tmp_path), code=Exit.LEDGER)
    assert "more are there already" in " ".join(said.split())


def test_a_folder_that_cannot_be_written_is_told_of_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refused("dashboards", "export", str(tmp_path / "file" / "folder"), code=Exit.LEDGER)
    assert "could not be written (Not a directory)" in said


def test_a_link_is_replaced_and_what_it_leads_to_is_left_alone(tmp_path: Path) -> None:
    folder, file, other = tmp_path / "folder", tmp_path / "file", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    file.write_text("mine")
    (folder / "alerts.yaml").symlink_to(file)
    (folder / "grafana").symlink_to(other)
    said = refused("dashboards", "export", str(folder), code=Exit.LEDGER)
    assert "more are there already" in " ".join(said.split())
    files = exported(folder, "--force")
    assert not (folder / "alerts.yaml").is_symlink()
    assert not (folder / "grafana").is_symlink()
    assert {"alerts.yaml", "grafana/runs.json"} <= set(files)
    assert file.read_text() == "mine"
    assert not any(other.iterdir())


@pytest.mark.parametrize("way", ["a folder", "a file", "a full disk"])
def test_where_one_file_cannot_be_written_none_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    (tmp_path / "alerts.yaml").write_text("mine")
    match way:
        case "a folder":
            (tmp_path / "tempo.yaml").mkdir()
        case "a file":
            (tmp_path / "provisioning").touch()
        case _:
            write = Path.write_bytes

            def full(path: Path, text: bytes) -> int:
                if path.name == "tempo.yaml":
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
                return write(path, text)

            monkeypatch.setattr(Path, "write_bytes", full)
    before = {path.name for path in tmp_path.iterdir()}
    refused("dashboards", "export", str(tmp_path), "--force", code=Exit.LEDGER)
    assert {path.name for path in tmp_path.iterdir()} == before
    assert (tmp_path / "alerts.yaml").read_text() == "mine"


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

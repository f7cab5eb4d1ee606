"""Recorders are found by name, and what goes wrong is said in a sentence."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from footprint_core.errors import RecorderError
from footprint_observe.plugins import GROUP, recorder, recorder_names

_ROOT = Path(__file__).parents[2]
_POINTS = """[footprint.recorders]
console = recorders.console:Console
otel_spans = recorders.otel_spans:OtelSpans
broken = theirs.broken:Recorder
missing = theirs.missing:Recorder
value = theirs.value:recorder
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path where a distribution with these entry points is installed."""
    info = tmp_path / "their_recorders-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-recorders\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(_POINTS)
    package = tmp_path / "theirs"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "broken.py").write_text("raise OSError('secret')\n")
    (package / "value.py").write_text("recorder = 'none'\n")
    for name in [name for name in sys.modules if name.split(".")[0] == "theirs"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    return tmp_path


@pytest.mark.usefixtures("installed")
def test_a_recorder_is_found_by_its_name() -> None:
    assert {"broken", "console", "otel_spans"} <= set(recorder_names())
    made = recorder("console")(id="mine")
    assert (type(made).__name__, made.id) == ("Console", "mine")


def test_every_recorder_of_ours_can_be_found() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][GROUP]
    assert set(points) <= set(recorder_names())
    assert [recorder(name).__qualname__ for name in points] == [
        value.partition(":")[2] for value in points.values()
    ]


@pytest.mark.usefixtures("installed")
def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(RecorderError, match=r"^No recorder is called 'jaeger'; .*console.*otel_spans.*\.$"):
        recorder("jaeger")


@pytest.mark.usefixtures("installed")
def test_a_recorder_that_does_not_load_is_named_with_its_owner_and_without_the_message() -> None:
    with pytest.raises(RecorderError) as caught:
        recorder("broken")
    assert str(caught.value) == (
        "The recorder 'broken' (entry point theirs.broken:Recorder of their-recorders) raised OSError "
        "when it was loaded; see the cause."
    )
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(RecorderError, match="is nothing that can be called; name a class or a function"):
        recorder("value")


def test_a_module_that_is_not_there_is_said_with_the_place_that_was_searched(installed: Path) -> None:
    with pytest.raises(RecorderError) as caught:
        recorder("missing")
    assert f"the name theirs resolved to {installed / 'theirs' / '__init__.py'};" in str(caught.value)


@pytest.mark.parametrize("shadow", ["recorders.py", "recorders/__init__.py"])
def test_a_file_of_the_same_name_is_named(installed: Path, tmp_path: Path, shadow: str) -> None:
    here = tmp_path / "work"
    (here / shadow).parent.mkdir(parents=True)
    (here / shadow).touch()
    program = "from footprint_observe.plugins import recorder; recorder('console')"
    path = os.pathsep.join(map(str, (here, installed, _ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=here,
        env={**os.environ, "PYTHONPATH": path},
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("footprint_core.errors.RecorderError: The recorder 'console' (entry point ")
    assert f"the name recorders resolved to {here / shadow}; rename what stands there" in last

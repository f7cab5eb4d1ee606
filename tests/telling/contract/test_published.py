"""A recorder of another package: installed, found by its name, watching a run, held to the contract."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from footprint_observe.plugins import GROUP

_ROOT = Path(__file__).parents[3]
_EXAMPLE = Path(__file__).parent / "example"

PROGRAM = """
import sys
from footprint_core import Agent, before_tool, deny, tool
from footprint_core.providers import Scripted, call, reply
from footprint_observe.plugins import recorder, recorder_names

@tool
def refund(amount: int) -> str:
    return "done"

script = Scripted([reply(calls=[call("c1", "refund", {"amount": 900})]), reply(text="Not today.")])
log = recorder("denial_log")(sys.argv[1])
agent = (
    Agent.create(provider=script, model="m", name="refunds")
    .tool(refund)
    .act(before_tool=[before_tool("refund-ceiling")(lambda call: deny("more than 500"))])
    .watch(log)
    .build()
)
print("denial_log" in recorder_names(), agent.run_sync("Refund order 41").text)
print(log.flush(10.0), agent.health().watchers[0].watcher)
"""


def wheel(folder: Path) -> Path:
    """The example as a wheel, written by hand, since a test may not fetch a build backend."""
    project = tomllib.loads((_EXAMPLE / "pyproject.toml").read_text())["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    points = project["entry-points"][GROUP]
    info = f"{name}-{version}.dist-info"
    files = {
        "denial_log.py": (_EXAMPLE / "denial_log.py").read_text(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[{GROUP}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()),
    }
    record = "".join(f"{path},{digest(text)},{len(text.encode())}\n" for path, text in files.items())
    made = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return made


def digest(text: str) -> str:
    raw = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed the example."""
    folder = tmp_path_factory.mktemp("published")
    target = folder / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install += ["--disable-pip-version-check", "--root-user-action=ignore", "--target", str(target)]
    if subprocess.run([*install[:3], "--version"], capture_output=True, timeout=60, check=False).returncode:
        pytest.skip("pip is not installed here, and the example is installed by it")
    subprocess.run([*install, str(wheel(folder))], check=True, timeout=120)
    return target


def run(installed: Path, *command: str) -> str:
    """What a command prints where the example is installed, outside of its sources."""
    path = os.pathsep.join([str(installed), str(_ROOT)])
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=installed,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_published_recorder_is_found_by_its_name_and_watches_a_run(installed: Path, tmp_path: Path) -> None:
    log = tmp_path / "denials"
    told = run(installed, "-c", PROGRAM, str(log))
    assert told.splitlines() == ["True Not today.", "True denial_log"]
    (line,) = log.read_text().splitlines()
    assert line[32:] == " refund-ceiling at before-tool"


def test_a_published_recorder_keeps_the_contract(installed: Path, tmp_path: Path) -> None:
    contract = _EXAMPLE / "contract_of_denial_log.py"
    options = ["-q", "-W", "error", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}"]
    told = run(
        installed, "-m", "pytest", *options, "-c", os.devnull, "--rootdir", str(tmp_path), str(contract)
    )
    assert "19 passed" in told


def test_it_is_short_enough_to_read() -> None:
    assert len((_EXAMPLE / "denial_log.py").read_text().splitlines()) <= 25

"""The program that finds or builds Jaeger: `python3 tests/viewers/jaeger.py`."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from viewers import jaeger

BUILDS = """
import pathlib, sys
kind, *rest = sys.argv[1:]
assert pathlib.Path("go.mod").exists()
if kind == "build":
    made = pathlib.Path(rest[rest.index("-o") + 1])
    made.write_text("#!/bin/sh")
    made.chmod(0o755)
"""
FAILS = "import sys; sys.exit('go: downloading\\ngo: no such module')"
# It opens a pipe in a process of its own, which is closed by nothing but the end of that process.
HANGS = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import time; held = open({pipe!r}, 'w'); time.sleep(600)"])
"""


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with neither Jaeger nor Go; its PATH is the folder `bin`."""
    for name in ("bin", "cache"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FOOTPRINT_JAEGER", raising=False)
    return tmp_path


def program(path: Path, text: str = "") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return path


def asked() -> tuple[int, str, list[str]]:
    """What it ends with and prints; it gets no package of this environment."""
    command = [sys.executable, "-I", "-S", str(Path(jaeger.__file__))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr.splitlines()


def test_the_one_that_is_named_comes_before_that_on_path_and_that_before_the_built_one(
    nothing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = program(nothing / "cache" / "footprint" / f"jaeger-{jaeger.VERSION}")
    assert asked() == (0, f"{built}\n", [])
    on_path = program(nothing / "bin" / "jaeger")
    assert asked() == (0, f"{on_path}\n", [])
    named = program(nothing / "elsewhere" / "my-jaeger")
    monkeypatch.setenv("FOOTPRINT_JAEGER", str(named))
    assert asked() == (0, f"{named}\n", [])


def test_a_name_of_nothing_is_refused_even_where_there_is_another_jaeger(
    nothing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(nothing / "bin" / "jaeger")
    monkeypatch.setenv("FOOTPRINT_JAEGER", str(nothing / "gone"))
    assert asked() == (1, "", ["FOOTPRINT_JAEGER names no program; let it name Jaeger's, or unset it."])


def test_without_go_it_says_what_to_do(nothing: Path) -> None:
    code, printed, (_, why) = asked()
    assert (code, printed) == (1, "")
    assert why == "Jaeger is not here, and neither is Go to build it: put `jaeger` on PATH, or install Go."


def test_what_go_says_last_is_why_it_failed(nothing: Path) -> None:
    program(nothing / "bin" / "go", FAILS)
    code, printed, (_, why) = asked()
    assert (code, printed) == (1, "")
    assert why == "Jaeger could not be built: `go get` failed (go: no such module)."
    assert list((nothing / "cache" / "footprint").iterdir()) == []


def test_what_was_built_is_kept_and_found_again(nothing: Path) -> None:
    go = program(nothing / "bin" / "go", BUILDS)
    code, printed, said = asked()
    assert code == 0, said
    go.unlink()
    assert asked() == (0, printed, [])
    assert list((nothing / "cache" / "footprint").iterdir()) == [Path(printed.rstrip())]


def test_a_build_that_takes_too_long_is_stopped_with_all_it_started(nothing: Path) -> None:
    pipe = nothing / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    program(nothing / "bin" / "go", HANGS.format(pipe=str(pipe)))
    with pytest.raises(jaeger.NoJaegerError, match="`go get` was stopped"):
        jaeger.build(seconds=4)
    assert select.select([reading], [], [], 30)[0], "nothing had started"
    assert os.read(reading, 1) == b""
    os.close(reading)

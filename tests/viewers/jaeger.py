"""Finds Jaeger, or builds it with Go: `python3 tests/viewers/jaeger.py` prints the path of the program.

It needs the standard library only, so that a build can begin before anything is installed. What is built has
all of Jaeger but its web pages, which are no part of the module: the query API answers, and one page says so.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VERSION = "1.76.0"
"""The version of the module; its program calls itself Jaeger 2.13."""

_PROGRAM = "github.com/jaegertracing/jaeger/cmd/jaeger"
_BUILD_SECONDS = 1800.0


class NoJaegerError(Exception):
    """There is no Jaeger here; says why in one sentence."""


def found() -> Path | None:
    """The Jaeger that FOOTPRINT_JAEGER names, that is on PATH, or that was built before.

    Raises:
        NoJaegerError: FOOTPRINT_JAEGER names something else.
    """
    if named := os.environ.get("FOOTPRINT_JAEGER"):
        if shutil.which(named) is None:
            raise NoJaegerError("FOOTPRINT_JAEGER names no program; let it name Jaeger's, or unset it.")
        return Path(named)
    for candidate in ("jaeger", str(built())):
        if (path := shutil.which(candidate)) is not None:
            return Path(path)
    return None


def built() -> Path:
    """Where a build is kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "footprint" / f"jaeger-{VERSION}"


def build(seconds: float = _BUILD_SECONDS) -> Path:
    """Build Jaeger, within so many seconds, and keep it.

    Raises:
        NoJaegerError: There is no Go, it cannot fetch the modules, or it took too long.
    """
    if shutil.which("go") is None:
        raise NoJaegerError(
            "Jaeger is not here, and neither is Go to build it: put `jaeger` on PATH, or install Go."
        )
    kept = built()
    kept.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        # Jaeger's own module cannot be installed as it is, since it replaces others; a module that only
        # names it as its tool can be built.
        Path(folder, "go.mod").write_text("module viewers\n", encoding="utf-8")
        _go(folder, deadline, "get", "-tool", f"{_PROGRAM}@v{VERSION}")
        _go(folder, deadline, "build", "-ldflags=-s -w", "-o", "jaeger", _PROGRAM)
        # In one step, so that nobody finds half a program, and two builds at once do no harm.
        Path(folder, "jaeger").replace(kept)
    return kept


def _go(folder: str, deadline: float, *arguments: str) -> None:
    with subprocess.Popen(
        ["go", *arguments],
        cwd=folder,
        # Without a C compiler, and with no workspace of whoever calls around it.
        env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as go:
        try:
            _, said = go.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except BaseException as error:
            # Its compilers would go on without it.
            os.killpg(go.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise NoJaegerError(
                    f"Jaeger was not built in time: `go {arguments[0]}` was stopped."
                ) from None
            raise
    if go.returncode:
        last = (said.strip().splitlines() or ["it did not say why"])[-1]
        raise NoJaegerError(f"Jaeger could not be built: `go {arguments[0]}` failed ({last}).")


def main() -> int:
    """Print the path of Jaeger, building it first when there is none."""
    try:
        path = found()
        if path is None:
            print(f"Building Jaeger {VERSION} with Go; the first time takes minutes.", file=sys.stderr)
            path = build()
    except NoJaegerError as error:
        print(error, file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""An output that cannot be written, and a ledger that is taken away while it is followed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from commanded import demonstrate, environment, installed
from footprint_core.errors import LedgerReadError
from footprint_observe.query import follow

ASKED = ("runs", "runs --json", "timeline last", "find refund", "verify --heads", "sql 'select 1'", "--help")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return demonstrate(tmp_path_factory.mktemp("l") / "l.db")


def shell(line: str, path: str) -> subprocess.CompletedProcess[str]:
    """What bash makes of a line in which `footprint` is the command, with the exit code of the command."""
    script = f"set -o pipefail\nfootprint() {{ '{installed()}' \"$@\"; }}\n{line}"
    return subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(FOOTPRINT_DB=path),
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no disk that is always full here")  # noqa: PTH110
@pytest.mark.parametrize("words", ASKED)
def test_a_full_disk_is_told_in_one_sentence_and_ends_with_3(path: str, words: str) -> None:
    done = shell(f"footprint {words} > /dev/full", path)
    assert (done.returncode, done.stderr) == (
        3,
        "Error: The output could not be written (No space left on device); send it elsewhere.\n",
    )


@pytest.mark.parametrize("words", ASKED)
def test_no_output_at_all_is_no_error(path: str, words: str) -> None:
    done = shell(f"footprint {words} >&-", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert shell(f"footprint {words} >&- 2>&-", path).returncode == 0


def test_tail_ends_soon_after_its_reader_has_gone_though_nothing_is_appended(path: str) -> None:
    done = shell("footprint tail --since 1w | head -1", path)
    assert done.returncode == 141
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_removed_or_replaced_is_not_followed_any_longer(
    tmp_path: Path, *, replaced: bool
) -> None:
    path = Path(demonstrate(tmp_path / "l.db"))
    other = Path(demonstrate(tmp_path / "other.db"))
    looks = 0

    def looked() -> None:
        nonlocal looks
        looks += 1
        if looks == 2:
            if replaced:
                other.replace(path)
            else:
                path.unlink()
        assert looks < 5

    with pytest.raises(LedgerReadError, match="was removed or replaced while it was followed"):
        next(follow(path, every=0.01, looked=looked))
    assert looks == 2

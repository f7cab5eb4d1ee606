"""What a shell completes: commands, options, the newest runs, the rules that decided."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from commanded import demonstrate, environment, footprint, installed, refused
from footprint_observe.query import run


def completed(path: str, words: str) -> list[str]:
    """What the command offers behind some words, the last of which is begun."""
    done = subprocess.run(
        [installed()],
        capture_output=True,
        text=True,
        check=True,
        env=environment(
            _FOOTPRINT_COMPLETE="bash_complete",
            COMP_WORDS=words,
            COMP_CWORD=str(len(words.split(" ")) - 1),
            FOOTPRINT_DB=path,
        ),
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell: str) -> None:
    script = footprint("completion", shell).stdout
    assert "_FOOTPRINT_COMPLETE" in script
    assert f"{shell}_complete" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=60)


def test_a_shell_there_is_no_script_for_is_refused() -> None:
    assert "tcsh" in refused("completion", "tcsh", code=2)


def test_commands_runs_and_rules_are_completed(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    run_id = run(path)["run_id"]
    assert completed(path, "footprint ti") == ["timeline"]
    assert completed(path, "footprint show ") == ["last", run_id]
    assert completed(path, f"footprint timeline {run_id[:8]}") == [run_id]
    assert completed(path, "footprint decisions --run la") == ["last"]
    assert completed(path, "footprint decisions --rule ") == [
        "four-eyes",
        "no-codenames",
        "refund-ceiling",
        "scrub-ssns",
        "strip-pii",
    ]
    assert completed("nothing.db", f"footprint decisions --db {path} --rule re") == ["refund-ceiling"]


def test_without_a_ledger_nothing_is_completed_and_nothing_said(tmp_path: Path) -> None:
    for words in ("footprint show ", "footprint decisions --rule "):
        assert completed(str(tmp_path / "none.db"), words) == []
    assert list(tmp_path.iterdir()) == []

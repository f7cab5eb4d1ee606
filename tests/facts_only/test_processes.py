"""What leaves a process: what its recorders export, what it prints, and what its loggers write."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from facts_only.shipping import RECORDERS
from facts_only.sweep import leaks
from file_ledger import file_bytes
from planted import WORD

TESTS = Path(__file__).parents[1]


def played(folder: Path, what: str, *id: str, code: int = 0) -> tuple[str, dict[str, bytes]]:
    """What a process said, and everything that left it; in what folder its ledger is and the exports are."""
    (folder / "exports").mkdir(exist_ok=True)
    command = [sys.executable, "-X", "dev", "-m", "facts_only.child", str(folder), what, *id]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, cwd=TESTS)
    assert done.returncode == code, done.stderr.decode()
    held = {path.name: path.read_bytes() for path in (folder / "exports").iterdir()}
    assert set(held) == {*RECORDERS, "notices"}
    # Who gives a run up begins no segment, and spans are told of none.
    told = [name for name in RECORDERS if b"planted" in held[name]]
    assert told == ([] if what == "gives_up" else [*RECORDERS])
    return done.stdout.decode().strip(), {**held, "output": done.stdout, "errors": done.stderr}


def test_nothing_that_was_said_leaves_a_process_but_into_the_ledger(tmp_path: Path) -> None:
    _, held = played(tmp_path, "everything")
    assert leaks(held, WORD) == []
    assert b"raised RuntimeError" in held["errors"], "its loggers were heard"
    assert WORD.encode() in file_bytes(tmp_path / "l.db")


def test_a_question_asked_in_one_process_and_answered_in_another_is_told_of_without_a_word(
    tmp_path: Path,
) -> None:
    pause_id, asked = played(tmp_path, "pauses")
    _, answered = played(tmp_path, "resumes", pause_id)
    assert (leaks(asked, WORD), leaks(answered, WORD)) == ([], [])
    assert WORD.encode() in file_bytes(tmp_path / "l.db")


def test_a_run_whose_process_dies_is_told_of_without_a_word_and_so_is_who_goes_on_with_it(
    tmp_path: Path,
) -> None:
    for then in ("recovers", "gives_up"):
        folder = tmp_path / then
        folder.mkdir()
        run_id, dead = played(folder, "dies", code=-signal.SIGKILL)
        _, behind = played(folder, then, run_id)
        assert (leaks(dead, WORD), leaks(behind, WORD)) == ([], [])
        assert b"abandoned" in behind["jsonl"], "the segment that had no end"
        assert WORD.encode() in file_bytes(folder / "l.db")

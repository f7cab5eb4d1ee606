"""Several processes write to one file at once, and several fight for one run."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crash import strace
from crash.desk import CALLS, IDEMPOTENT, Notes
from crash.killable import Order
from crash.process import notes_of, play
from crash.verdict import positions, problems, ran

SECONDS = 60.0 if os.environ.get("FOOTPRINT_FULL") else 1.0
SHORT_CALLS = 4


def at_once(at: Path, count: int, order: Order, *, seconds: float = 60.0) -> None:
    """So many processes in a folder, all of them open before the first begins."""
    command = strace.python("crash.killable", str(at / "l.db"), str(at / "notes"))
    command.append(msgspec.json.encode(msgspec.structs.replace(order, waits=True)).decode())
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=strace.TESTS
                )
            )
            for _ in range(count)
        ]
        try:
            for one in processes:
                assert one.stdout is not None
                assert one.stdout.readline() == "ready\n"
            for one in processes:
                assert one.stdin is not None
                one.stdin.write("go\n")
                one.stdin.flush()
            assert [one.wait(seconds) for one in processes] == [0] * count
        finally:
            for one in processes:
                one.kill()


def acknowledged(notes: Notes) -> int:
    return sum(len(note["prints"]) for note in notes.of("kept"))


@pytest.mark.parametrize("count", [2, 4])
def test_processes_that_write_to_one_file_lose_no_row_fork_no_run_and_never_stand_still(
    count: int, tmp_path: Path
) -> None:
    order = Order(seconds=SECONDS, runs=2, short=True, durability="process")
    at_once(tmp_path, count, order, seconds=SECONDS + 60)
    with notes_of(tmp_path) as notes:
        assert problems(tmp_path / "l.db", notes) == []
        assert notes.of("failed") == notes.of("refused") == []
        there = positions(tmp_path / "l.db")
        assert all(found == list(range(1, len(found) + 1)) for found in there.values())
        assert sum(map(len, there.values())) == acknowledged(notes)
        answers = notes.of("answer")
        assert len(answers) >= 2 * count
        assert set(there) == {answer["run"] for answer in answers}
        assert set(ran(notes).values()) == {1}
        assert len(ran(notes)) == SHORT_CALLS * len(answers)
        print(f"{count} processes: {acknowledged(notes)} rows of {len(there)} runs in {SECONDS:g} s")


def bodies_of_the_harmful(notes: Notes) -> Counter[str]:
    """How often the bodies ran that must not run twice."""
    counts = {call: times for (_, call), times in ran(notes).items()}
    return Counter({call: times for call, times in counts.items() if CALLS[call] not in IDEMPOTENT})


def fought_for(at: Path, *, losers: set[str]) -> dict[str, Any]:
    """What came of a run that several processes wanted: one of them has the answer."""
    with notes_of(at) as notes:
        assert problems(at / "l.db", notes) == []
        answers, failed = notes.of("answer"), notes.of("failed")
        assert len(answers) == 1
        assert {one["error"] for one in failed} <= losers
        assert set(bodies_of_the_harmful(notes).values()) <= {1}
        there = positions(at / "l.db")
        assert len(there) == 1
        return {"failed": len(failed), "answer": answers[0]["text"]}


def test_of_processes_that_answer_one_pause_exactly_one_goes_on(tmp_path: Path) -> None:
    assert play(tmp_path, Order(seam="before:pause.answered")) == -9
    at_once(tmp_path, 4, Order(mode="resume"))
    assert fought_for(tmp_path, losers={"StaleDecisionError"})["failed"] == 3


@pytest.mark.parametrize("count", [2, 4])
def test_of_processes_that_recover_one_run_exactly_one_comes_to_its_end(count: int, tmp_path: Path) -> None:
    assert play(tmp_path, Order(seam="in:body", when=2)) == -9
    with notes_of(tmp_path) as notes:
        run_id = notes.of("begins")[0]["run"]
    at_once(tmp_path, count, Order(mode="recover", run_id=run_id))
    lost = fought_for(tmp_path, losers={"RunTakenOverError", "RecoverError", "StaleDecisionError"})
    assert lost["failed"] == count - 1
    assert "may have run" in lost["answer"]

"""kill -9 at eight seams: nothing acknowledged is lost, no body ran without its intent, the run goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from crash import strace
from crash.disk import opened_later
from crash.killable import Order
from crash.kills import SEAMS, STRACED, Seam, kills, table
from crash.process import opening_calls, play
from footprint_core.errors import LedgerOpenError
from footprint_observe.store.connect import open_reader

FULL = bool(os.environ.get("FOOTPRINT_FULL"))


@pytest.mark.parametrize("seam", SEAMS)
def test_a_kill_at_a_seam_loses_nothing_and_the_run_goes_on(seam: Seam) -> None:
    if seam in STRACED and strace.why_not():
        pytest.skip(strace.why_not())
    # Eight runs are gone on with behind a kill of eight.
    for one in kills(1 if seam == "in a group commit of 8 runs" else 2, seams=(seam,)):
        assert one.problems == ()
        assert one.hit


def refusal(path: Path) -> str:
    """What a reader is told who may not make anything of what is there."""
    try:
        open_reader(path).close()
    except LedgerOpenError as error:
        return str(error)
    return ""


@pytest.mark.skipif(bool(strace.why_not()), reason=strace.why_not() or "strace works")
def test_a_kill_while_a_file_is_made_leaves_what_the_next_process_can_open(tmp_path: Path) -> None:
    last = opening_calls("pwrite64").last
    for number in (*range(1, 40), *range(40, last, 97)) if FULL else (12, last // 2):
        at = tmp_path / str(number)
        at.mkdir()
        killing = strace.killing(at / "trace", "pwrite64", when=number)
        assert play(at, Order(short=True), *killing) == -signal.SIGKILL
        assert "damaged" not in refusal(at / "l.db")
        assert opened_later(at) == []


@pytest.mark.skipif(not FULL, reason="FOOTPRINT_FULL=1 kills 26 times at each seam")
def test_two_hundred_kills(capsys: pytest.CaptureFixture[str]) -> None:
    seams: tuple[Seam, ...] = tuple(seam for seam in SEAMS if seam not in STRACED or not strace.why_not())
    done = list(kills(26, seams=seams))
    with capsys.disabled():
        print(f"\n{table(done)}")
    assert [problem for one in done for problem in one.problems] == []
    assert {seam: sum(one.hit for one in done if one.seam == seam) >= 25 for seam in seams} == dict.fromkeys(
        seams, True
    )

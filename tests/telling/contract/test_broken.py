"""The contract catches what it is there for: recorders that break one promise each, by the check of it."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest import SkipTest

import pytest

import broken_recorders as broken
from footprint_core import Recorder
from footprint_observe.testing import RecorderContract

CAUGHT = [
    (broken.BlankId, "it_has_an_id_that_stays", "must be a string that is not blank"),
    (broken.OtherId, "it_has_an_id_that_stays", "must stay the same"),
    (broken.NoFlush, "it_has_an_id_that_stays", "needs flush; NoFlush has none"),
    (broken.Picky, "it_takes_every_event", "on_event(agent.output_schema_retry) raised KeyError"),
    (broken.Strict, "it_takes_events_of_runs_it_never_heard_of", "raised LookupError"),
    (broken.InOrder, "it_takes_events_out_of_order_and_twice", "raised ValueError"),
    (broken.Final, "it_takes_events_after_it_was_closed", "raised RuntimeError"),
    (broken.NoAnswer, "flushing_says_whether_all_was_shipped", "must give a bool, not NoneType"),
    (broken.Hasty, "flushing_says_whether_all_was_shipped", "nothing may be queued"),
    (broken.Forgets, "flushing_says_whether_all_was_shipped", "must give True"),
    (broken.CountsInWords, "flushing_says_whether_all_was_shipped", "`dropped` must be a number"),
    (broken.ClosesOnce, "closing_twice_is_harmless", "raised RuntimeError"),
    (broken.NeverCloses, "closing_twice_is_harmless", "did not come back within"),
    (broken.Writes, "handing_over_touches_nothing", "but it called BufferedWriter.write, io.open"),
    (broken.Sends, "handing_over_touches_nothing", "but it called socket.send"),
    (broken.Sleeps, "handing_over_touches_nothing", "but it called time.sleep"),
    (broken.Moves, "handing_over_touches_nothing", "but it called posix.replace"),
    (broken.LooksForAFile, "handing_over_touches_nothing", "but it called posix.stat"),
    (broken.OpensADatabase, "handing_over_touches_nothing", "but it called _sqlite3.connect"),
    (broken.AwaitsAnEvent, "handing_over_touches_nothing", "but it called Condition.wait"),
    (broken.AwaitsAThread, "handing_over_touches_nothing", "but it called Thread.join"),
    (broken.Prints, "handing_over_touches_nothing", "but it called builtins.print"),
    (broken.Waits, "handing_over_does_not_wait_for_who_ships", "on_event() did not come back"),
    (broken.Blocks, "what_finds_no_room_is_lost_and_counted", "on_event() did not come back"),
    (broken.Hoards, "what_finds_no_room_is_lost_and_counted", "Nothing was dropped after 100 runs"),
    (broken.SaysYes, "handing_over_does_not_wait_for_who_ships", "flush() must give False"),
    (broken.SaysNothing, "what_finds_no_room_is_lost_and_counted", "What was lost must be said"),
    (broken.Patient, "handing_over_does_not_wait_for_who_ships", "close(0.2) did not come back"),
    (broken.OneThread, "sessions_in_threads", "It raised "),
    (broken.Cancels, "a_run", "changed how the run ended"),
    (broken.Cancels, "a_run_that_fails", "changed how the run ended"),
    (broken.Exits, "a_run_without_an_event_loop", "The run raised SystemExit"),
    (broken.Cancels, "a_run_that_pauses_and_resumes", "changed how the run ended"),
    (broken.Cancels, "a_run_that_is_cancelled", "changed how the run ended"),
    (broken.Meddles, "a_run_with_parallel_tools", "changed what the model is sent"),
    (broken.OwnThread, "a_forked_process_begins_anew", "In a forked process: AssertionError: flush()"),
    (broken.Doubles, "a_forked_process_begins_anew", "shipped twice"),
    (broken.Loses, "a_forked_process_begins_anew", "was not shipped"),
    (broken.Looks, "no_value_is_shipped", "Values of a run were shipped (as it is)"),
    (broken.LooksInBase64, "no_value_is_shipped", "Values of a run were shipped (base64)"),
    (broken.LooksInHex, "no_value_is_shipped", "Values of a run were shipped (hexadecimal)"),
    (broken.ShipsNothing, "no_value_is_shipped", "Nothing was shipped"),
]


class Contract(RecorderContract):
    """The contract of one class of recorders, for a machine that has much else to do and no time to wait."""

    crowd = 100

    def __init__(self, kind: type[broken.Good], path: Path) -> None:
        self.kind = kind
        self.patience = kind.patience
        self.path = path
        self.open = threading.Event()
        self.open.set()
        self.shut = threading.Event()
        path.touch()

    def make(self) -> Recorder:
        return self.kind(self.path, self.open)

    def stuck(self) -> Recorder:
        return self.kind(self.path, self.shut)

    def shipped(self) -> bytes:
        return self.path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shipped"


def checks(contract: RecorderContract) -> Iterator[str]:
    return (name for name in dir(contract) if name.startswith("test_"))


def test_a_good_recorder_passes(path: Path) -> None:
    contract = Contract(broken.Good, path)
    names = list(checks(contract))
    assert len(names) == 19
    for name in names:
        getattr(contract, name)()
    contract.shut.set()


@pytest.mark.parametrize(("kind", "check", "said"), CAUGHT)
def test_a_broken_promise_is_caught(path: Path, kind: type[broken.Good], check: str, said: str) -> None:
    contract = Contract(kind, path)
    with pytest.raises(AssertionError, match=re.escape(said)):
        getattr(contract, f"test_{check}")()
    contract.shut.set()


def test_every_check_catches_something(path: Path) -> None:
    caught = {f"test_{check}" for _, check, _ in CAUGHT}
    assert set(checks(Contract(broken.Good, path))) == caught


def test_what_a_subclass_does_not_say_is_skipped_and_said() -> None:
    class Silent(RecorderContract):
        """Says nothing at all."""

    with pytest.raises(NotImplementedError, match="make"):
        Silent().test_it_takes_every_event()
    with pytest.raises(SkipTest, match="stuck"):
        Silent().test_handing_over_does_not_wait_for_who_ships()
    with pytest.raises(SkipTest, match="stuck"):
        Silent().test_what_finds_no_room_is_lost_and_counted()
    with pytest.raises(SkipTest, match="shipped"):
        Silent().test_no_value_is_shipped()


def test_it_needs_no_pytest() -> None:
    program = """
import sys, unittest
from footprint_observe.testing import RecorderContract
from recorders.memory import Memory

class TestMemory(RecorderContract, unittest.TestCase):
    def make(self):
        return Memory()

done = unittest.main(exit=False, verbosity=0).result
print(done.wasSuccessful(), done.testsRun, len(done.skipped), "pytest" in sys.modules)
"""
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-O", "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=root, timeout=120, check=False, capture_output=True, text=True)
    assert done.stdout == "True 19 3 False\n", done.stderr

"""`footprint demo`, as a person types it."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from commanded import footprint, installed, refused
from otlp_receiver import OtlpReceiver

ROWS = [
    ("input", "scrub-ssns", "allow", 1),
    ("input", "no-codenames", "allow", 0),
    ("before-tool", "refund-ceiling", "allow", 0),
    ("before-tool", "four-eyes", "allow", 0),
    ("after-tool", "strip-pii", "allow", 1),
    ("before-tool", "refund-ceiling", "deny", 0),
    ("before-tool", "refund-ceiling", "allow", 0),
    ("before-tool", "four-eyes", "ask", 0),
    ("before-tool", "four-eyes", "allow", 0),
    ("after-tool", "strip-pii", "allow", 0),
    ("output", "scrub-ssns", "allow", 0),
    ("output", "no-codenames", "allow", 1),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _rows(path: Path) -> list[tuple[object, ...]]:
    db = sqlite3.connect(path)
    found = db.execute("select moment, middleware, outcome, changed from decisions order by id").fetchall()
    db.close()
    return found


def test_the_demonstration_tells_its_story_from_the_ledger(here: Path) -> None:
    output = footprint("demo", "--approve").output
    assert _rows(here / "footprint.db") == ROWS
    for told in (
        "masked 1 social security number(s)",
        "Refunds above $500 are not yours to give",
        "Refund $450 for order 41?",
        "approved by",
        "removed name, email, address",
        "Our refund desk has refunded you $450.",
    ):
        assert told in output.replace("\n", " ") or re.sub(r"\s+", " ", told) in re.sub(r"\s+", " ", output)
    assert output.count('sqlite3 -box footprint.db "select') == 3


def test_the_queries_the_demonstration_prints_work(here: Path) -> None:
    output = footprint("demo", "--approve").output
    queries = re.findall(r'sqlite3 -box footprint.db "(.*)"', output)
    assert len(queries) == 3
    for query in queries:
        assert footprint("sql", query).output.count("\n") > 1


def test_without_a_terminal_the_demonstration_declines_and_says_how_to_approve(here: Path) -> None:
    output = footprint("demo").output
    assert "footprint demo --approve" in output
    assert "could not approve" in output
    assert _rows(here / "footprint.db")[8] == ("before-tool", "four-eyes", "deny", 0)
    assert footprint("demo", "--decline").exit_code == 0


def test_two_answers_to_its_question_are_refused(here: Path) -> None:
    for given in (("--approve", "--decline"), ("--decline", "--approve")):
        assert "give one of them" in refused("demo", *given, code=2)
    assert list(here.iterdir()) == []


def test_the_demonstration_ships_its_spans_and_says_how_to_find_them(here: Path) -> None:
    with OtlpReceiver() as receiver:
        output = footprint("demo", "--approve", "--otlp", receiver.endpoint).output
        spans = receiver.wait(22)
    assert f"The spans were sent to {receiver.endpoint}, for the service footprint." in output
    assert {span.resource["service.name"] for span in spans} == {"footprint"}
    runs = [span for span in spans if span.name == "invoke_agent refunds"]
    assert len(runs) == 2
    for span in runs:
        assert f"\n  footprint.run.id={span.attributes['footprint.run.id']}\n" in output


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_the_demonstration_says_what_was_lost_and_not_that_it_was_sent(here: Path, scheme: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"{scheme}://127.0.0.1:{free.getsockname()[1]}"
    said = re.sub(r"\s+", " ", footprint("demo", "--approve", "--otlp", nobody).output)
    assert "22 spans were lost; look at the collector and its address." in said
    assert "were sent" not in said
    assert "footprint.run.id" not in said


def test_the_demonstration_says_when_a_sampler_left_it_out(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with OtlpReceiver() as receiver:
        output = footprint("demo", "--approve", "--otlp", receiver.endpoint).output
        assert receiver.spans == ()
    assert output.endswith("Not all of this run was sent; OTEL_TRACES_SAMPLER says how much is.\n")


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _wait_until_it_reads(pid: int) -> None:
    """Wait until a process sleeps: a signal in the moment before it reads would only be noted."""
    deadline, asleep = time.monotonic() + 30, 0
    while asleep < 200 and time.monotonic() < deadline:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs a terminal and /proc")
def test_the_first_interrupt_at_the_question_ends_the_demonstration(here: Path) -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [installed(), "demo"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        # A shell starts what it runs in the background with this signal ignored, and that is inherited.
        preexec_fn=_heed_interrupts,  # noqa: PLW1509 - it takes no lock
    ) as demo:
        os.close(theirs)
        try:
            said = b""
            while b"Approve?" not in said:
                assert select.select([ours], [], [], 60)[0], said
                said += os.read(ours, 4096)
            _wait_until_it_reads(demo.pid)
            demo.send_signal(signal.SIGINT)
            assert demo.wait(timeout=60) == 1
        finally:
            demo.kill()
            os.close(ours)
    # It was closed: nothing stands beside the ledger.
    assert [path.name for path in here.iterdir()] == ["footprint.db"]


def test_the_installed_command_works_in_a_process_of_its_own(here: Path) -> None:
    done = subprocess.run(
        [installed(), "demo", "--approve"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert _rows(here / "footprint.db") == ROWS

"""Lines that are whole or absent, whatever the disk, other processes and a fork do."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from footprint_core import Agent
from footprint_core.events import Event
from footprint_core.providers import Scripted, reply
from json_lines import ROOT, SAMPLES, events_in, tell
from recorders import jsonl
from recorders.jsonl import Jsonl


def test_what_a_program_that_knows_of_no_lock_appends_in_between_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    lines = Jsonl(path)
    write = jsonl._write

    def behind_another(file: Any, data: bytes) -> None:
        with path.open("a") as other:
            other.write('{"type":"of another program"}\n')
        write(file, data)

    monkeypatch.setattr(jsonl, "_write", behind_another)
    tell(lines)
    lines.close(10.0)
    first, *rest = path.read_text().splitlines()
    assert first == '{"type":"of another program"}'
    assert [msgspec.json.decode(line, type=Event) for line in rest] == list(SAMPLES)


WRITER = """
import sys
from footprint_observe.testing import sample_events
from recorders.jsonl import Jsonl
lines = Jsonl(sys.argv[1])
print("begun", flush=True)
for number in range(int(sys.argv[2])):
    for event in sample_events(f"{sys.argv[3]}-{number}"):
        lines.on_event(event)
    assert lines.flush(60.0)
lines.close(10.0)
"""


def writer(path: Path, runs: int, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(runs), name]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_several_processes_append_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    writers = [writer(path, 20, f"writer-{number}") for number in range(4)]
    for one in writers:
        assert one.wait(120) == 0
        assert one.stdout is not None
        one.stdout.close()
    told: dict[str, list[int]] = {}
    for event in events_in(path):
        told.setdefault(event.run_id, []).append(event.sequence)
    assert sorted(told) == sorted(f"writer-{w}-{n}" for w in range(4) for n in range(20))
    assert all(sequences == list(range(1, len(SAMPLES) + 1)) for sequences in told.values())


def test_a_killed_process_leaves_at_most_one_line_unfinished(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    killed = [writer(path, 100_000, f"killed-{number}") for number in range(3)]
    for one in killed:
        assert one.stdout is not None
        assert one.stdout.readline() == "begun\n"
    survivor = writer(path, 20, "survivor")
    for one in killed:
        one.send_signal(signal.SIGKILL)
        assert one.wait(60) == -signal.SIGKILL
        assert one.stdout is not None
        one.stdout.close()
    assert survivor.wait(120) == 0
    assert survivor.stdout is not None
    survivor.stdout.close()
    whole: list[Event] = []
    torn = 0
    for line in path.read_bytes().splitlines():
        try:
            whole.append(msgspec.json.decode(line, type=Event))
        except msgspec.DecodeError:
            torn += 1
    assert torn <= len(killed)
    assert sum(event.run_id.startswith("survivor-") for event in whole) == 20 * len(SAMPLES)


LIMITED = """
import resource, sys
from pathlib import Path
from footprint_observe.testing import sample_events
from recorders.jsonl import Jsonl
path = Path(sys.argv[1])
lines = Jsonl(path)
def tell():
    for event in sample_events():
        lines.on_event(event)
    return lines.flush(10.0)
assert tell()
whole = path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (whole + whole // 2, resource.RLIM_INFINITY))
print(tell(), path.stat().st_size == whole, lines.dropped, lines.errors, *lines.notices)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(tell(), path.stat().st_size == 2 * whole)
lines.close(10.0)
"""


def test_half_a_batch_is_taken_back_and_what_did_not_fit_is_counted_and_said(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    command = [sys.executable, "-c", LIMITED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
    lost = len(SAMPLES)
    said = f"{lost} events could not be written (File too large)."
    assert done.stdout.splitlines() == [f"False True {lost} 1 {said}", "True True"]
    # The log says it too, once.
    (logged,) = done.stderr.splitlines()
    assert logged.startswith("The recorder jsonl ")
    assert "OSError" in logged
    assert events_in(path) == [*SAMPLES, *SAMPLES]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    at = tmp_path / "disk"
    at.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(at)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False, timeout=30).returncode:
        pytest.skip("a small disk needs root, and a machine that lets it mount one")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True, timeout=30)


def test_a_full_disk_costs_lines_and_no_run(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = small_disk / "events.jsonl"
    lines = Jsonl(path)
    others = small_disk / "others"
    others.write_bytes(bytes(40_000))
    while lines.flush(10.0):
        tell(lines)

    async def play() -> str:
        agent = (
            Agent.create(provider=Scripted([reply(text="hello")]), model="m", name="a").watch(lines).build()
        )
        answer: Any = await agent.run("hello")
        tell(lines, times=10)
        assert not lines.flush(10.0)
        health = agent.health().watchers[0]
        assert (health.failures, health.queued) == (0, 0)
        assert health.dropped == lines.dropped > 0
        assert health.errors > 0
        assert health.notices == (f"{lines.dropped} events could not be written (No space left on device).",)
        return str(answer.text)

    assert asyncio.run(play()) == "hello"
    others.unlink()
    before = len(events_in(path))
    tell(lines)
    assert lines.flush(10.0)
    lines.close(10.0)
    assert len(events_in(path)) == before + len(SAMPLES)
    assert ["OSError" in record.getMessage() for record in caplog.records] == [True]


def test_a_lock_somebody_keeps_costs_lines_and_no_time(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = Jsonl(path)
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        tell(lines, times=1000)
        assert not lines.flush(0.05)
        dropped = lines.dropped
        before = time.monotonic()
        lines.close(0.05)
        assert time.monotonic() - before < 5.0
        assert 0 < dropped < lines.dropped == 1000 * len(SAMPLES)


def test_a_process_that_was_forked_in_the_middle_of_a_line_keeps_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    lines = Jsonl(path)
    children: list[int] = []
    wake, over = os.pipe()
    write = jsonl._write

    def forks(file: Any, data: bytes) -> None:
        if not children:
            children.append(os.fork())
            if not children[0]:
                os.close(over)
                os.read(wake, 1)
                os._exit(0)
        write(file, data)

    monkeypatch.setattr(jsonl, "_write", forks)
    tell(lines)
    assert lines.flush(10.0)
    other = Jsonl(path)
    tell(other)
    assert other.flush(10.0)
    os.close(over)
    assert os.waitpid(children[0], 0)[1] == 0
    os.close(wake)
    for one in (lines, other):
        one.close(10.0)
    assert events_in(path) == [*SAMPLES, *SAMPLES]

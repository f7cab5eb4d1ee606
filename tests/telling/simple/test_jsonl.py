"""A line for each event: whole or absent, whatever happens to the disk, the file and the processes."""

from __future__ import annotations

import asyncio
import io
import json
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

from footprint_core import Agent, RecorderError
from footprint_core.events import AgentConfigured, Event
from footprint_core.providers import Scripted, reply
from footprint_observe.plugins import recorder
from footprint_observe.testing import sample_events
from recorders.jsonl import Jsonl

_ROOT = Path(__file__).parents[3]
_SAMPLES = sample_events()


def tell(lines: Jsonl, times: int = 1) -> None:
    for _ in range(times):
        for event in _SAMPLES:
            lines.on_event(event)


def events_in(path: Path) -> list[Event]:
    """The events of a file, each of whose lines must be whole."""
    text = path.read_bytes()
    assert text.endswith(b"\n")
    return [msgspec.json.decode(line, type=Event) for line in text.splitlines()]


def test_an_event_is_a_line_and_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = Jsonl(path)
    tell(lines)
    assert lines.flush(10.0)
    assert (lines.dropped, lines.queued, lines.errors, lines.notices) == (0, 0, 0, ())
    lines.close(10.0)
    assert events_in(path) == list(_SAMPLES)
    first, *_ = path.read_text().splitlines()
    assert json.loads(first)["type"] == "agent.run_configured"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_run_is_told_to_the_file_its_name_was_given(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"

    async def play() -> None:
        made = recorder("jsonl")(path)
        agent = (
            Agent.create(provider=Scripted([reply(text="hello")]), model="m", name="a").watch(made).build()
        )
        async with agent:
            await agent.run("hello")

    asyncio.run(play())
    assert [event.type for event in events_in(path)][:: len(events_in(path)) - 1] == [
        "agent.run_configured",
        "agent.turn_end",
    ]
    assert "hello" not in path.read_text()


def test_what_is_there_stays_with_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"type":"of an older run"}\n')
    path.chmod(0o640)
    lines = Jsonl(str(path))
    tell(lines)
    lines.close(10.0)
    assert path.read_text().startswith('{"type":"of an older run"}\n{"type":"agent.run_configured"')
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_line_a_dead_process_left_unfinished_harms_no_other(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"type":"agent.turn_end"}\n{"type":"agent.tu')
    lines = Jsonl(path)
    tell(lines)
    lines.close(10.0)
    whole, torn, *rest = path.read_text().splitlines()
    assert (whole, torn) == ('{"type":"agent.turn_end"}', '{"type":"agent.tu')
    assert [msgspec.json.decode(line, type=Event) for line in rest] == list(_SAMPLES)


def test_a_name_that_is_no_unicode_loses_no_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = Jsonl(path)
    odd = [event for event in _SAMPLES if isinstance(event, AgentConfigured)]
    lines.on_event(msgspec.structs.replace(odd[0], agent_name="half \ud800"))
    tell(lines)
    assert lines.flush(10.0)
    lines.close(10.0)
    first, *rest = path.read_text().splitlines()
    assert json.loads(first)["agent_name"] == "half \ud800"
    assert len(rest) == len(_SAMPLES)


@pytest.mark.parametrize(
    "place", ["folder", "missing/events.jsonl", "file/events.jsonl", "pipe", "nul\0", ""]
)
def test_a_place_that_takes_no_lines_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecorderError, match=r"; give the path of (a file|one).*\.$"):
        Jsonl(place)


@pytest.mark.parametrize("to", [None, 3, io.StringIO(), sys.stdout, [b"x"]])
def test_what_takes_no_bytes_is_refused_at_once(to: Any) -> None:
    with pytest.raises(
        RecorderError, match=r"^Jsonl\(\) takes the path of a file or something open for bytes"
    ):
        Jsonl(to)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become a user who may do less")
def test_a_file_one_may_not_write_is_refused(tmp_path: Path) -> None:
    program = """
import os, sys
from footprint_core import RecorderError
from recorders.jsonl import Jsonl
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    Jsonl("/etc/passwd")
except RecorderError as error:
    print(error)
"""
    assert run(program).startswith("Events cannot be appended to that path (PermissionError); ")


def test_a_stream_is_written_to_and_left_open(tmp_path: Path) -> None:
    program = """
import sys
from footprint_observe.testing import sample_events
from recorders.jsonl import Jsonl
lines = Jsonl(sys.stdout.buffer)
for event in sample_events():
    lines.on_event(event)
lines.close(10.0)
print("and it is open")
"""
    *told, last = run(program).splitlines()
    assert [msgspec.json.decode(line, type=Event) for line in told] == list(_SAMPLES)
    assert last == "and it is open"


def run(program: str) -> str:
    """What a program prints, in a process of its own."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=_ROOT)
    assert done.stderr == ""
    return done.stdout


def test_a_file_that_was_moved_away_is_left_alone_and_a_new_one_begun(tmp_path: Path) -> None:
    path, moved = tmp_path / "events.jsonl", tmp_path / "events.jsonl.1"
    lines = Jsonl(path)
    tell(lines)
    assert lines.flush(10.0)
    path.rename(moved)
    tell(lines, times=2)
    lines.close(10.0)
    assert (len(events_in(moved)), len(events_in(path))) == (len(_SAMPLES), 2 * len(_SAMPLES))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_emptied_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = Jsonl(path)
    tell(lines)
    assert lines.flush(10.0)
    os.truncate(path, 0)
    tell(lines)
    lines.close(10.0)
    assert events_in(path) == list(_SAMPLES)


def test_a_program_that_changes_its_folder_goes_on_with_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    lines = Jsonl("events.jsonl")
    monkeypatch.chdir(tmp_path / "elsewhere")
    tell(lines)
    lines.close(10.0)
    assert len(events_in(tmp_path / "events.jsonl")) == len(_SAMPLES)
    assert not list((tmp_path / "elsewhere").iterdir())


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
    return subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)


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
    assert all(sequences == list(range(1, len(_SAMPLES) + 1)) for sequences in told.values())


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
    assert sum(event.run_id.startswith("survivor-") for event in whole) == 20 * len(_SAMPLES)


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
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=_ROOT)
    lost = len(_SAMPLES)
    said = f"{lost} events could not be written (File too large)."
    assert done.stdout.splitlines() == [f"False True {lost} 1 {said}", "True True"]
    # The log says it too, once.
    (logged,) = done.stderr.splitlines()
    assert logged.startswith("The recorder jsonl ")
    assert "OSError" in logged
    assert events_in(path) == [*_SAMPLES, *_SAMPLES]


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
    assert len(events_in(path)) == before + len(_SAMPLES)
    assert ["OSError" in record.getMessage() for record in caplog.records] == [True]


def test_a_lock_somebody_keeps_costs_lines_and_no_time(tmp_path: Path) -> None:
    import fcntl

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
        assert 0 < dropped < lines.dropped == 1000 * len(_SAMPLES)


def test_a_process_that_was_forked_in_the_middle_of_a_line_keeps_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recorders import jsonl

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
    assert events_in(path) == [*_SAMPLES, *_SAMPLES]

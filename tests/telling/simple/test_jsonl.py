"""A line for each event, in a file or a stream, whatever is done to the file meanwhile."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from footprint_core import Agent, RecorderError
from footprint_core.events import AgentConfigured, Event
from footprint_core.providers import Scripted, reply
from footprint_observe.plugins import recorder
from json_lines import SAMPLES, events_in, run, tell
from recorders.jsonl import Jsonl


def test_an_event_is_a_line_and_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = Jsonl(path)
    tell(lines)
    assert lines.flush(10.0)
    assert (lines.dropped, lines.queued, lines.errors, lines.notices) == (0, 0, 0, ())
    lines.close(10.0)
    assert events_in(path) == list(SAMPLES)
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
    assert [msgspec.json.decode(line, type=Event) for line in rest] == list(SAMPLES)


def test_a_name_that_is_no_unicode_loses_no_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = Jsonl(path)
    odd = [event for event in SAMPLES if isinstance(event, AgentConfigured)]
    lines.on_event(msgspec.structs.replace(odd[0], agent_name="half \ud800"))
    tell(lines)
    assert lines.flush(10.0)
    lines.close(10.0)
    first, *rest = path.read_text().splitlines()
    assert json.loads(first)["agent_name"] == "half \ud800"
    assert len(rest) == len(SAMPLES)


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
def test_a_file_one_may_not_write_is_refused() -> None:
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


def test_a_stream_is_written_to_and_left_open() -> None:
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
    assert [msgspec.json.decode(line, type=Event) for line in told] == list(SAMPLES)
    assert last == "and it is open"


def test_a_stream_that_keeps_what_it_gets_is_flushed() -> None:
    read, write = os.pipe()
    os.set_blocking(read, False)
    with os.fdopen(write, "wb") as to:
        lines = Jsonl(to)
        lines.on_event(SAMPLES[0])
        assert lines.flush(10.0)
        told = os.read(read, 1 << 16)
        lines.close(10.0)
        assert not to.closed
    os.close(read)
    assert msgspec.json.decode(told, type=Event) == SAMPLES[0]


def test_a_file_that_was_moved_away_is_left_alone_and_a_new_one_begun(tmp_path: Path) -> None:
    path, moved = tmp_path / "events.jsonl", tmp_path / "events.jsonl.1"
    lines = Jsonl(path)
    tell(lines)
    assert lines.flush(10.0)
    path.rename(moved)
    tell(lines, times=2)
    lines.close(10.0)
    assert (len(events_in(moved)), len(events_in(path))) == (len(SAMPLES), 2 * len(SAMPLES))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_emptied_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = Jsonl(path)
    tell(lines)
    assert lines.flush(10.0)
    os.truncate(path, 0)
    tell(lines)
    lines.close(10.0)
    assert events_in(path) == list(SAMPLES)


def test_a_program_that_changes_its_folder_goes_on_with_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    lines = Jsonl("events.jsonl")
    monkeypatch.chdir(tmp_path / "elsewhere")
    tell(lines)
    lines.close(10.0)
    assert len(events_in(tmp_path / "events.jsonl")) == len(SAMPLES)
    assert not list((tmp_path / "elsewhere").iterdir())

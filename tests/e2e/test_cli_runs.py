"""`footprint runs`, `show` and `timeline`, and the same from Python."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import call_ends
from commanded import demonstrate, footprint, records
from file_ledger import on_file, select
from footprint_core.providers import reply
from footprint_observe.query import NoSuchRunError, QuestionError, run, runs, timeline
from footprint_observe.query.calls import calls
from story import answered, describe
from story import run as play


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    path = tmp_path_factory.mktemp("ends") / "l.db"
    return str(path), call_ends.play(path)


def test_runs_decisions_and_a_whole_run_are_shown(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    listed = footprint("runs", "--db", path).stdout
    assert "answered" in listed
    run_id = re.search(r"[0-9a-f]{16}", listed)
    assert run_id is not None
    for name in (run_id[0], run_id[0][:13], "last"):
        shown = footprint("show", name, "--db", path).stdout
        for told in ("answered", "2 segments", "espresso machine", "refunded you $450", "call-3", "denied"):
            assert told in shown
        assert "may have run" not in shown
        whole = footprint("timeline", name, "--db", path).stdout
        for told in ("tool.intended", "pause.answered", "masked 1 social", "removed name, email, address"):
            assert told in whole


def test_a_run_as_json_is_what_python_gets(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    assert records("runs", "--db", path) == runs(path)
    assert records("show", "last", "--db", path) == [{**run(path), "calls": calls(path)}]
    assert records("timeline", "last", "--db", path) == timeline(path)
    (found,) = runs(path)
    assert (found["outcome"], found["segments"], found["decisions"], found["denials"], found["asks"]) == (
        "answered",
        2,
        12,
        1,
        1,
    )
    assert found["started_at"].endswith("+00:00")
    assert found["ended_at"] is not None
    assert found["started_at"] < found["ended_at"]


def test_a_timeline_has_every_entry_with_values_as_they_were(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    entries = timeline(path)
    assert [entry["position"] for entry in entries] == list(range(1, len(entries) + 1))
    assert {entry["segment"] for entry in entries} == {1, 2}
    intended = next(entry for entry in entries if entry["kind"] == "tool.intended")
    assert intended["args"] == {"order_id": 41}
    assert intended["tool_call_id"] == "call-1"
    masked = next(entry for entry in entries if entry["kind"] == "decision")
    assert masked["changed"] is True
    assert "123-45-6789" in masked["before"]


def test_the_newest_runs_come_first_and_a_limit_says_that_there_are_more(
    ended: tuple[str, dict[str, str]],
) -> None:
    path, by_end = ended
    told = footprint("runs", "--db", path, "--limit", "2")
    assert [line.split()[0] for line in told.stdout.splitlines()[1:]] == [
        by_end["in-doubt"][:16],
        by_end["cancelled"][:16],
    ]
    assert told.stderr == "These are the newest 2; --limit shows more.\n"
    assert footprint("runs", "--db", path, "--limit", str(2**63 - 1)).stderr == ""
    assert len(runs(path, limit=100)) == len(set(by_end.values()))


def test_runs_are_filtered_by_how_they_ended(ended: tuple[str, dict[str, str]]) -> None:
    path, by_end = ended
    for how, ends in (("cancelled", {"cancelled"}), ("paused", {"waiting"}), ("open", {"in-doubt"})):
        found = records("runs", "--ended", how, "--db", path)
        assert {row["run_id"] for row in found} == {by_end[end] for end in ends}
        assert {row["outcome"] for row in found} == {how}
    with pytest.raises(QuestionError, match="answered"):
        runs(path, ended="somehow")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (("--outcome", "deny"), {"denied", "declined"}),
        (("--rule", "fee"), {"changed", "changed-behind"}),
        (("--tool", "wire"), {"blocked"}),
        (("--person", "dana@ops"), {"approved", "changed-behind", "declined"}),
        (("--person", "dana@ops", "--outcome", "deny"), {"declined"}),
        (("--changed",), {"changed", "changed-behind"}),
        (("--rule", "nobody"), set()),
    ],
)
def test_runs_are_filtered_by_a_decision_they_hold(
    ended: tuple[str, dict[str, str]], words: tuple[str, ...], ends: set[str]
) -> None:
    path, by_end = ended
    found = records("runs", *words, "--db", path)
    assert {row["run_id"] for row in found} == {by_end[end] for end in ends}


def test_runs_are_filtered_by_when_they_began(ended: tuple[str, dict[str, str]]) -> None:
    path, by_end = ended
    began = run(path, by_end["failed"])["started_at"]
    older = {row["run_id"] for row in runs(path, until=began, limit=100)}
    newer = {row["run_id"] for row in runs(path, since=began, limit=100)}
    assert by_end["failed"] in newer
    assert by_end["changed"] in older
    assert not older & newer
    assert older | newer == set(by_end.values())


def test_a_timeline_is_filtered_like_decisions(ended: tuple[str, dict[str, str]]) -> None:
    path, by_end = ended
    found = timeline(path, by_end["changed-behind"], rule="fee")
    assert [(entry["kind"], entry["after_approval"]) for entry in found] == [("decision", True)]
    (answer,) = timeline(path, by_end["approved"], person="dana@ops")
    assert answer["decided_by"] == "dana@ops"
    assert footprint("timeline", "last", "--rule", "nobody", "--db", path).stderr == (
        "No entry of that run matches.\n"
    )


def test_a_call_that_may_have_run_says_so(ended: tuple[str, dict[str, str]]) -> None:
    path, by_end = ended
    for end in ("in-doubt", "cancelled"):
        assert "may have run" in footprint("show", by_end[end], "--db", path).stdout
        assert [call["in_doubt"] for call in calls(path, by_end[end])] == [True]
    for end in ("ran", "failed", "denied", "waiting"):
        assert "may have run" not in footprint("show", by_end[end], "--db", path).stdout


def test_a_beginning_that_two_runs_share_is_refused_and_a_whole_id_is_not(
    ended: tuple[str, dict[str, str]],
) -> None:
    path, by_end = ended
    for name in ("0", by_end["ran"][:4]):
        with pytest.raises(NoSuchRunError, match="More than one run"):
            run(path, name)
    for name in (by_end["ran"], by_end["in-doubt"], "f", by_end["ran"][:20]):
        assert run(path, name)["run_id"] in by_end.values()


def test_a_text_is_whole_where_sql_would_cut_it(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = on_file(path)
    builder, _ = describe([reply(text="one\0two")], ledger=ledger)

    async def go() -> None:
        async with builder.build() as agent:
            answered(await agent.run("before\0behind"))

    play(go())
    (found,) = runs(path)
    assert (found["question"], found["text"]) == ("before\0behind", "one\0two")
    assert "before behind" in footprint("show", "last", "--db", str(path)).stdout


@pytest.mark.parametrize("said", ["a\0b", "\\u0000", "\\\0", "plain", "\0"])
def test_a_view_cuts_no_text_at_a_nul(tmp_path: Path, said: str) -> None:
    path = tmp_path / "l.db"
    builder, _ = describe([reply(text=said)], ledger=on_file(path))

    async def go() -> None:
        async with builder.build() as agent:
            answered(await agent.run(f"message {said}"))

    play(go())
    kept = (said, f"message {said}")
    expected = [json.dumps(text, ensure_ascii=False) if "\0" in text else text for text in kept]
    assert select(path, "select text, question from runs") == [tuple(expected)]

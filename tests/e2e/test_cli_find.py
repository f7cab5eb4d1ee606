"""`footprint find TEXT`: where a text stands, in every value and wherever in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import many_decisions
from commanded import demonstrate, footprint, records
from file_ledger import on_file, select
from footprint_core import allow, before_tool, deny
from footprint_core.providers import call, reply
from footprint_observe import Redaction, SqliteLedger
from footprint_observe.query import QuestionError, decisions, find, timeline
from story import answered, describe, run

TEXT = 'say "no"\nto\t\u00dcber-M\u00fcller \\ 100\u20ac'


@pytest.fixture
def told(tmp_path: Path) -> str:
    """A file in which one text stands in several values, escaped there as JSON does."""
    path = tmp_path / "l.db"
    play(on_file(path), {"deep": [{"note": f"please {TEXT}, thanks", TEXT: 12345}]})
    return str(path)


def play(ledger: SqliteLedger, args: dict[str, Any]) -> None:
    refuse = before_tool("refuse")(lambda context: deny("Not like that."))
    builder, _ = describe(
        [reply(calls=[call("c1", "send", args)]), reply(text="done")],
        send,
        ledger=ledger,
        act={"before_tool": [before_tool("change")(_changed), refuse]},
    )

    async def go() -> None:
        async with builder.build() as agent:
            answered(await agent.run(f"hello {TEXT}"))

    run(go())


def send(deep: list[Any]) -> str:
    """Send."""
    return "sent"


def _changed(context: Any) -> Any:
    return allow({**context.args, "more": True}, why="added")


@pytest.mark.parametrize(
    "text", [TEXT, TEXT.upper(), 'SAY "no"', 'no"\nto\t\u00fcber', "\\ 100\u20ac", "m\u00dcller"]
)
def test_a_text_is_found_whatever_its_case_and_however_json_writes_it(told: str, text: str) -> None:
    found = list(find(told, text, limit=100))
    assert {one["field"] for one in found} >= {"text", "before.deep.0.note", "after.deep.0.note"}
    values = {entry["position"]: entry for entry in timeline(told)}
    for one in found:
        value = values[one["position"]]
        for part in one["field"].split(".")[:1]:
            assert part in value
        assert text.lower() in one["excerpt"].lower()
        assert values[one["position"]]["recorded_at"] == one["recorded_at"]


def test_keys_and_numbers_are_found_too(told: str) -> None:
    assert {one["field"] for one in find(told, "1234")} >= {f"before.deep.0.{TEXT}"}
    assert {one["field"] for one in find(told, "deep")} >= {"before.deep", "after.deep"}
    assert {one["field"] for one in find(told, "true")} == {"after.more"}


def test_what_only_json_writes_is_not_found(told: str) -> None:
    for text in ('":[{"', "\\n", "\\u00dc", '{"deep"'):
        assert [one["field"] for one in find(told, text) if not one["field"].startswith("calls")] == []


def test_an_excerpt_has_what_stands_around_the_text(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    play(on_file(path), {"deep": ["a" * 500 + "needle" + "b" * 500]})
    (found, _) = find(str(path), "NEEDLE", rule="change")
    assert found["excerpt"] == "\u2026" + "a" * 30 + "needle" + "b" * 60 + "\u2026"


def test_the_newest_come_first_and_it_ends_at_the_limit(tmp_path: Path) -> None:
    path = many_decisions.write(tmp_path / "l.db")
    seen: list[tuple[int, int]] = []
    found = list(find(path, "number 8", limit=5, looked_through=lambda done, of: seen.append((done, of))))
    ids = [one["id"] for one in found]
    assert ids == sorted(ids, reverse=True)
    assert len(found) == 5
    # It stopped in the first part it looked through.
    assert len(seen) == 1
    everything = list(find(path, "number 77", limit=10_000))
    numbers = [i for i in range(many_decisions.ROWS) if str(i).startswith("77") and i % 7]
    assert [one["excerpt"] for one in everything] == [f"number {i}" for i in reversed(numbers)]


def test_a_find_takes_the_filters_of_decisions(tmp_path: Path) -> None:
    path = many_decisions.write(tmp_path / "l.db")
    asked: tuple[dict[str, Any], ...] = (
        {"rule": "fee"},
        {"outcome": "deny"},
        {"person": "dana@ops"},
        {"since": many_decisions.time_of(1), "until": many_decisions.time_of(2)},
        {"run": f"{3:032x}"},
        {"run": f"{3:032x}", "shadow": True},
    )
    for filters in asked:
        rows = decisions(path, limit=10_000, **filters)
        found = find(path, "number", limit=10_000, **filters)
        assert sorted(one["id"] for one in found) == [row["id"] for row in rows]


def test_what_is_kept_under_a_path_of_its_own_is_found_there(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    policy = Redaction.of(erasable=["before.deep.0.note"])
    play(on_file(path, redact=policy), {"deep": [{"note": "the needle", "other": 1}]})
    assert {one["field"] for one in find(path, "needle")} >= {"before.deep.0.note", "after.deep.0.note"}
    # What stands in its place is no value of anybody.
    ((before,),) = select(path, "select json from vals where field = 'before'")
    digest = json.loads(before)["deep"][0]["note"]["..."]
    assert list(find(path, digest)) == []
    assert list(find(path, "...")) == []


def test_a_table_marks_the_place_and_json_is_what_python_gets(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    lines = footprint("find", "bluebird", "--db", path).stdout.splitlines()
    assert all("Bluebird" in line for line in lines)
    assert records("find", "bluebird", "--db", path) == list(find(path, "bluebird"))
    told = footprint("find", "a", "--limit", "3", "--db", path)
    assert (told.stdout.count("\n"), told.stderr) == (3, "These are the newest 3; --limit shows more.\n")


def test_no_text_is_refused(told: str) -> None:
    with pytest.raises(QuestionError, match="There is no text to find"):
        find(told, "")

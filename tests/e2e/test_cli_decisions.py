"""`footprint decisions`: every filter, the same from Python, and which rows come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import call_ends
from commanded import demonstrate, footprint, records
from footprint_observe.query import QuestionError, decisions

Ends = tuple[str, dict[str, str]]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ends:
    path = tmp_path_factory.mktemp("ends") / "l.db"
    return str(path), call_ends.play(path)


def _asked(path: str, *words: str) -> list[dict[str, Any]]:
    return records("decisions", "--limit", "1000", *words, "--db", path)


def test_a_table_tells_where_who_what_why_and_what_changed(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    told = footprint("decisions", "--db", path).stdout
    for said in (
        "input",
        "before issue_refund",
        "refund-ceiling",
        "deny",
        "masked 1 social",
        "- name, email",
    ):
        assert said in told
    assert "refund-ceiling" in footprint("decisions", "--outcome", "deny", "--db", path).stdout


def test_a_record_has_values_as_they_were(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    masked = _asked(path, "--rule", "scrub-ssns")[0]
    assert masked["changed"] is True
    assert masked["shadow"] is False
    assert "123-45-6789" in masked["before"]
    assert "[ssn]" in masked["after"]
    stripped = _asked(path, "--rule", "strip-pii")[0]
    assert stripped["before"]["name"] == "Ada Example"
    assert "name" not in stripped["after"]
    assert stripped["recorded_at"].endswith("+00:00")
    assert stripped["redacted"] == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"rule": "fee"}, lambda row: row["middleware"] == "fee"),
        ({"version": "7"}, lambda row: row["version"] == "7"),
        ({"outcome": "deny"}, lambda row: row["outcome"] == "deny"),
        ({"outcome": "ask"}, lambda row: row["outcome"] == "ask"),
        ({"moment": "before-tool"}, lambda row: row["moment"] == "before-tool"),
        ({"moment": "output"}, lambda row: row["moment"] == "output"),
        ({"tool": "close"}, lambda row: row["tool_name"] == "close"),
        ({"source": "nowhere"}, lambda row: row["tool_source"] == "nowhere"),
        ({"person": "dana@ops"}, lambda row: row["decided_by"] == "dana@ops"),
        ({"person": "dana"}, lambda row: False),
        ({"shadow": True}, lambda row: row["shadow"]),
        ({"shadow": False}, lambda row: not row["shadow"]),
        ({"changed": True}, lambda row: row["changed"]),
        ({"changed": False}, lambda row: not row["changed"]),
        ({"rule": "four-eyes", "outcome": "allow"}, lambda row: row["decided_by"] == "dana@ops"),
    ],
    ids=str,
)
def test_a_filter_picks_the_rows_it_names(ended: Ends, filters: dict[str, Any], expected: Any) -> None:
    path, _ = ended
    everything = decisions(path, limit=1000)
    words: list[str] = []
    for name, value in filters.items():
        flag = {("shadow", False): "--no-shadow", ("changed", False): "--unchanged"}.get((name, value))
        words += [flag or f"--{name}"] if isinstance(value, bool) else [f"--{name}", value]
    found = _asked(path, *words)
    if filters == {"rule": "four-eyes", "outcome": "allow"}:
        assert [row["decided_by"] for row in found] == [
            row["decided_by"]
            for row in everything
            if row["middleware"] == "four-eyes" and row["outcome"] == "allow"
        ]
    else:
        assert found == [row for row in everything if expected(row)]
    assert found == decisions(path, limit=1000, **filters)


def test_a_span_of_time_has_its_first_instant_and_not_its_last(ended: Ends) -> None:
    path, _ = ended
    everything = decisions(path, limit=1000)
    first, last = everything[3]["recorded_at"], everything[9]["recorded_at"]
    found = _asked(path, "--since", first, "--until", last)
    assert found == [row for row in everything if first <= row["recorded_at"] < last]
    assert everything[3] in found
    assert everything[9] not in found
    assert _asked(path, "--since", "today") == everything == _asked(path, "--since", "1h", "--until", "today")
    assert _asked(path, "--until", "1h") == []


def test_the_newest_come_oldest_first_and_a_limit_says_that_there_are_more(ended: Ends) -> None:
    path, _ = ended
    everything = decisions(path, limit=1000)
    assert [row["id"] for row in everything] == sorted(row["id"] for row in everything)
    told = footprint("decisions", "--limit", "2", "--db", path)
    assert told.stderr == "These are the newest 2; --limit shows more.\n"
    assert _asked(path, "--limit", "2") == everything[-2:]
    assert footprint("decisions", "--limit", str(2**63 - 1), "--db", path).stderr == ""
    assert decisions(path) == everything[-50:]


def test_of_one_run_all_come_unless_a_limit_is_given(ended: Ends) -> None:
    path, runs = ended
    found = decisions(path, run=runs["changed-behind"])
    assert [(row["middleware"], row["outcome"]) for row in found] == [
        ("ceiling", "allow"),
        ("four-eyes", "ask"),
        ("four-eyes", "allow"),
        ("fee", "allow"),
    ]
    run = ("--run", runs["changed-behind"][:20])
    assert records("decisions", *run, "--db", path) == found
    assert records("decisions", *run, "--limit", "1", "--db", path) == found[-1:]
    assert records("decisions", *run, "--outcome", "ask", "--db", path) == found[1:2]


def test_nothing_that_matches_is_said_and_is_no_error(ended: Ends) -> None:
    path, _ = ended
    told = footprint("decisions", "--rule", "nobody", "--db", path)
    assert (told.stdout, told.stderr) == ("", "No decision of this ledger matches.\n")


@pytest.mark.parametrize(
    "filters", [{"outcome": "maybe"}, {"moment": "never"}, {"shadow": "yes"}, {"rule": 7}, {"colour": "red"}]
)
def test_a_filter_that_is_none_is_refused_and_never_left_out(ended: Ends, filters: dict[str, Any]) -> None:
    with pytest.raises(QuestionError):
        decisions(ended[0], **filters)

"""`footprint why CALL`, for every way a call can end."""

from __future__ import annotations

from typing import Any

import pytest

import call_ends
from commanded import footprint, records
from footprint_observe.query import NoSuchCallError, why

Ends = tuple[str, dict[str, str]]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ends:
    path = tmp_path_factory.mktemp("ends") / "l.db"
    return str(path), call_ends.play(path)


RAN = {"status": "ran", "executed": True, "in_doubt": False}
NOT = {"executed": False, "in_doubt": False, "ran_args": None, "result": None}
HOW: dict[str, tuple[dict[str, Any], str]] = {
    "ran": ({**RAN, "ran_args": {"amount": 1}, "result": {"paid": 1}, "read": None}, "It ran, in"),
    "changed": ({**RAN, "asked_args": {"amount": 1}, "ran_args": {"amount": 2}}, 'ran with: {"amount":2}'),
    "failed": (
        {"status": "failed", "executed": True, "error_class": "LookupError", "result": "no such account"},
        "It ran and failed (LookupError)",
    ),
    "denied": (
        {**NOT, "status": "denied", "decided_by_rule": "ceiling", "read": "Above the ceiling."},
        "It was refused by ceiling and did not run.",
    ),
    "invalid": (
        {**NOT, "status": "invalid", "asked_args": {"amount": "much"}},
        "Its arguments did not fit the tool",
    ),
    "unknown": ({**NOT, "status": "unknown", "tool_name": "nothing"}, "The agent has no such tool"),
    "blocked": ({**NOT, "status": "blocked"}, "credential bank: failed"),
    "not-permitted": ({**NOT, "status": "denied", "decisions": []}, "permission, by policy: deny"),
    "approved": ({**RAN, "approved_args": None, "ran_args": {"amount": 500}}, "approved by dana@ops"),
    "changed-behind": (
        {**RAN, "approved_args": {"amount": 500}, "ran_args": {"amount": 499}},
        "approved by dana@ops",
    ),
    "declined": ({**NOT, "status": "denied", "decided_by_rule": "four-eyes"}, "declined by dana@ops"),
    "consented": ({**RAN, "tool_name": "close"}, "consent given by dana@ops"),
    "refused-consent": ({**NOT, "status": "denied"}, "consent refused by dana@ops"),
    "human": ({**RAN, "result": "blue"}, "answered: value"),
    "waiting": ({**NOT, "status": None}, "A person has not answered yet."),
    "cancelled": (
        {"status": "cancelled", "in_doubt": True, "result": None},
        "It was cancelled while it ran: it may have run.",
    ),
    "in-doubt": (
        {"status": None, "executed": False, "in_doubt": True, "ran_args": {"amount": 3}},
        "It may have run: it was about to",
    ),
}


@pytest.mark.parametrize("end", HOW)
def test_why_tells_how_a_call_ended(ended: Ends, end: str) -> None:
    path, runs = ended
    expected, sentence = HOW[end]
    (found,) = why(path, end)
    assert {name: found[name] for name in expected} == expected  # type: ignore[literal-required]
    assert found["run_id"] == runs[end]
    told = footprint("why", end, "--db", path)
    assert sentence in told.stdout
    assert told.stderr.startswith(f"This is the newest run with a call of that id, {runs[end]};")
    assert records("why", end, "--db", path) == [found]


def test_every_end_there_is_was_asked_about(ended: Ends) -> None:
    assert set(ended[1]) == {*HOW, "the older", "the newer"}


def test_why_tells_who_asked_for_it_and_with_what(ended: Ends) -> None:
    path, runs = ended
    (found,) = why(path, "changed-behind")
    assert (found["agent"], found["identity"], found["message"]) == ("desk", call_ends.WHO, call_ends.MESSAGE)
    assert (found["asked_args"], found["iteration"]) == ({"amount": 500}, 1)
    said = [(row["middleware"], row["outcome"], row["after_approval"]) for row in found["decisions"]]
    assert said == [
        ("ceiling", "allow", False),
        ("four-eyes", "ask", False),
        ("four-eyes", "allow", False),
        ("fee", "allow", True),
    ]
    assert [one["kind"] for one in found["pauses"]] == ["pause.opened", "pause.answered"]
    told = footprint("why", "changed-behind", "--db", path).stdout
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert "approved ran" in lines
    assert '{"amount":500} {"amount":499}' in lines
    assert 'on behalf of: {"user":"ada","team":"desk"}' in lines
    assert f"run {runs['changed-behind']} of desk, {found['recorded_at']}" in lines


def test_why_tells_what_permission_and_consent_said(ended: Ends) -> None:
    path, _ = ended
    (checked,) = why(path, "not-permitted")[0]["permission"]
    told = {name: checked[name] for name in ("checker", "result", "rationale", "reason", "policy_rule_id")}
    assert told == {
        "checker": "policy",
        "result": "deny",
        "rationale": "it is late",
        "reason": "not at night",
        "policy_rule_id": "P-7",
    }
    asked, answered = why(path, "refused-consent")[0]["check_ins"]
    assert asked["evidence"] == {"reversible": False}
    assert (answered["approved"], answered["decided_by"], answered["note"]) == (
        False,
        "dana@ops",
        "a duplicate",
    )


def test_an_id_of_two_runs_is_the_newest_ones_unless_a_run_is_named(ended: Ends) -> None:
    path, runs = ended
    (newest,) = why(path, call_ends.SAME_ID)
    (older,) = why(path, call_ends.SAME_ID, run=runs["the older"])
    assert (newest["run_id"], newest["ran_args"]) == (runs["the newer"], {"amount": 2})
    assert (older["run_id"], older["ran_args"]) == (runs["the older"], {"amount": 1})
    told = footprint("why", call_ends.SAME_ID, "--run", runs["the older"], "--db", path)
    assert told.stderr == ""
    assert runs["the older"] in told.stdout


def test_an_id_that_is_not_there_is_refused(ended: Ends) -> None:
    path, _ = ended
    for run in (None, "last"):
        with pytest.raises(NoSuchCallError):
            why(path, "nope", run=run)

"""`footprint redact --dry-run`: what a policy would do to conversations, and never their content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from footprint_observe.cli import main

TOKEN = "ghp_" + "A1b2" * 9
CONVERSATIONS: list[dict[str, Any]] = [
    {
        "id": "one",
        "messages": [
            {"role": "system", "content": f"Use {TOKEN}."},
            {"role": "user", "content": "I am ada@example.org"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "look", "arguments": '{"password": "hunter2", "n": 1}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": '{"rows": [{"ssn": "1"}, {"ssn": "2"}]}'},
            {"role": "assistant", "content": "It was sent to ada@example.org."},
        ],
    },
    {"id": "two", "messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]},
]
SECRETS = (TOKEN, "hunter2", "ada@example.org")


def written(folder: Path) -> Path:
    path = folder / "conversations.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in CONVERSATIONS))
    return path


def redact(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(
        main, ["redact", "--dry-run", str(written(folder)), *words], env={"COLUMNS": "300"}
    )


def found(told: Result) -> list[tuple[str, str, str, str, int]]:
    assert told.exit_code == 0, told.output
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    return [(one["conversation"], one["kind"], one["path"], one["strategy"], one["times"]) for one in lines]


STANDARD = [
    ("one", "run.configured", "system", "mask", 1),
    ("one", "model.replied", "calls.0.args.password", "mask", 1),
    ("one", "tool.intended", "args.password", "mask", 1),
]


def test_every_path_is_told_with_what_would_be_done_and_how_often(tmp_path: Path) -> None:
    standard = [(a, b, c.replace("calls.0", "calls.*"), d, e) for a, b, c, d, e in STANDARD]
    assert found(redact(tmp_path, "--json")) == standard
    personal = found(redact(tmp_path, "--policy", "personal", "--json"))
    assert set(standard) < set(personal)
    assert ("one", "tool.finished", "result.rows.*.ssn", "mask", 2) in personal
    assert ("one", "message.taken", "text", "mask", 1) in personal
    assert ("one", "segment.ended", "text", "mask", 1) in personal
    assert {one[0] for one in personal} == {"one"}


@pytest.mark.parametrize("words", [(), ("--json",), ("--show",), ("--show", "--json")])
def test_no_value_that_would_go_is_printed(words: tuple[str, ...], tmp_path: Path) -> None:
    told = redact(tmp_path, "--policy", "personal", *words)
    assert told.exit_code == 0, told.output
    assert "args.password" in told.output
    for secret in SECRETS:
        assert secret not in told.output


def test_a_person_is_told_how_much_it_is(tmp_path: Path) -> None:
    told = redact(tmp_path)
    assert "one           tool.intended   mask      1  args.password" in told.stdout
    assert "2 conversations, " in told.stderr
    assert "3 x mask, in 1 conversation." in told.stderr


def test_what_would_be_kept_can_be_shown(tmp_path: Path) -> None:
    told = redact(tmp_path, "--show")
    assert '{"password":"[redacted]","n":1}' in told.stdout
    lines = [json.loads(line) for line in redact(tmp_path, "--show", "--json").stdout.splitlines()]
    kept = {line["kind"]: line["kept"] for line in lines if "kept" in line}
    assert kept["tool.intended"] == {"password": "[redacted]", "n": 1}
    assert kept["run.configured"] == "Use [redacted]."


def test_a_policy_of_ones_own_is_read_from_a_file_and_needs_no_keys(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[[rules]]\npath = "**.ssn"\nstrategy = "seal"\n[[rules]]\nkey = "n"\nstrategy = "pseudonym"\n'
    )
    told = found(redact(tmp_path, "--policy", str(policy), "--json"))
    assert ("one", "tool.finished", "result.rows.*.ssn", "seal", 2) in told
    assert ("one", "tool.intended", "args.n", "pseudonym", 1) in told


def test_what_is_not_understood_is_refused_by_name(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[rules]]\npath = "nowhere"')
    for words, says in (
        (["--policy", str(policy)], "begins with the name of a value"),
        (["--policy", str(tmp_path / "absent.toml")], "cannot be read"),
    ):
        told = redact(tmp_path, *words)
        assert told.exit_code == 2
        assert says in told.stderr
    wet = CliRunner().invoke(main, ["redact", str(written(tmp_path))])
    assert wet.exit_code == 2
    assert "say --dry-run" in wet.stderr

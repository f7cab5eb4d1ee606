"""Under a policy no byte of what was planted is in any file: while it is open, closed, and behind a kill."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crash import strace
from file_ledger import select
from planted import WORD, said
from planted_forms import forms, found_in

PLACES = (
    "answer", "argument", "broken", "caller", "detail", "error of the checker", "error of the rule",
    "error of the schema", "error of the tool", "evidence", "instruction of the schema", "key of the detail",
    "key of the evidence", "key of the result", "key of the value", "message", "new args", "new result",
    "note", "open question", "other answer", "other message", "question", "rationale", "reason",
    "reason of the denial", "result", "result of the wire", "second message", "summary", "system prompt",
    "text for the model", "thought", "value", "why", "why after", "why at input", "why at output",
    "why before",
)  # fmt: skip
"""Every value a ledger keeps that has no policy."""
NOWHERE = (said("payload"), said("question of the tool"), f"{WORD}-secret")
"""What only a checkpoint carries, and a credential: no ledger has it, whatever its policy."""
BARE, KEYED = "bare", "keyed"


@contextmanager
def played(at: Path, policy: str, keys: str) -> Generator[subprocess.Popen[str]]:
    """A process that played everything planted into a file, and has it open."""
    command = [*strace.python("crash.planted_child"), str(at / "l.db"), policy, keys]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=strace.TESTS
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("policy", "keys", "end"),
    [
        ("a detector", KEYED, "kill"),
        ("every field", BARE, "kill"),
        ("dropped fields", BARE, "close"),
        ("pseudonyms", KEYED, "close"),
        ("seals", KEYED, "kill"),
    ],
)
def test_what_a_policy_takes_out_is_in_no_file_in_any_form(
    policy: str, keys: str, end: str, tmp_path: Path
) -> None:
    with played(tmp_path, policy, keys) as process:
        assert (tmp_path / "l.db-wal").stat().st_size
        assert select(tmp_path / "l.db", "SELECT count(*) FROM pause_bodies") == [(int(keys == KEYED),)]
        assert found_in(tmp_path, WORD, process=process.pid) == []
        if end == "kill":
            process.kill()
        assert process.communicate("close\n", timeout=60)[0] == ""
    assert process.returncode == (-9 if end == "kill" else 0)
    assert found_in(tmp_path, WORD) == []


def test_without_a_policy_every_value_is_in_the_files_and_a_checkpoint_is_not(tmp_path: Path) -> None:
    with played(tmp_path, "none", KEYED) as process:
        held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert [place for place in PLACES if said(place).encode() not in held] == []
        assert [text for text in NOWHERE if text.encode() in held] == []
        assert "l.db-wal: raw" in found_in(tmp_path, WORD, process=process.pid)
        process.communicate("close\n", timeout=60)
    assert found_in(tmp_path, WORD) == ["l.db: raw"]
    for text in NOWHERE:
        assert found_in(tmp_path, text) == []


@pytest.mark.parametrize("form", sorted(forms(WORD)))
def test_a_form_is_found_wherever_it_stands(form: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\x00x" + forms(WORD)[form] + b"y")
    assert f"file: {form}" in found_in(tmp_path, WORD)

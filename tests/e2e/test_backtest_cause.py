"""What `footprint backtest` says when a module of the user raises: what it was, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from commanded import refused

CONVERSATION = (
    '{"id": "1", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]}\n'
)


@pytest.mark.parametrize(
    ("source", "cause", "line"),
    [
        ("def make():\n    raise LookupError('no table of prices')\n", "LookupError: no table of prices", 2),
        ("import json\n\nmake = json.loads('[')\n", "JSONDecodeError: Expecting value", None),
        ("def make(:\n", "SyntaxError: invalid syntax", None),
        (
            "def make():\n    raise ValueError('two\\nlines \\x1b[31m')\n",
            "ValueError: two\\nlines \\x1b[31m",
            2,
        ),
    ],
)
def test_the_cause_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, cause: str, line: int | None
) -> None:
    # A module of this name must not have been imported before.
    name = f"rules_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(source)
    (tmp_path / "talk.jsonl").write_text(CONVERSATION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    said = refused("backtest", "talk.jsonl", "--rules", f"{name}:make", "--db", "l.db", code=2).splitlines()
    assert len(said) == 2
    assert said[0].startswith("Error: The rules ")
    assert said[1].startswith(cause)
    if line is not None:
        assert said[1].endswith(f"({tmp_path / name}.py, line {line})")
    assert not (tmp_path / "l.db").exists()

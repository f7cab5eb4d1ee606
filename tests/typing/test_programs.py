"""Programs as users write them: what both checkers accept, and what both must refuse."""

from __future__ import annotations

import re
import runpy
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from checkers import CHECKERS, PROGRAMS, Finding, changed

ACCEPTED = sorted((PROGRAMS / "accepted").glob("*.py"))
REFUSED = sorted((PROGRAMS / "refused").glob("*.py"))

_MARK = re.compile(r"# refused: mypy (?P<mypy>[\w-]+), pyright (?P<pyright>\w+)(?:, naming (?P<name>.+))?")


class Mark(NamedTuple):
    """Why the line below a comment must be refused, and what both messages must name."""

    codes: dict[str, str]
    name: str


def marks(text: str) -> dict[int, Mark]:
    """The marks of a program, by the line they are about."""
    found: dict[int, Mark] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if "# refused" in line:
            mark = _MARK.fullmatch(line.strip())
            assert mark, f"line {number} is no mark: {line}"
            codes = {"mypy": mark["mypy"], "pyright": mark["pyright"]}
            found[number + 1] = Mark(codes, mark["name"] or "")
    return found


def unexpected(text: str, findings: list[Finding], checker: str) -> list[str]:
    """Lines that are refused without a mark, accepted with one, or refused for another reason."""
    lines = text.splitlines()
    said: defaultdict[int, list[Finding]] = defaultdict(list)
    for finding in findings:
        said[finding.line].append(finding)
    wanted = marks(text)
    wrong = [f"accepted: {lines[n - 1].strip()}" for n in wanted if n not in said]
    for number, found in said.items():
        mark = wanted.get(number)
        if mark is None:
            wrong.append(f"refused: {lines[number - 1].strip()} ({found[0].message})")
        elif mark.codes[checker] not in {one.code for one in found}:
            wrong.append(f"refused as {found[0].code}: {lines[number - 1].strip()}")
        elif not any(mark.name in one.message for one in found):
            wrong.append(f"refused without naming {mark.name}: {lines[number - 1].strip()}")
    return wrong


@pytest.mark.parametrize("program", ACCEPTED, ids=lambda path: path.stem)
def test_an_accepted_program_does_what_it_says(program: Path) -> None:
    runpy.run_path(str(program), run_name="__main__")


def test_every_accepted_program_is_accepted(checker: str, findings: Callable[[str], list[Finding]]) -> None:
    assert [one for one in findings(checker) if one.file.startswith("accepted/")] == []


@pytest.mark.parametrize("program", REFUSED, ids=lambda path: path.stem)
def test_a_refused_program_is_refused_at_its_marked_lines_and_nowhere_else(
    program: Path, checker: str, findings: Callable[[str], list[Finding]]
) -> None:
    text = program.read_text(encoding="utf-8")
    assert marks(text)
    here = [one for one in findings(checker) if one.file == f"refused/{program.name}"]
    assert unexpected(text, here, checker) == []


OPENED = {
    "a replacement needs no reason": (
        "footprint_core/outcomes.py",
        "def allow(value: T, /, *, why: str) -> Allow[T]: ...",
        "def allow(value: T, /, *, why: str | None = None) -> Allow[T]: ...",
        "replacements",
        [
            'return allow({"amount": 1})',
            "return allow(str(call.result))",
            "return allow(message.content)",
            'return allow({"amount": 1}, why=None)',
        ],
    ),
    "a question can come too late": (
        "footprint_core/outcomes.py",
        "ToolResultOutcome: TypeAlias = Allow[object] | Deny",
        "ToolResultOutcome: TypeAlias = Allow[object] | Deny | Ask",
        "late_questions",
        [
            'return ask("Was that right?")',
            'return allow() if call.failed else ask("Was that right?")',
            '@after_tool("decorated")',
            "a_result_rule: ToolResultRule = Asking()",
        ],
    ),
    "anything can stand for a message": (
        "footprint_core/outcomes.py",
        "MessageOutcome: TypeAlias = Allow[str] | Deny",
        "MessageOutcome: TypeAlias = Allow[object] | Deny",
        "replacements",
        [
            'return allow({"content": "hello"}, why="shorter")',
            'return allow(3, why="shorter")',
            '@on_message("decorated-message")',
        ],
    ),
    "an arm can be subclassed": (
        "footprint_core/outcomes.py",
        "@final\nclass Allow(",
        "class Allow(",
        "arms",
        ["class Result(Allow[ToolArgs], frozen=True):"],
    ),
    "an arm can be changed": (
        "footprint_core/outcomes.py",
        "class Ask(msgspec.Struct, frozen=True, kw_only=True):",
        "class Ask(msgspec.Struct, kw_only=True):",
        "arms",
        ["asked.detail = None"],
    ),
    "a rule may answer anything": (
        "footprint_core/middleware.py",
        "def on_tool_call(self, call: ToolCallContext, /) -> ToolOutcome | Awaitable[ToolOutcome]:",
        "def on_tool_call(self, call: ToolCallContext, /) -> object:",
        "fabricated_results",
        ["a_call_rule: ToolCallRule = Answering()"],
    ),
}


@pytest.mark.parametrize("opened", OPENED)
def test_a_door_that_is_opened_is_noticed_by_name(opened: str, checker: str, root: Path) -> None:
    file, old, new, program, accepted = OPENED[opened]
    path = f"refused/{program}.py"
    with changed(root, file, old, new):
        findings = [one for one in CHECKERS[checker](root, path) if one.file == path]
    wrong = unexpected((root / path).read_text(encoding="utf-8"), findings, checker)
    assert [line for line in wrong if line.startswith("accepted: ")] == [f"accepted: {a}" for a in accepted]

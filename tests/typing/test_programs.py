"""Programs as users write them: what both checkers accept, and what both must refuse."""

from __future__ import annotations

import re
import runpy
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from checkers import PROGRAMS, Change, Finding, Project, check, home, installed

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


class Opened(NamedTuple):
    """A change that lets something pass, and the marked lines of a refused program that then do."""

    change: Change
    program: str
    passing: list[str]


OPENED: dict[str, Opened] = {
    "a replacement needs no reason": Opened(
        Change(
            "footprint_core/outcomes.py",
            "def allow(value: T, /, *, why: str) -> Allow[T]: ...",
            "def allow(value: T, /, *, why: str | None = None) -> Allow[T]: ...",
        ),
        "replacements",
        [
            'return allow({"amount": 1})',
            "return allow(str(call.result))",
            "return allow(message.content)",
            'return allow({"amount": 1}, why=None)',
        ],
    ),
    "a question can come too late": Opened(
        Change(
            "footprint_core/outcomes.py",
            "ToolResultOutcome: TypeAlias = Allow[object] | Deny",
            "ToolResultOutcome: TypeAlias = Allow[object] | Deny | Ask",
        ),
        "late_questions",
        [
            'return ask("Was that right?")',
            'return allow() if call.failed else ask("Was that right?")',
            '@after_tool("decorated")',
            "a_result_rule: ToolResultRule = Asking()",
        ],
    ),
    "anything can stand for a message": Opened(
        Change(
            "footprint_core/outcomes.py",
            "MessageOutcome: TypeAlias = Allow[str] | Deny",
            "MessageOutcome: TypeAlias = Allow[object] | Deny",
        ),
        "replacements",
        [
            'return allow({"content": "hello"}, why="shorter")',
            'return allow(3, why="shorter")',
            '@on_message("decorated-message")',
        ],
    ),
    "an arm can be subclassed": Opened(
        Change(
            "footprint_core/outcomes.py",
            "@final\nclass Allow(",
            "class Allow(",
        ),
        "arms",
        ["class Result(Allow[ToolArgs], frozen=True):"],
    ),
    "an arm can be changed": Opened(
        Change(
            "footprint_core/outcomes.py",
            "class Ask(msgspec.Struct, frozen=True, kw_only=True):",
            "class Ask(msgspec.Struct, kw_only=True):",
        ),
        "arms",
        ["asked.detail = None"],
    ),
    "a rule may answer anything": Opened(
        Change(
            "footprint_core/middleware.py",
            "def on_tool_call(self, call: ToolCallContext, /) -> ToolOutcome | Awaitable[ToolOutcome]:",
            "def on_tool_call(self, call: ToolCallContext, /) -> object:",
        ),
        "fabricated_results",
        ["a_call_rule: ToolCallRule = Answering()"],
    ),
}

AS_IT_IS = "as it is"
PROJECTS = {
    AS_IT_IS: Project(("accepted", "refused")),
    **{name: Project((f"refused/{one.program}.py",), one.change) for name, one in OPENED.items()},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return home(tmp_path_factory)


@pytest.fixture(scope="module", params=["mypy", "pyright"])
def checker(request: pytest.FixtureRequest) -> str:
    return installed(request.param)


@pytest.fixture(scope="module")
def said(checker: str, root: Path) -> dict[str, list[Finding]]:
    return check(checker, root, PROJECTS)


@pytest.mark.parametrize("program", ACCEPTED, ids=lambda path: path.stem)
def test_an_accepted_program_does_what_it_says(program: Path) -> None:
    runpy.run_path(str(program), run_name="__main__")


def test_every_accepted_program_is_accepted(said: dict[str, list[Finding]]) -> None:
    assert [one for one in said[AS_IT_IS] if one.file.startswith("accepted/")] == []


@pytest.mark.parametrize("program", REFUSED, ids=lambda path: path.stem)
def test_a_refused_program_is_refused_at_its_marked_lines_and_nowhere_else(
    program: Path, checker: str, said: dict[str, list[Finding]]
) -> None:
    text = program.read_text(encoding="utf-8")
    assert marks(text)
    here = [one for one in said[AS_IT_IS] if one.file == f"refused/{program.name}"]
    assert unexpected(text, here, checker) == []


@pytest.mark.parametrize("name", OPENED)
def test_what_passes_that_must_not_is_named(name: str, checker: str, said: dict[str, list[Finding]]) -> None:
    opened = OPENED[name]
    path = f"refused/{opened.program}.py"
    text = (PROGRAMS / path).read_text(encoding="utf-8")
    wrong = unexpected(text, [one for one in said[name] if one.file == path], checker)
    assert [w for w in wrong if w.startswith("accepted: ")] == [
        f"accepted: {line}" for line in opened.passing
    ]

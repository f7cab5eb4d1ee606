"""The three verbs and their types; what a rule answered, matched to the last arm."""

from __future__ import annotations

from typing import Literal, Never, assert_never, assert_type

from footprint_core import (
    UNCHANGED,
    Allow,
    Ask,
    Deny,
    MessageOutcome,
    ToolArgs,
    ToolOutcome,
    ToolResultOutcome,
    allow,
    ask,
    deny,
)
from footprint_core.outcomes import Unchanged

assert_type(allow(), Allow[Never])
assert_type(allow(why="seen"), Allow[Never])
assert_type(allow(UNCHANGED), Allow[Never])
assert_type(allow(3, why="three"), Allow[int])
assert_type(allow(None, why="nothing at all"), Allow[None])
assert_type(deny("no"), Deny)
assert_type(ask("May it?"), Ask)
assert_type(ask("May it?", detail={"amount": 3}), Ask)

passed: ToolOutcome = allow()
lowered: ToolOutcome = allow({"amount": 1}, why="less")
questioned: ToolOutcome = ask("May it?")
hidden: ToolResultOutcome = allow(None, why="nobody reads it")
counted: ToolResultOutcome = allow(["a", 1], why="only two")
reworded: MessageOutcome = allow("hello", why="politer")
refused: tuple[ToolOutcome, ToolResultOutcome, MessageOutcome] = (deny("a"), deny("b"), deny("c"))


def told(outcome: ToolOutcome) -> str:
    match outcome:
        case Allow(value=value, why=why):
            assert_type(value, ToolArgs | Literal[Unchanged.UNCHANGED])
            return "as it is" if value is UNCHANGED else f"{sorted(value)}, since {why}"
        case Deny(reason=reason):
            return reason
        case Ask(question=question):
            return question
        case _:
            assert_never(outcome)


def kind(outcome: ToolResultOutcome) -> Literal["allow", "deny"]:
    match outcome:
        case Allow():
            return outcome.kind
        case Deny():
            return outcome.kind
        case _:
            assert_never(outcome)


def text(outcome: MessageOutcome, before: str) -> str | None:
    match outcome:
        case Deny():
            return None
        case Allow():
            return before if outcome.value is UNCHANGED else outcome.value
        case _:
            assert_never(outcome)


def both(outcome: ToolResultOutcome) -> ToolOutcome | ToolResultOutcome:
    """One union is no part of the other, and both are part of their union."""
    return outcome


def main() -> None:
    assert [told(outcome) for outcome in (passed, lowered, questioned, deny("no"))] == [
        "as it is",
        "['amount'], since less",
        "May it?",
        "no",
    ]
    assert [kind(outcome) for outcome in (hidden, counted, refused[1])] == ["allow", "allow", "deny"]
    assert [text(outcome, "hi") for outcome in (reworded, allow(), refused[2])] == ["hello", "hi", None]
    assert both(hidden) is hidden


if __name__ == "__main__":
    main()

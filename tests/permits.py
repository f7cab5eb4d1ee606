"""A permission checker that answers what a test says, and keeps what it was asked."""

from __future__ import annotations

from typing import Any

from footprint_core import Permission, ToolCallContext

ALLOW = Permission(result="allow")


class Checker:
    """Answers what it is told to, or raises it.

    Args:
        answer: An answer, an error to raise, or a function of the call that gives one of them.
    """

    def __init__(self, answer: Any = ALLOW, name: str = "policy") -> None:
        self.name = name
        self.asked: list[ToolCallContext] = []
        self._answer = answer

    def check(self, call: ToolCallContext, /) -> Any:
        self.asked.append(call)
        said = self._answer(call) if callable(self._answer) else self._answer
        if isinstance(said, BaseException):
            raise said
        return said

"""A ready rule: a person is asked about a call once, and what they approved is remembered.

The program stays in charge of what counts as approved: it hands a pause's `detail` back after the person
said yes and the resume was taken; another process may have declined meanwhile. A question that was declined
leaves nothing behind.

```python
once = approve_once(tools=["issue_refund"])
agent = Agent.create(...).tool_middleware(once).build()
paused = await agent.run("Refund order 41")
await agent.resume(paused.checkpoint, check_in_approved(by="dana@ops"))
once.remember(paused.detail, by="dana@ops")
```
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from collections.abc import Collection
from typing import Final, Literal, TypeAlias, cast, get_args

from footprint_core import plain
from footprint_core.errors import BuilderError
from footprint_core.middleware import ToolCallContext
from footprint_core.outcomes import ToolOutcome, allow, ask

Covers: TypeAlias = Literal["call", "tool"]
"""What an approval covers: calls of the tool with equal arguments, or any call of the tool."""

MAX_OPEN: Final = 1024
"""Keys that were handed out and not approved yet, at most; an older one is asked about again."""

_QUESTIONS: Final[dict[Covers, str]] = {
    "call": "May this call run? An approval also covers later calls with the same arguments.",
    "tool": "May this tool run? An approval also covers later calls of it with any arguments.",
}


class ApproveOnce:
    """The rule that `approve_once` makes.

    Attributes:
        name: Its name in the rows.
        tools: The tools it asks about; None for all. An agent without one of them is refused.
    """

    def __init__(self, *, name: str, question: str, tools: frozenset[str] | None, by: Covers) -> None:
        self.name = name
        self._question = question
        self.tools = tools
        self._by: Covers = by
        self._lock = threading.Lock()
        self.forget()

    def on_tool_call(self, call: ToolCallContext, /) -> ToolOutcome:
        """Allow what a person approved earlier, and ask about anything else."""
        if self.tools is not None and call.tool_name not in self.tools:
            return allow()
        args = call.args if self._by == "call" else None
        about = plain.canonical([call.tool_source, call.tool_name, args, call.identity])
        with self._lock:
            key = hmac.new(self._secret, about, hashlib.sha256).hexdigest()
            if (by := self._approved.get(key)) is not None:
                scope = "" if self._by == "call" else f", for any arguments of {call.tool_name}"
                return allow(why=f"approved earlier by {by}{scope}")
            self._hand_out(key)
        return ask(self._question, detail={"key": key})

    def _hand_out(self, key: str) -> None:
        self._open.pop(key, None)
        self._open[key] = None
        if len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]

    def remember(self, detail: object, /, *, by: str) -> None:
        """Let calls like the one that was asked about run from now on. For an approved question only.

        Args:
            detail: The `detail` of the pause, also after a round trip through JSON.
            by: Who approved; the rows of the calls that run on it say so.

        Raises:
            BuilderError: `by` is blank, or the detail is none this rule handed out since it was made or last
                told to forget.
        """
        if not isinstance(cast("object", by), str) or not by.strip():
            raise BuilderError("remember(by=...) needs the name of the person who approved; give a text.")
        key = cast("dict[object, object]", detail).get("key") if isinstance(detail, dict) else None
        with self._lock:
            if not isinstance(key, str) or (key not in self._open and key not in self._approved):
                raise BuilderError(
                    "remember() takes the detail of a pause this rule opened, in the process that opened it; "
                    "that is none."
                )
            self._open.pop(key, None)
            self._approved[key] = plain.detach(by)

    def forget(self) -> None:
        """Forget every approval and every open question. Their keys can be computed by nobody any more."""
        with self._lock:
            self._secret = os.urandom(32)
            self._open: dict[str, None] = {}
            self._approved: dict[str, str] = {}


def approve_once(
    *,
    name: str = "approve-once",
    question: str | None = None,
    tools: Collection[str] | None = None,
    by: Covers = "call",
) -> ApproveOnce:
    """Make a rule that asks a person once about a call, and then lets calls like it run.

    Calls are alike when tool, source, arguments and the caller's identity are equal as JSON. Approvals are
    kept in this object for as long as it lives, one for each call a person approved; every session of every
    agent that has the rule runs on them. The key in `detail` is an HMAC under a secret of the object, so the
    arguments cannot be guessed from a row.

    Args:
        name: The rule's name.
        question: What the person is asked; by default a text that says what an approval covers.
        tools: The names of the tools it asks about; all when it is not given.
        by: `"call"`: an approval covers equal arguments only. `"tool"` loosens that to any arguments of the
            tool, also ones nobody has seen; the rows say so.

    Raises:
        BuilderError: The question is blank, `tools` holds no names, or `by` is neither of the two.
    """
    if by not in get_args(Covers):
        raise BuilderError('approve_once(by=...) is "call" or "tool"; say what one approval covers.')
    asked = _QUESTIONS[by] if question is None else question
    if not isinstance(cast("object", asked), str) or not asked.strip():
        raise BuilderError("approve_once(question=...) needs words a person can read; give a non-blank text.")
    return ApproveOnce(name=name, question=asked, tools=None if tools is None else _names(tools), by=by)


def _names(tools: Collection[str]) -> frozenset[str]:
    # A single text is a collection of texts too, and would stand for tools called by its letters.
    listed = isinstance(cast("object", tools), Collection) and not isinstance(tools, str)
    names = list(tools) if listed else []
    if not names or not all(isinstance(cast("object", name), str) for name in names):
        raise BuilderError(
            'approve_once(tools=...) takes the names of tools, ["refund"] say; leave it out for all tools.'
        )
    return frozenset(names)

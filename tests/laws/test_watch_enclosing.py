"""A watcher that encloses is entered around exactly the model call and the tool body, where they run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from footprint_core import (
    Agent,
    Permission,
    Scope,
    after_tool,
    allow,
    before_tool,
    on_message,
    static_credentials,
    tool,
)
from footprint_core.events import ObserverError
from footprint_core.providers import Chunk, Completed, ModelRequest, call, reply
from permits import Checker
from story import Seen, answered, describe, run

DONE = reply(text="done")
INSIDE: ContextVar[str] = ContextVar("inside", default="nothing")


class Encloses(Seen):
    """Says what it encloses, and in which thread and task it is entered and left."""

    def __init__(self, id: str = "encloses") -> None:
        super().__init__(id)
        self.scopes: list[Scope] = []
        self.said: list[str] = []
        self.where: list[tuple[int, object]] = []

    def enclose(self, scope: Scope, /) -> AbstractContextManager[None]:
        self.scopes.append(scope)
        return self._around(scope)

    @contextmanager
    def _around(self, scope: Scope) -> Generator[None]:
        self.where.append(here())
        self.said.append(f"in {scope.kind}")
        token = INSIDE.set(f"{self.id} {scope.kind} {scope.call_id}")
        yield
        INSIDE.reset(token)
        self.said.append(f"out {scope.kind}")
        self.where.append(here())


def here() -> tuple[int, object]:
    """The thread and the task that run."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident(), task


class Model:
    """A model that says where it was asked."""

    name = "model"

    def __init__(self, said: list[str], *replies: Completed) -> None:
        self.said = said
        self.where: list[tuple[int, object]] = []
        self._replies = list(replies)

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        self.where.append(here())
        self.said.append(f"model is asked inside {INSIDE.get()}")
        yield self._replies.pop(0)


def test_it_is_entered_around_exactly_the_model_call_and_the_tool_body() -> None:
    watcher = Encloses()
    said = watcher.said

    def says(word: str, answer: Any = None) -> Any:
        def hook(_: object) -> Any:
            said.append(word)
            return allow() if answer is None else answer

        return hook

    class Provides:
        def credential(self, request: Any, /) -> Any:
            said.append("credential")
            return static_credentials({"bank": "secret"}).credential(request)

    @tool(needs="bank")
    async def look(q: str) -> str:
        await asyncio.sleep(0)
        said.append(f"tool runs inside {INSIDE.get()}")
        return q

    model = Model(said, reply(calls=[call("c1", "look", {"q": "x"})]), DONE)
    builder = Agent.create(provider=model, model="m", name="n").tool(look).watch(watcher)
    builder.permission(Checker(says("permission", Permission(result="allow"))))
    builder.credentials(Provides()).act(
        input=[on_message("m")(says("message"))],
        before_tool=[before_tool("b")(says("before"))],
        after_tool=[after_tool("a")(says("after"))],
    )
    answered(run(builder.build().run("go")))
    assert said == [
        "message",
        *("in model", "model is asked inside encloses model None", "out model"),
        *("permission", "before", "credential"),
        *("in tool", "tool runs inside encloses tool c1", "out tool"),
        "after",
        *("in model", "model is asked inside encloses model None", "out model"),
    ]
    run_id = watcher.events[0].run_id
    assert watcher.scopes == [
        Scope(kind="model", run_id=run_id, segment=1, iteration=1),
        Scope(kind="tool", run_id=run_id, segment=1, iteration=1, call_id="c1"),
        Scope(kind="model", run_id=run_id, segment=1, iteration=2),
    ]


@pytest.mark.parametrize("kind", ["async", "plain", "inline"])
@pytest.mark.parametrize("together", [False, True])
def test_it_is_entered_and_left_in_the_thread_or_the_task_that_runs_the_body(
    kind: str, together: bool
) -> None:
    watcher = Encloses()
    ran: list[tuple[int, object]] = []
    inside: list[str] = []

    async def slow(q: str) -> str:
        await asyncio.sleep(0)
        ran.append(here())
        inside.append(INSIDE.get())
        return q

    def plain(q: str) -> str:
        ran.append(here())
        inside.append(INSIDE.get())
        return q

    look = tool(name="look")(slow) if kind == "async" else tool(name="look", inline=kind == "inline")(plain)
    batch = reply(calls=[call("c1", "look", {"q": "x"}), call("c2", "look", {"q": "y"})])
    builder = describe([batch, DONE], look, watch=[watcher], parallel_tools=together)[0]
    answered(run(builder.build().run("go")))
    tools = [place for place, scope in zip(watcher.where, _entered(watcher), strict=True) if scope == "tool"]
    assert sorted(inside) == ["encloses tool c1", "encloses tool c2"]
    assert {(thread, id(task)) for thread, task in ran} == {(thread, id(task)) for thread, task in tools}
    assert (threading.get_ident() in {thread for thread, _ in ran}) is (kind != "plain")


def _entered(watcher: Encloses) -> list[str]:
    """What was entered or left at each place."""
    return [word.partition(" ")[2] for word in watcher.said]


@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError, GeneratorExit])
@pytest.mark.parametrize("when", ["made", "entered", "left"])
def test_what_it_raises_is_isolated_and_told_of_like_any_failure(
    error: type[BaseException], when: str
) -> None:
    class Around(AbstractContextManager[None]):
        def __enter__(self) -> None:
            if when == "entered":
                raise error

        def __exit__(self, *_: object) -> None:
            if when == "left":
                raise error

    class Breaks(Seen):
        def enclose(self, scope: Scope, /) -> AbstractContextManager[None]:
            if when == "made":
                raise error
            return Around()

    def look(q: str) -> str:
        return q

    breaks, seen, works = Breaks("breaks"), Seen(), Encloses("works")
    replies = [reply(calls=[call("c1", "look", {"q": "x"})]), DONE]
    agent = describe(replies, look, watch=[breaks, works, seen])[0].build()
    assert answered(run(agent.run("go"))).text == "done"
    assert agent.health().watchers[0].failures == 3
    assert [(one.watcher, one.error_class, one.event) for one in seen.of(ObserverError)] == [
        ("breaks", error.__name__, "enclose")
    ]
    assert works.said == ["in model", "out model", "in tool", "out tool", "in model", "out model"]


def test_it_cannot_swallow_what_a_tool_raises() -> None:
    class Swallows(Seen):
        def enclose(self, scope: Scope, /) -> AbstractContextManager[None]:
            class Around(AbstractContextManager[None]):
                def __exit__(self, *_: object) -> bool:
                    return True

            return Around()

    def breaks() -> None:
        raise LookupError("no")

    replies = [reply(calls=[call("c1", "breaks", {})]), DONE]
    builder, model = describe(replies, breaks, watch=[Swallows()])
    answered(run(builder.build().run("go")))
    assert model.requests[1].messages[-1].text == "no"

"""Chunks of a streaming model are told of as counts, as they arrive; without them all is the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from footprint_core import Agent, MessageDeniedError, allow, before_tool, deny, on_message
from footprint_core.events import AgentConfigured, ModelCallEnded, TokenStreamed
from footprint_core.providers import Chunk, Completed, ModelRequest, Scripted, call, reply
from ruled import even, wire
from story import Seen, answered, facts_of, run

RULES: dict[str, Any] = {
    "none": {},
    "allows": {"output": [on_message("out")(lambda _: allow())]},
    "changes": {"output": [on_message("out")(lambda _: allow("other", why="because"))]},
    "denies": {"output": [on_message("out")(lambda _: deny("no"))]},
}
TOKENS = ("zan", "zi", "", "bar", "é\U0001f600")


def look(q: str) -> str:
    return q * 2


class Streams:
    """A model that notes, behind each chunk, how many a watcher was told of."""

    name = "streams"
    streaming = True

    def __init__(self, seen: Seen) -> None:
        self.told: list[int] = []
        self._seen = seen

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        for text in TOKENS:
            yield Chunk(text=text)
            self.told.append(len(self._seen.of(TokenStreamed)))
        yield Completed(text="".join(TOKENS))


@pytest.mark.parametrize("rules", RULES)
def test_a_chunk_is_told_of_as_it_arrives_with_or_without_output_rules(rules: str) -> None:
    seen = Seen()
    model = Streams(seen)
    agent = Agent.create(provider=model, model="m", name="n").act(**RULES[rules]).watch(seen).build()
    try:
        answered(run(agent.run("go")))
    except MessageDeniedError:
        assert rules == "denies"
    assert model.told == [1, 2, 3, 4, 5]
    tokens = seen.of(TokenStreamed)
    assert [event.chars for event in tokens] == [3, 2, 0, 3, 2]
    assert seen.types.index("stream.llm_start") < seen.types.index("stream.token")
    assert "stream.token" not in seen.types[seen.types.index("stream.llm_end") :]


def test_tokens_are_counts_from_zero_in_each_model_call_and_never_text() -> None:
    seen = Seen()
    first = reply(tokens=["zan", "zibar"], calls=[call("1", "look", {"q": "x"})])
    model = Scripted([first, reply(tokens=TOKENS)], streaming=True)
    builder = Agent.create(provider=model, model="m", name="n").tool(look).watch(seen)
    answered(run(builder.build().run("go")))
    told = [(event.iteration, event.token_index, event.chars) for event in seen.of(TokenStreamed)]
    assert told == [(1, 0, 3), (1, 1, 5), (2, 0, 3), (2, 1, 2), (2, 2, 0), (2, 3, 3), (2, 4, 2)]
    for event in seen.of(TokenStreamed):
        assert set(msgspec.to_builtins(event)) == {
            *("type", "run_id", "segment", "sequence", "time", "iteration", "token_index", "chars")
        }
    written = msgspec.json.encode(seen.events)
    assert not [text for text in ("zan", "zibar", "é") if text.encode() in written]


def test_a_model_that_does_not_stream_tells_of_no_chunk_and_everything_else_is_equal() -> None:
    act: Any = {
        "before_tool": [before_tool("b")(lambda _: allow({"q": "zz"}, why="because"))],
        "output": [on_message("out")(lambda _: allow("other", why="because"))],
    }
    replies = [reply(tokens=["a", "b"], calls=[call("1", "look", {"q": "x"})]), reply(tokens=["c", "d"])]
    seen, answers, requests = [], [], []
    for streaming in (False, True):
        watcher, model = Seen(), Scripted(replies, streaming=streaming)
        builder = Agent.create(provider=model, model="m", name="n").tool(look).act(**act).watch(watcher)
        answers.append(answered(run(builder.build().run("go"))))
        seen.append(watcher)
        requests.append([wire(request) for request in model.requests])
    assert [one.types.count("stream.token") for one in seen] == [0, 4]
    plain, streamed = (
        [_alike(event) for event in one.events if event.type != "stream.token"] for one in seen
    )
    assert plain == streamed
    assert requests[0] == requests[1]
    assert answers[0].text == answers[1].text
    assert [facts_of(row) for row in answers[0].decisions] == [facts_of(row) for row in answers[1].decisions]
    assert [event.first_chunk is None for one in seen for event in one.of(ModelCallEnded)] == [
        *(True, True),
        *(False, False),
    ]
    assert [event.streaming for one in seen for event in one.of(AgentConfigured)] == [False, True]


def _alike(event: Any) -> Any:
    """An event without what differs between equal runs, and without what says whether the model streams."""
    told: dict[str, Any] = even(event)
    return {name: value for name, value in told.items() if name not in {"streaming", "first_chunk"}}

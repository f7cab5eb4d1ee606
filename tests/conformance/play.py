"""Plays a scenario and observes what comes of it. It is not told what is expected."""

from __future__ import annotations

import json
from typing import assert_never

import msgspec

from conformance import served, words
from conformance.agent import build_agent
from conformance.events import seen_events
from conformance.observed import Observed
from conformance.scenario import (
    AbandonPause,
    Action,
    Build,
    FollowUp,
    FreshAgent,
    Given,
    Resume,
    Run,
    Scenario,
    Serve,
    ServeCall,
)
from conformance.values import Json
from conformance.world import ReadableLedger, World
from footprint_core import (
    Agent,
    Answer,
    AskPause,
    FootprintError,
    Outcome,
    Pause,
    check_in_approved,
    check_in_declined,
)
from footprint_core.mcp import McpServing


async def play(scenario: Scenario, ledger: ReadableLedger) -> Observed:
    """Play the script of a scenario to its end, or to a build that is refused."""
    world = World(scenario, ledger)
    stage = _Stage(world)
    steps: list[dict[str, Json]] = []
    for action in scenario.script:
        world.recording.clear()
        step = await stage.act(action)
        steps.append(step)
        if step["outcome"]["type"] == "build-refused":
            break
    whole: dict[str, Json] = {"modelRepliesUsed": world.model.used}
    if world.observers:
        whole["watchers"] = {key: one.decisions for key, one in world.observers.items()}
    sources = (*scenario.agent.tool_sources, *scenario.served.tool_sources)
    remote = frozenset(tool.name for source in sources for tool in source.tools)
    return Observed(steps=tuple(steps), whole=whole, remote=remote)


class _RefusedError(Exception):
    """An agent or a server could not be built."""


class _Stage:
    """The agent or the server under test, between actions."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._agent: Agent | None = None
        self._served: McpServing | None = None
        self._pause: Pause | None = None

    async def act(self, action: Action) -> dict[str, Json]:
        """Do one action, and tell what was observed by kind."""
        try:
            match action:
                case Run() | FollowUp() | Resume():
                    return await self._turn(action)
                case ServeCall():
                    return await self._serve_call(action)
                case Build():
                    self._built()
                    return {"outcome": {"type": "built"}}
                case FreshAgent():
                    self._agent = self._build()
                    return {"outcome": {"type": "ok"}}
                case AbandonPause():
                    self._built().abandon_pause()
                    return {"outcome": {"type": "ok"}}
                case Serve():
                    listed = await served.names(self._serving())
                    return {"outcome": {"type": "serving", "tools": listed}}
                case _:
                    assert_never(action)
        except _RefusedError:
            return {"outcome": {"type": "build-refused"}}

    async def _turn(self, action: Run | FollowUp | Resume) -> dict[str, Json]:
        agent = self._built()
        answer: Answer | None = None
        try:
            came = await self._door(agent, action)
            outcome = words.outcome(came)
            if isinstance(came, Answer):
                answer = came
            else:
                self._pause = came
        except Exception as error:  # noqa: BLE001 - whatever a door raises is what its caller got
            outcome = words.error(error)
        return {"outcome": outcome, **self._observed(agent, answer)}

    async def _door(self, agent: Agent, action: Run | FollowUp | Resume) -> Outcome:
        match action:
            case Run():
                return await agent.run(action.message)
            case FollowUp():
                return await agent.follow_up(action.message)
            case Resume():
                return await self._resume(agent, action)
            case _:
                assert_never(action)

    async def _resume(self, agent: Agent, action: Resume) -> Outcome:
        pause = self._pause
        if pause is None:
            raise ValueError("There is no pause to resume.")
        given = action.given
        if action.remember and isinstance(pause, AskPause):
            approver = given.approve or given.decline
            if approver is not None:
                self._world.remembered[pause.detail["key"]] = approver.by
        checkpoint = json.loads(json.dumps(pause.checkpoint))
        if given.nothing:
            return await agent.resume(checkpoint)
        return await agent.resume(checkpoint, _answer(given))

    def _observed(self, agent: Agent, answer: Answer | None) -> dict[str, Json]:
        recording, ledger = self._world.recording, self._world.ledger
        run_id = agent.last_run_id
        decisions = () if run_id is None else ledger.decisions(run_id)
        facts = () if run_id is None else tuple(entry.fact for entry in ledger.entries(run_id))
        out: dict[str, Json] = {
            "ledger": [words.row(decision) for decision in decisions],
            "events": seen_events(recording.events),
            "requests": [words.request(request) for request in recording.requests],
            "toolExecutions": list(recording.executions),
            "ruleLog": list(recording.rule_log),
        }
        if answer is not None and answer.stopped_early is not None:
            out["stoppedEarly"] = words.stopped(answer.stopped_early)
        sometimes = {
            "window": words.windows(facts),
            "outputAttempts": words.attempts(facts),
            "summarizerCalls": recording.summarizer_calls,
        }
        return {**out, **{kind: found for kind, found in sometimes.items() if found}}

    async def _serve_call(self, action: ServeCall) -> dict[str, Json]:
        read = await served.call(self._serving(), action.tool, action.args)
        recording = self._world.recording
        return {
            "outcome": {"type": "served-result", "isError": read.is_error, "text": read.text},
            "toolExecutions": [_without_id(entry) for entry in recording.executions],
            "ruleLog": [_without_id(entry) for entry in recording.rule_log],
        }

    def _built(self) -> Agent:
        if self._agent is None:
            self._agent = self._build()
        return self._agent

    def _build(self) -> Agent:
        try:
            return build_agent(self._world)
        except FootprintError as error:
            raise _RefusedError from error

    def _serving(self) -> McpServing:
        if self._served is None:
            try:
                self._served = served.serve(self._world)
            except FootprintError as error:
                raise _RefusedError from error
        return self._served


def _answer(given: Given) -> Json:
    if given.approve is not None:
        return check_in_approved(by=given.approve.by, note=given.approve.note)
    if given.decline is not None:
        return check_in_declined(by=given.decline.by, note=given.decline.note)
    return None if given.value is msgspec.UNSET else given.value


def _without_id(entry: Json) -> Json:
    return {key: value for key, value in entry.items() if key != "toolCallId"}

"""Tools as a scenario describes them, made with the public `tool`."""

from __future__ import annotations

import copy
from typing import NoReturn, assert_never

from conformance.predicates import holds
from conformance.recording import Recording
from conformance.scenario import ToolSpec
from conformance.values import Json, is_object
from footprint_core import Tool, ToolContext, ask_human, pause_here, tool


class ToolBrokeError(Exception):
    """What a tool raises when its scenario says so."""


def suite_tool(spec: ToolSpec, recording: Recording) -> Tool:
    """A tool that notes that it was entered, then does what its kind says."""
    body = _Body(spec, recording)
    made = tool(name=spec.name, schema=spec.input_schema, needs=spec.needs, check_in=spec.check_in)
    return made(body.run)


class _Body:
    """What a tool does, counting how often it did."""

    def __init__(self, spec: ToolSpec, recording: Recording) -> None:
        self._spec = spec
        self._recording = recording
        self._count = 0

    def run(self, args: dict[str, Json], context: ToolContext) -> Json:
        self._count += 1
        entered: Json = {"tool": self._spec.name, "args": copy.deepcopy(args), "toolCallId": context.call_id}
        if context.credential is not None:
            entered["credential"] = context.credential.kind
        self._recording.executions.append(entered)
        asked = self._spec.ask_when
        if asked is not None and holds(asked, {"args": args, "count": self._count}):
            _pause(self._spec.asks)
        return self._result(args)

    def _result(self, args: dict[str, Json]) -> Json:
        spec = self._spec
        match spec.kind:
            case "echo":
                return args
            case "fixed":
                return spec.returns
            case "sequence":
                return spec.returns[min(self._count, len(spec.returns)) - 1]
            case "count":
                return {"count": self._count}
            case "throw":
                raise ToolBrokeError(spec.message)
            case "ask-human":
                return _pause(spec.asks)
            case _:
                assert_never(spec.kind)


def _pause(payload: Json) -> NoReturn:
    if is_object(payload) and isinstance(payload.get("question"), str):
        detail = {key: value for key, value in payload.items() if key != "question"}
        ask_human(payload["question"], **detail)
    pause_here(payload)

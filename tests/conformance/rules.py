"""Rules as a scenario describes them, with exactly the hooks it names."""

from __future__ import annotations

import copy
from typing import Any

from conformance.messages import told
from conformance.predicates import holds
from conformance.recording import Recording
from conformance.scenario import Clause, RuleSpec
from conformance.values import Json
from conformance.verbs import outcome
from footprint_core import MessageContext, ToolCallContext, ToolResultContext, allow


class SuiteRule:
    """A rule that answers what its first fitting clause says. Its name may be a wrong one on purpose."""

    def __init__(self, spec: RuleSpec, recording: Recording, remembered: dict[str, str]) -> None:
        self.name: Any = spec.name
        # A hook that is not there at all is another rule than one that always allows.
        if spec.on_call is not None:
            self.on_tool_call = _CallHook(spec.name, spec.on_call, recording, remembered)
        if spec.on_result is not None:
            self.on_tool_result = _ResultHook(spec.name, spec.on_result, recording, remembered)
        if spec.on_message is not None:
            self.on_message = _MessageHook(spec.name, spec.on_message, recording, remembered)


class _Hook:
    """One hook of a rule, which counts its own calls and notes what it was handed."""

    def __init__(
        self, rule: Json, clauses: tuple[Clause, ...], recording: Recording, remembered: dict[str, str]
    ) -> None:
        self._rule = rule
        self._clauses = clauses
        self._recording = recording
        self._remembered = remembered
        self._count = 0

    def _answer(self, moment: str, handed: dict[str, Json], history: list[Json], value: Json) -> Any:
        """What the rule says about `value`; its answer may be a wrong one on purpose."""
        self._count += 1
        roles = [message["role"] for message in history]
        noted = {"rule": self._rule, "moment": moment, **handed, "history": roles}
        self._recording.rule_log.append(copy.deepcopy(noted))
        context = {**handed, "history": history, "count": self._count}
        for clause in self._clauses:
            fits = clause.phase is None or clause.phase == handed.get("phase")
            if fits and holds(clause.when, context):
                return outcome(clause, context, value, self._remembered)
        return allow()


class _CallHook(_Hook):
    def __call__(self, call: ToolCallContext, /) -> Any:
        return self._answer("before-tool", _of_call(call), _history(call), call.args)


class _ResultHook(_Hook):
    def __call__(self, call: ToolResultContext, /) -> Any:
        handed = {**_of_call(call), "result": call.result}
        if call.failed:
            handed["error"] = True
        return self._answer("after-tool", handed, _history(call), call.result)


class _MessageHook(_Hook):
    def __call__(self, message: MessageContext, /) -> Any:
        handed = {"phase": message.phase, "content": message.content}
        return self._answer(message.phase, handed, _history(message), message.content)


def _of_call(call: ToolCallContext) -> dict[str, Json]:
    handed: dict[str, Json] = {
        "toolName": call.tool_name,
        "toolCallId": call.tool_call_id,
        "iteration": call.iteration,
        "args": call.args,
    }
    if call.tool_source is not None:
        handed["toolSource"] = call.tool_source
    return handed


def _history(context: ToolCallContext | MessageContext) -> list[Json]:
    return [told(message) for message in context.history]

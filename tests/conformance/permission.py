"""A permission checker as a scenario describes it."""

from __future__ import annotations

from conformance.predicates import holds
from conformance.scenario import PermissionDefaults, PermissionRule, PermissionSpec
from footprint_core import Permission, ToolCallContext
from footprint_core.facts import PermissionResult


class DirectoryDownError(Exception):
    """What a checker raises when its scenario says so."""


class SuiteChecker:
    """Decides by the first rule that fits, else by its default."""

    def __init__(self, spec: PermissionSpec) -> None:
        self.name = spec.name
        self._spec = spec

    def check(self, call: ToolCallContext, /) -> Permission:
        """The decision about a call."""
        context = {"args": call.args, "iteration": call.iteration}
        for rule in self._spec.rules:
            if rule.tool == call.tool_name and holds(rule.when, context):
                if rule.decide == "throw":
                    raise DirectoryDownError(rule.message)
                return _permission(rule.decide, rule)
        return _permission(self._spec.default, self._spec.defaults)


def _permission(result: PermissionResult, said: PermissionRule | PermissionDefaults) -> Permission:
    return Permission(
        result=result,
        rationale=said.rationale,
        tell_model=said.tell_model,
        policy_rule_id=said.rule_id,
        reason=said.reason,
    )

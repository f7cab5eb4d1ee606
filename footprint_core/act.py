"""The completeness lock: five moments, five keys, and no sixth of either.

A type checker closes the chain moments -> fields -> parameters -> keys; the check at the end closes it
where nobody runs one.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, TypeAlias, TypedDict, assert_never

import msgspec

from footprint_core.chain.links import Link, Rule, link
from footprint_core.errors import BuilderError, MissingHookError, UnknownActKeyError
from footprint_core.middleware import MessageRule, ToolCallRule, ToolResultRule
from footprint_core.moments import ACT_KEYS, LOOP_MOMENTS, ActKey, LoopMoment, act_key_for
from footprint_core.window.strategy import WindowStrategy, window_strategy

CallRules: TypeAlias = Sequence[ToolCallRule] | None
ResultRules: TypeAlias = Sequence[ToolResultRule] | None
MessageRules: TypeAlias = Sequence[MessageRule] | None


class ActOptions(TypedDict, total=False):
    """What `.act()` takes: rules for each moment, and one window strategy. Every key is optional."""

    input: MessageRules
    before_tool: CallRules
    after_tool: ResultRules
    window: WindowStrategy | None
    output: MessageRules


class ResolvedAct(msgspec.Struct, frozen=True, kw_only=True):
    """Checked rules for every moment."""

    input: tuple[Rule, ...]
    before_tool: tuple[Rule, ...]
    after_tool: tuple[Rule, ...]
    window: WindowStrategy | None
    output: tuple[Rule, ...]

    def at(self, moment: LoopMoment) -> tuple[Rule, ...] | WindowStrategy | None:
        """What was given for a moment."""
        match moment:
            case "input":
                return self.input
            case "before-tool":
                return self.before_tool
            case "after-tool":
                return self.after_tool
            case "window":
                return self.window
            case "output":
                return self.output
            case _:
                assert_never(moment)

    def tool_links(self) -> tuple[Link, ...]:
        """The tool chain: the `before_tool` entries, then the `after_tool` entries not yet present."""
        late = [rule for rule in self.after_tool if not _among(rule, self.before_tool)]
        return tuple(link(rule) for rule in (*self.before_tool, *late))

    def message_links(self) -> tuple[Link, ...]:
        """The message chain: the `input` entries, then those named only under `output`.

        A rule named for one phase only passes through at the other.
        """
        early = [link(rule, guarded=None if _among(rule, self.output) else "output") for rule in self.input]
        late = [link(rule, guarded="input") for rule in self.output if not _among(rule, self.input)]
        return (*early, *late)


def _among(rule: Rule, rules: tuple[Rule, ...]) -> bool:
    return any(rule is other for other in rules)


def resolve_act(
    *,
    input: MessageRules = None,
    before_tool: CallRules = None,
    after_tool: ResultRules = None,
    window: WindowStrategy | None = None,
    output: MessageRules = None,
) -> ResolvedAct:
    """Check what `.act()` was given; nothing is attached before all of it holds.

    Raises:
        BuilderError: A bucket is no list, a rule has no name or is named twice, or the window is none.
        MissingHookError: A rule has no hook for the moment it stands under.
    """
    return ResolvedAct(
        input=_bucket("input", input, "on_message"),
        before_tool=_bucket("before_tool", before_tool, "on_tool_call"),
        after_tool=_bucket("after_tool", after_tool, "on_tool_result"),
        window=None if window is None else window_strategy(window),
        output=_bucket("output", output, "on_message"),
    )


_BUCKETS = {"on_tool_call": "before_tool", "on_tool_result": "after_tool", "on_message": "input or output"}


def _bucket(key: ActKey, rules: object, hook: str) -> tuple[Rule, ...]:
    if rules is None:
        return ()
    if not isinstance(rules, list | tuple):
        raise BuilderError(f".act({key}=...) takes a list of rules, not {type(rules).__name__}.")
    checked: list[Rule] = []
    for rule in rules:  # pyright: ignore[reportUnknownVariableType]
        name = link(rule).name  # pyright: ignore[reportUnknownArgumentType]
        if not callable(getattr(rule, hook, None)):  # pyright: ignore[reportUnknownArgumentType]
            raise MissingHookError(_missing(rule, name, key, hook), rule=name, bucket=key)  # pyright: ignore[reportUnknownArgumentType]
        if _among(rule, tuple(checked)):  # pyright: ignore[reportUnknownArgumentType]
            raise BuilderError(f"The rule {name!r} stands twice under {key}; name it once.")
        checked.append(rule)  # pyright: ignore[reportUnknownArgumentType]
    return tuple(checked)


def _missing(rule: object, name: str, key: ActKey, hook: str) -> str:
    for other, bucket in _BUCKETS.items():
        if other != hook and callable(getattr(rule, other, None)):
            return f"The rule {name!r} under {key} has no {hook}, but an {other}; it belongs under {bucket}."
    return f"The rule {name!r} under {key} has no {hook} method; give it one."


def refuse_unknown_keys(given: dict[str, Any]) -> None:
    """Refuse a key that is no moment, by name.

    Raises:
        UnknownActKeyError: There is one.
    """
    for key in given:
        if key not in ACT_KEYS:
            raise UnknownActKeyError(key=key, known=ACT_KEYS)


def _check_lock() -> None:
    keys = set(ACT_KEYS)
    spellings: dict[str, set[str]] = {
        "ActOptions": set(ActOptions.__optional_keys__),
        "resolve_act": set(inspect.signature(resolve_act).parameters),
        "ResolvedAct": set(ResolvedAct.__struct_fields__),
        "LOOP_MOMENTS": {act_key_for(moment) for moment in LOOP_MOMENTS},
    }
    for place, found in spellings.items():
        if odd := sorted(found ^ keys):
            raise BuilderError(
                f"{place} and ACT_KEYS differ in {', '.join(odd)}; every moment needs one key."
            )


_check_lock()

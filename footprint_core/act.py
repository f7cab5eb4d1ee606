"""The completeness lock: five moments, five keys, and no sixth of either.

A type checker closes the chain moments -> fields -> parameters -> keys; the check at the end closes it
where nobody runs one.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypedDict, assert_never, cast, get_args

import msgspec

from footprint_core.chain.links import Link, Rule, link
from footprint_core.errors import BuilderError, MissingHookError, UnknownActKeyError
from footprint_core.middleware import MessageRule, Phase, ToolCallRule, ToolResultRule
from footprint_core.moments import ACT_KEYS, LOOP_MOMENTS, ActKey, LoopMoment, act_key_for
from footprint_core.seams import seam_for
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
    """Checked rules for every moment, each read once."""

    input: tuple[Link, ...]
    before_tool: tuple[Link, ...]
    after_tool: tuple[Link, ...]
    window: WindowStrategy | None
    output: tuple[Link, ...]

    def at(self, moment: LoopMoment) -> tuple[Link, ...] | WindowStrategy | None:
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
        late = [one for one in self.after_tool if not _among(one, self.before_tool)]
        return (*self.before_tool, *late)

    def message_links(self) -> tuple[Link, ...]:
        """The message chain: the `input` entries, then those named only under `output`.

        A rule named for one phase only passes through at the other.
        """
        early = [_only_at("input", one) if not _among(one, self.output) else one for one in self.input]
        late = [_only_at("output", one) for one in self.output if not _among(one, self.input)]
        return (*early, *late)


def _among(one: Link, links: Sequence[Link]) -> bool:
    return any(one is other for other in links)


def _only_at(phase: Phase, one: Link) -> Link:
    return msgspec.structs.replace(one, guarded="output" if phase == "input" else "input")


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
    read: dict[int, Link] = {}
    return ResolvedAct(
        input=_bucket("input", input, read),
        before_tool=_bucket("before-tool", before_tool, read),
        after_tool=_bucket("after-tool", after_tool, read),
        window=None if window is None else window_strategy(window),
        output=_bucket("output", output, read),
    )


def _bucket(moment: LoopMoment, rules: object, read: dict[int, Link]) -> tuple[Link, ...]:
    """The links of one bucket. A rule is read once, also when it stands in another bucket too."""
    seam = seam_for(moment)
    key, hook = seam.key, seam.hook
    if rules is None:
        return ()
    if not isinstance(rules, list | tuple):
        raise BuilderError(f".act({key}=...) takes a list of rules, not {type(rules).__name__}.")
    checked: list[Link] = []
    for rule in cast("Sequence[Rule]", rules):
        one = read.get(id(rule))
        if one is None:
            one = read[id(rule)] = link(rule)
        if getattr(one, hook, None) is None:
            raise MissingHookError(_missing(one, key, hook), rule=one.name, bucket=key)
        if _among(one, checked):
            raise BuilderError(f"The rule {one.name!r} stands twice under {key}; name it once.")
        checked.append(one)
    return tuple(checked)


def _missing(one: Link, key: ActKey, hook: str) -> str:
    for other, buckets in _buckets().items():
        if other != hook and getattr(one, other, None) is not None:
            where = " or ".join(buckets)
            return (
                f"The rule {one.name!r} under {key} has no {hook}, but an {other}; it belongs under {where}."
            )
    return f"The rule {one.name!r} under {key} has no {hook} method; give it one."


def _buckets() -> dict[str, list[str]]:
    """The keys a rule with a hook may stand under."""
    found: dict[str, list[str]] = {}
    for moment in LOOP_MOMENTS:
        seam = seam_for(moment)
        found.setdefault(seam.hook, []).append(seam.key)
    return found


def refuse_unknown_keys(given: Iterable[str]) -> None:
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
        "ActKey": set(get_args(ActKey)),
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

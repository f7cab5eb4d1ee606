"""One rule is asked, and whatever comes back becomes an outcome that is legal at its moment.

What a rule returned or raised is never quoted, a rule's own words excepted: a fabricated result would
otherwise reach the model as the reason for refusing it.
"""

from __future__ import annotations

import inspect
import time
from typing import Any, Never, NoReturn, TypeAlias, cast, get_args, get_origin

import msgspec

from footprint_core import plain
from footprint_core.chain.limit import Unanswered, answer_within
from footprint_core.chain.links import Hook, Link
from footprint_core.clock import is_seconds
from footprint_core.decisions import AnswerKind
from footprint_core.errors import OutcomeError
from footprint_core.moments import LoopMoment
from footprint_core.outcomes import (
    UNCHANGED,
    Allow,
    Ask,
    Deny,
    MessageOutcome,
    ToolOutcome,
    ToolResultOutcome,
)
from footprint_core.pause.signal import PauseSignal
from footprint_core.threads import MAX_LEFT_BEHIND, Settled, drop

Answer: TypeAlias = Allow[Any] | Deny | Ask
Arms: TypeAlias = tuple[type, ...]


def _arms(union: object) -> Arms:
    """The classes of a union of outcomes, so that what is legal cannot drift from the type."""
    return tuple(get_origin(arm) or arm for arm in get_args(union))


CALL_ARMS = _arms(ToolOutcome)
RESULT_ARMS = _arms(ToolResultOutcome)
MESSAGE_ARMS = _arms(MessageOutcome)


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule decided.

    Attributes:
        answer: The outcome that counts.
        how: How it came about.
        duration_us: How long the rule took, microseconds.
        error_class: The class of what it raised, or None.
    """

    answer: Answer
    how: AnswerKind
    duration_us: int
    error_class: str | None = None


async def judge(link: Link, hook: Hook, context: object, *, moment: LoopMoment, arms: Arms) -> Judgement:
    """Ask a rule. An error is a denial; so is anything that is not exactly a legal outcome.

    Raises:
        BaseException: What is no Exception, a cancellation for example, is not a decision.
    """
    began = time.perf_counter_ns()
    try:
        if link.timeout is None:
            answer = hook(context)
            if type(answer) not in arms and inspect.isawaitable(answer):
                answer = await answer
        else:
            came = await answer_within(hook, context, link.timeout)
            if isinstance(came, str):
                return _denied(_unanswered(link, came), "timed-out", began)
            answer = _returned(came)
        if type(answer) in arms:
            # In here, since the texts of an arm can be of a class that raises.
            return _judged(link.name, cast("Answer", answer), moment, began)
    except Exception as error:  # noqa: BLE001 - a rule that raises is a denial, whatever it raises
        return _denied(_raised(link.name, error), "raised", began, error_class=type(error).__name__)
    except PauseSignal as signal:
        why = (
            f"The rule {link.name} tried to pause the run, which counts as a denial: only a tool may pause "
            "itself."
        )
        return _denied(why, "raised", began, error_class=type(signal).__name__)
    drop(answer)
    why = (
        f"The rule {link.name} answered with {_type(answer)}, which is no outcome at {moment}, so it counts "
        "as a denial."
    )
    return _denied(why, "malformed", began)


def _judged(name: str, legal: Answer, moment: LoopMoment, began: int) -> Judgement:
    took = (time.perf_counter_ns() - began) // 1000
    if type(legal) is Allow and legal.value is UNCHANGED and legal.why is None:
        # What most rules say most of the time, and there is nothing wrong with it.
        return Judgement(answer=legal, how="given", duration_us=took)
    if (fault := _malformed(name, legal, moment)) is not None:
        return Judgement(answer=Deny(reason=fault), how="malformed", duration_us=took)
    return Judgement(answer=_own(legal), how="given", duration_us=took)


def _own(legal: Answer) -> Answer:
    """The answer with texts that are exactly texts, and no reason that says nothing."""
    match legal:
        case Allow(value=value, why=why):
            if why is None or (type(why) is str and why.strip()):
                return legal
            return Allow[Any](value=value, why=plain.detach(why) if _spoken(why) else None)
        case Deny(reason=reason):
            return legal if type(reason) is str else Deny(reason=plain.detach(reason))
        case Ask(question=question):
            if type(question) is str:
                return legal
            return Ask(question=plain.detach(question), detail=legal.detail, expires_in=legal.expires_in)


def _returned(settled: Settled) -> object:
    # No coroutine: a StopIteration would not leave one as itself.
    value, error = settled
    if error is not None:
        raise error
    return value


def _denied(why: str, how: AnswerKind, began: int, *, error_class: str | None = None) -> Judgement:
    took = (time.perf_counter_ns() - began) // 1000
    return Judgement(answer=Deny(reason=why), how=how, duration_us=took, error_class=error_class)


def _unanswered(link: Link, why: Unanswered) -> str:
    match why:
        case "late":
            return f"The rule {link.name} did not answer within {link.timeout} s, so it counts as a denial."
        case "crowded":
            return (
                f"The rule {link.name} was not asked, since {MAX_LEFT_BEHIND} rules that ran out of time are "
                "still running, so it counts as a denial."
            )


def _replacement(name: str, allowed: Allow[Any], value: object, moment: LoopMoment) -> str | None:
    why = cast("object", allowed.why)
    if why is not None and not isinstance(why, str):
        return f"The rule {name} gave a reason that is no text."
    if value is UNCHANGED:
        return None
    if not _spoken(why):
        return f"The rule {name} changed the value at {moment} without a reason."
    wanted = _WANTED.get(moment)
    if wanted is not None and not isinstance(value, wanted[0]):
        came = _type(value)
        return f"The rule {name} replaced the value at {moment} by {came}, where only {wanted[1]} can stand."
    if moment == "before-tool" and not plain.examine(value)[1]:
        return f"The rule {name} replaced the arguments by values JSON cannot hold."
    return None


def _spoken(text: object) -> bool:
    # The arms can be made without their verbs, and then hold anything.
    return isinstance(text, str) and bool(text.strip())


def _type(answer: object) -> str:
    return type(answer).__name__


def _raised(name: str, error: Exception) -> str:
    return f"The rule {name} failed: {plain.message_of(error)}"


def _unheard_of(answer: Never) -> NoReturn:
    # An arm that was added to a union and nowhere else. Not `assert_never`: its text quotes what it is given.
    raise OutcomeError(f"An answer of type {type(answer).__name__} is legal and means nothing; add its arm.")


def _malformed(
    name: str, answer: ToolOutcome | ToolResultOutcome | MessageOutcome, moment: LoopMoment
) -> str | None:
    """Why a legal arm carries something illegal, or None."""
    match answer:
        case Allow(value=value):
            return _replacement(name, answer, value, moment)
        case Deny(reason=reason):
            return None if _spoken(reason) else f"The rule {name} denied without a reason."
        case Ask():
            return _question(name, answer)
        case _:
            _unheard_of(answer)


def _question(name: str, asked: Ask) -> str | None:
    if not _spoken(asked.question):
        return f"The rule {name} asked without a question."
    if not plain.examine(asked.detail)[1]:
        return f"The rule {name} asked with a detail JSON cannot hold."
    if asked.expires_in is not None and not is_seconds(asked.expires_in):
        return f"The rule {name} asked with an expiry that is no number of seconds above 0."
    return None


_WANTED: dict[LoopMoment, tuple[type, str]] = {
    "input": (str, "text"),
    "output": (str, "text"),
    "before-tool": (dict, "a dict of arguments"),
}

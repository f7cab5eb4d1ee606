"""Every metric there is: its name, unit, labels and buckets, and what a label may say. Data, nothing else.

No other label is ever written. Runs, calls, users and conversations are no labels, for each would be a new
series; nor is a name that a model made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from footprint_core.decisions import Verdict
from footprint_core.facts import CallStatus, RunOutcome
from footprint_core.moments import LOOP_MOMENTS
from footprint_observe import semconv as n

Kind: TypeAlias = Literal["counter", "histogram", "observed counter", "observed gauge"]
"""What is done with a number: added up, sorted into buckets, or read when somebody collects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric.

    Attributes:
        name: Its name, from the table of names.
        kind: What is done with its numbers.
        unit: Its unit, as UCUM has it; a word in braces is what is counted.
        about: What it says, for whoever reads a dashboard.
        labels: Its labels, in the order values are given.
        buckets: The upper bounds of a histogram's buckets.
    """

    name: str
    kind: Kind
    unit: str
    about: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


OTHER: Final = "other"
"""What a label says when its name is not known, or when there are too many."""

MAX_SETS: Final = 1000
"""How many sets of labels a metric has before further names become `OTHER`. The SDK's own bound is 2000; what
comes behind that loses all of its labels."""

SHIP: Final = "ship"
"""The stage at which a recorder could not ship what it had taken."""

WATCH: Final = "watch"
"""The stage at which a watcher raised when it was told of an event; counted once a run."""

TOKENS: Final = ("input", "output")

# A label with words says nothing else but `OTHER`; one without says a name that the program declared.
LABELS: Final[dict[str, frozenset[str] | None]] = {
    n.AGENT_NAME: None,
    n.CALL_TOOL: None,
    n.ERROR_TYPE: None,
    n.MIDDLEWARE: None,
    n.MOMENT: frozenset(LOOP_MOMENTS),
    n.OPERATION_NAME: frozenset({n.CHAT}),
    n.OUTCOME: frozenset(get_args(Verdict)),
    n.PAUSE_ANSWER: frozenset({"approved", "declined", "value"}),
    n.PROVIDER_NAME: None,
    n.REDACTION_STRATEGY: None,
    n.REQUEST_MODEL: None,
    n.RUN_OUTCOME: frozenset(get_args(RunOutcome)),
    n.STAGE: frozenset({SHIP, WATCH}),
    n.TOKEN_TYPE: frozenset(TOKENS),
    n.TOOL_STATUS: frozenset({*get_args(CallStatus), "paused"}),
    n.WATCHER: None,
}
"""Every label there is, and the words it can say."""

_MODEL = (n.PROVIDER_NAME, n.REQUEST_MODEL, n.OPERATION_NAME)
# The conventions recommend these two.
_MODEL_SECONDS = tuple(0.01 * 2**power for power in range(14))
_MODEL_TOKENS = tuple(float(4**power) for power in range(14))
# A rule takes microseconds, or asks another model.
_RULE_SECONDS = (1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30)
_TOOL_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_RUN_SECONDS = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
# From a second to a week.
_PERSON_SECONDS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 14400, 28800, 86400, 259200, 604800)
_ITERATIONS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100)

DECISIONS: Final = Metric(
    name=n.DECISIONS,
    kind="counter",
    unit="{decision}",
    about="Decisions that took effect; those of a rule in shadow did not.",
    labels=(n.MOMENT, n.OUTCOME, n.MIDDLEWARE, n.AGENT_NAME),
)
MIDDLEWARE_DURATION: Final = Metric(
    name=n.MIDDLEWARE_DURATION,
    kind="histogram",
    unit="s",
    about="How long a rule ran, in shadow or not.",
    labels=(n.MOMENT, n.MIDDLEWARE, n.AGENT_NAME),
    buckets=_RULE_SECONDS,
)
MIDDLEWARE_ERRORS: Final = Metric(
    name=n.MIDDLEWARE_ERRORS,
    kind="counter",
    unit="{error}",
    about="Rules that raised, ran out of time, or answered what is no answer.",
    labels=(n.MOMENT, n.MIDDLEWARE, n.AGENT_NAME),
)
RUNS: Final = Metric(
    name=n.RUNS,
    kind="counter",
    unit="{run}",
    about="Segments of runs that ended: a run that waits for a person ends one as paused, and goes on later.",
    labels=(n.RUN_OUTCOME, n.AGENT_NAME),
)
RUN_DURATION: Final = Metric(
    name=n.RUN_DURATION,
    kind="histogram",
    unit="s",
    about="How long a segment of a run took; the wait for a person lies between two.",
    labels=(n.RUN_OUTCOME, n.AGENT_NAME),
    buckets=_RUN_SECONDS,
)
RUN_ITERATIONS: Final = Metric(
    name=n.RUN_ITERATIONS,
    kind="histogram",
    unit="{iteration}",
    about="Model calls of a run that is over, those before its pauses included.",
    labels=(n.AGENT_NAME,),
    buckets=_ITERATIONS,
)
TOOLS: Final = Metric(
    name=n.TOOLS,
    kind="counter",
    unit="{call}",
    about="Tool calls by how they ended; one that paused counts as that, and again when it ends.",
    labels=(n.TOOL_STATUS, n.AGENT_NAME),
)
TOOL_DURATION: Final = Metric(
    name=n.TOOL_DURATION,
    kind="histogram",
    unit="s",
    about="How long the body of a tool ran.",
    labels=(n.CALL_TOOL, n.AGENT_NAME),
    buckets=_TOOL_SECONDS,
)
REDACTIONS: Final = Metric(
    name=n.REDACTION_COUNT,
    kind="counter",
    unit="{redaction}",
    about="Values of decisions that were redacted.",
    labels=(n.REDACTION_STRATEGY,),
)
APPROVALS_PENDING: Final = Metric(
    name=n.APPROVALS_PENDING,
    kind="observed gauge",
    unit="{approval}",
    about="Questions in the ledger that wait for a person.",
)
APPROVALS_OLDEST: Final = Metric(
    name=n.APPROVALS_OLDEST,
    kind="observed gauge",
    unit="s",
    about="How long the oldest of them has waited; 0 when there is none.",
)
APPROVAL_LATENCY: Final = Metric(
    name=n.APPROVAL_LATENCY,
    kind="histogram",
    unit="s",
    about="How long a person took to answer.",
    labels=(n.PAUSE_ANSWER,),
    buckets=_PERSON_SECONDS,
)
RECORDER_DROPPED: Final = Metric(
    name=n.RECORDER_DROPPED,
    kind="observed counter",
    unit="{item}",
    about="What recorders of this process lost.",
    labels=(n.WATCHER,),
)
RECORDER_ERRORS: Final = Metric(
    name=n.RECORDER_ERRORS,
    kind="observed counter",
    unit="{error}",
    about="Shipments of recorders that failed, and runs in which a watcher raised.",
    labels=(n.WATCHER, n.STAGE),
)
RECORDER_QUEUE: Final = Metric(
    name=n.RECORDER_QUEUE,
    kind="observed gauge",
    unit="{item}",
    about="What waits in recorders of this process.",
    labels=(n.WATCHER,),
)
TOKEN_USAGE: Final = Metric(
    name=n.TOKEN_USAGE,
    kind="histogram",
    unit="{token}",
    about="Tokens of a model call; a provider that does not say counts nothing.",
    labels=(n.TOKEN_TYPE, *_MODEL),
    buckets=_MODEL_TOKENS,
)
OPERATION_DURATION: Final = Metric(
    name=n.OPERATION_DURATION,
    kind="histogram",
    unit="s",
    about="How long a model call took.",
    labels=(*_MODEL, n.ERROR_TYPE),
    buckets=_MODEL_SECONDS,
)
TIME_TO_FIRST_CHUNK: Final = Metric(
    name=n.TIME_TO_FIRST_CHUNK,
    kind="histogram",
    unit="s",
    about="How long a streamed model call took to say its first word.",
    labels=_MODEL,
    buckets=_MODEL_SECONDS,
)

ALL: Final[tuple[Metric, ...]] = tuple(one for one in dict(vars()).values() if isinstance(one, Metric))
"""Every metric, in this order."""

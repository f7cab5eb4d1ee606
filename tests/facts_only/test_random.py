"""Random agents with random secrets: no byte that any recorder exports has one, in any form."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from facts_only.leaky import WAYS, Leaky, leaky
from facts_only.random_agents import ALPHABETS, Plan, plans, play, secrets
from facts_only.shipping import RECORDERS, Exports, exports
from facts_only.sweep import leaks
from footprint_core.events import DecisionFiled, Event, ToolCallEnded, TurnEnded
from footprint_core.facts import CallStatus, RunOutcome
from story import run

RANDOM = settings(
    max_examples=245,
    # To shrink an example takes minutes, and what is found names the recorder and the form.
    phases=[Phase.generate],
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
SEVERAL = st.lists(plans, min_size=3, max_size=10)


class Ends:
    """Counts how runs and calls came out, and what rules answered."""

    id = "ends"

    def __init__(self) -> None:
        self.runs: set[str] = set()
        self.met: set[str] = set()

    def on_event(self, event: Event, /) -> None:
        self.runs.add(event.run_id)
        match event:
            case TurnEnded():
                self.met.add(event.outcome)
            case ToolCallEnded():
                self.met.add(f"tool {event.status}")
            case DecisionFiled():
                self.met.add(f"{event.moment} {event.outcome} {event.answer}")
            case _:
                pass


ONCE = {name: made for name, made in RECORDERS.items() if "gRPC" not in name}
"""What a recorder ships does not depend on the way; those conversations that are written down take each."""


def test_random_agents_let_no_random_secret_out(tmp_path: Path) -> None:
    with exports(tmp_path, ONCE) as out:
        ends = _played(out)
    assert len(ends.runs) > 2000
    nobody_cancels = {*get_args(RunOutcome)} - {"cancelled", "abandoned"}
    statuses = {f"tool {status}" for status in get_args(CallStatus)} - {"tool cancelled"}
    before = {f"before-tool {word}" for word in ("ask given", "allow person", "deny person", "deny raised")}
    assert nobody_cancels | statuses | before <= ends.met


def _played(out: Exports) -> Ends:
    ends = Ends()

    @RANDOM
    @given(SEVERAL, st.sampled_from(sorted(ALPHABETS)).flatmap(secrets))
    def agents(several: list[Plan], secret: str) -> None:
        for plan in several:
            before = set(ends.runs)
            ledger = run(play(plan, secret, (*out.recorders, ends)))
            kept = msgspec.json.encode([ledger.entries(run_id) for run_id in ends.runs - before])
            assert msgspec.json.encode(secret)[1:-1] in kept
        assert leaks(out.drained(), secret) == []

    agents()
    return ends


class Rarely(Leaky):
    """Lets a text out only at the end of a run that a checker halted."""

    text = ""

    def on_event(self, event: Event, /) -> None:
        if isinstance(event, TurnEnded) and event.outcome == "halted":
            self.let_out(event, self.text)


@pytest.mark.parametrize("way", ["as it is", "in base64", "in halves"])
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_a_recorder_that_seldom_lets_one_value_out_is_found_by_random_agents(
    alphabet: str, way: str, tmp_path: Path
) -> None:
    with exports(tmp_path, {"leaky": leaky(WAYS[way], "", kind=Rarely)}) as out:
        (recorder,) = out.recorders
        assert isinstance(recorder, Rarely)

        @settings(RANDOM, max_examples=30)
        @given(SEVERAL, secrets(alphabet))
        def agents(several: list[Plan], secret: str) -> None:
            recorder.text = secret
            for plan in several:
                run(play(plan, secret, out.recorders))
            assert leaks(out.drained(), secret) == []

        with pytest.raises(AssertionError, match="leaky: "):
            agents()

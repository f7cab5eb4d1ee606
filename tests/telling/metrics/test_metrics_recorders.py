"""How the recorders of a process do: what they lost, what waits in them, how often they failed."""

from __future__ import annotations

import gc
import threading
from typing import Any

from footprint_core.providers import reply
from footprint_observe.recording import Handover, handovers
from recorders.otel_metrics import OtelMetrics
from recorders.otel_metrics_table import SHIP, WATCH
from story import describe, run
from telling.metrics.figures import Metered
from telling.metrics.test_metrics_runs import pay

DROPPED = "footprint.recorder.dropped"
ERRORS = "footprint.recorder.errors"
QUEUE = "footprint.recorder.queue"
WHO = "footprint.watcher"
STAGE = "footprint.stage"


class Shipping:
    """A queue that ships when a test lets it, and fails at what a test says."""

    def __init__(self, id: str) -> None:
        self.entered, self.go = threading.Event(), threading.Event()
        self.queue: Handover[int] = Handover(self._ship, id=id, batch=1, bound=2, delay=0.0)

    def _ship(self, batch: list[int]) -> bool:
        self.entered.set()
        self.go.wait(10)
        return batch[0] > 0


def test_what_recorders_lost_and_what_waits_in_them_is_read_without_any_wiring() -> None:
    metered = Metered()
    shipping = Shipping("ships-somewhere")
    for item in (1, -1, 2):
        shipping.queue.put(item)
    assert metered.by(QUEUE, WHO)["ships-somewhere",] == shipping.queue.queued >= 2
    shipping.go.set()
    shipping.queue.close(10.0)
    lost = shipping.queue.dropped
    assert lost >= 1
    assert metered.by(DROPPED, WHO)["ships-somewhere",] == lost
    assert metered.by(ERRORS, WHO, STAGE)["ships-somewhere", SHIP] == 1
    assert metered.by(QUEUE, WHO, zeros=True)["ships-somewhere",] == 0


def test_recorders_of_one_id_are_added_up_and_what_is_gone_stays_counted() -> None:
    metered = Metered()

    def fails() -> None:
        shipping = Shipping("of-one-id")
        shipping.go.set()
        shipping.queue.put(-1)
        shipping.queue.close(10.0)
        metered.by(ERRORS, WHO)

    for _ in range(3):
        fails()
        gc.collect()
    assert not [queue for queue in handovers() if queue.id == "of-one-id"]
    assert metered.by(ERRORS, WHO, STAGE)["of-one-id", SHIP] == 3
    assert metered.by(DROPPED, WHO)["of-one-id",] == 3


def test_a_recorder_that_fails_at_nothing_is_there_with_zeros() -> None:
    metered = Metered()
    shipping = Shipping("fails-at-nothing")
    assert metered.by(ERRORS, WHO, STAGE, zeros=True)["fails-at-nothing", SHIP] == 0
    assert metered.by(DROPPED, WHO, zeros=True)["fails-at-nothing",] == 0
    shipping.queue.close(1.0)


def test_what_is_shipped_after_it_was_given_up_stays_counted_as_lost() -> None:
    metered = Metered()
    shipping = Shipping("given-up")
    shipping.queue.put(1)
    assert shipping.entered.wait(10)
    shipping.queue.close(0.0)
    assert metered.by(DROPPED, WHO)["given-up",] == 1
    shipping.go.set()
    shipping.queue.close(10.0)
    assert metered.by(DROPPED, WHO)["given-up",] == 1


def test_a_watcher_that_raises_is_an_error_once_a_run() -> None:
    class Raises:
        id = "raises"

        def on_event(self, event: Any, /) -> None:
            raise LookupError("secret words")

    metered = Metered()
    agent = describe([reply(text="a"), reply(text="b")], pay, watch=[Raises(), metered.recorder])[0].build()
    for _ in range(2):
        run(agent.run("go"))
    found = metered.by(ERRORS, WHO, STAGE)
    assert {key: number for key, number in found.items() if key[1] == WATCH} == {("raises", WATCH): 2}


def test_two_recorders_on_one_provider_say_it_once() -> None:
    metered = Metered()
    other = OtelMetrics(meter_provider=metered.provider, id="another")
    shipping = Shipping("said-once")
    shipping.go.set()
    shipping.queue.put(-1)
    shipping.queue.close(10.0)
    assert metered.by(ERRORS, WHO)["said-once",] == 1
    other.close(1.0)


def test_a_recorder_takes_figures_from_many_threads_and_loses_none() -> None:
    from telling.metrics.test_metrics_table import configured, decided

    metered = Metered()
    metered.recorder.on_event(configured(before_tool=("looks",)))

    def tell() -> None:
        for _ in range(500):
            metered.recorder.on_event(decided("looks"))

    telling = [threading.Thread(target=tell) for _ in range(8)]
    for thread in telling:
        thread.start()
    while any(thread.is_alive() for thread in telling):
        metered.by("footprint.decisions")
    assert metered.by("footprint.decisions") == {(): 4000}
    assert metered.by("footprint.middleware.duration") == {(): 4000}

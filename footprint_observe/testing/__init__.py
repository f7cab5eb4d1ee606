"""For whoever builds a recorder: the tests every recorder passes, and an event of every class."""

from __future__ import annotations

from footprint_observe.testing.contract import RecorderContract
from footprint_observe.testing.samples import sample_events

__all__ = ["RecorderContract", "sample_events"]

"""What a recorder is made of: a bounded queue with a thread, and a block that keeps it open."""

from __future__ import annotations

from footprint_observe.recording.alive import handovers
from footprint_observe.recording.handover import Handover, Shipped
from footprint_observe.recording.names import Names, SegmentNames
from footprint_observe.recording.opened import Opened
from footprint_observe.recording.tell_later import Queued, queued

__all__ = ["Handover", "Names", "Opened", "Queued", "SegmentNames", "Shipped", "handovers", "queued"]

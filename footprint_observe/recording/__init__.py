"""What a recorder is made of: a bounded queue with a thread, and a block that keeps it open."""

from __future__ import annotations

from footprint_observe.recording.handover import Handover
from footprint_observe.recording.opened import Opened

__all__ = ["Handover", "Opened"]

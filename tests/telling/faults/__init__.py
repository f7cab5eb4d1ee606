"""Faults of what recorders ship to: a run stays as it is, every loss is counted, every wait ends."""

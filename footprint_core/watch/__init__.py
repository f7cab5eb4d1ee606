"""Watching: watchers and subscribers are told what happened, in order, and can change none of it."""

from footprint_core.watch.audience import Audience, being_told
from footprint_core.watch.bus import Bus
from footprint_core.watch.listener import WatcherHealth
from footprint_core.watch.ports import Correlating, Counting, Enclosing, Ignoring, Recorder, Scope, Watcher
from footprint_core.watch.subscriptions import Subscription

__all__ = [
    "Audience",
    "Bus",
    "Correlating",
    "Counting",
    "Enclosing",
    "Ignoring",
    "Recorder",
    "Scope",
    "Subscription",
    "Watcher",
    "WatcherHealth",
    "being_told",
]

"""Appends a line for each denial to a file."""

from pathlib import Path

from footprint_core.events import DecisionFiled, Event
from footprint_observe.recording import Queued, queued


class Denials:
    id = "denial_log"

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def on_event(self, event: Event) -> None:
        if isinstance(event, DecisionFiled) and event.outcome == "deny":
            with self._path.open("a") as file:
                file.write(f"{event.run_id} {event.middleware} at {event.moment}\n")


def denial_log(path: str | Path) -> Queued:
    """A recorder: the watcher above may be slow, and no run waits for it."""
    return queued(Denials(path))

"""How figures leave a process: what every way has, and the way of the application's own meter provider."""

from __future__ import annotations

import logging
from typing import Protocol

from opentelemetry.metrics import MeterProvider, get_meter_provider

_log = logging.getLogger("footprint")
_STANDS_IN = "_ProxyMeterProvider"
CLOSED = (
    "OtelMetrics() was closed with the last agent that had it, so later figures are lost; keep it open "
    "with a `with` block."
)
"""What is said of a run that begins after that."""

_SILENT = frozenset({"NoOpMeterProvider", _STANDS_IN})


class Way(Protocol):
    """A way out for figures."""

    @property
    def provider(self) -> MeterProvider:
        """Makes the meters."""
        ...

    @property
    def dropped(self) -> int:
        """How many collections were lost for good."""
        ...

    @property
    def queued(self) -> int:
        """How many collections are to come."""
        ...

    @property
    def errors(self) -> int:
        """How many collections could not be shipped."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What whoever runs the agent should know."""
        ...

    def begin(self) -> None:
        """A run begins."""
        ...

    def leave(self) -> bool:
        """Let go, in a forked process, of what its parent has; False when the way goes on there as it is."""
        ...

    def anew(self) -> Way:
        """The way of that process, which begins at zero; asked when its first run begins."""
        ...

    def flush(self, timeout: float, /) -> bool:
        """Ship what there is, within `timeout` seconds; False when that failed."""
        ...

    def close(self, timeout: float, /) -> None:
        """Ship what there is and give everything back, within `timeout` seconds."""
        ...


class Given:
    """The way of somebody else's meter provider, who flushes it, closes it, and sees to its forks.

    Args:
        provider: The provider.
    """

    dropped = queued = errors = 0

    def __init__(self, provider: MeterProvider) -> None:
        self.provider = provider
        self._said = False

    @property
    def notices(self) -> tuple[str, ...]:
        """Whether nobody will ever see the figures."""
        kind = type(self.provider).__name__
        if kind == _STANDS_IN:
            # It hands on to the global one as soon as there is one.
            kind = type(get_meter_provider()).__name__
        if kind not in _SILENT:
            return ()
        return ("OtelMetrics() has a meter provider that records nothing; give it one that does.",)

    def begin(self) -> None:
        """Say once what would be noticed."""
        if not self._said:
            self._said = True
            for notice in self.notices:
                _log.warning("%s", notice)

    def leave(self) -> bool:
        """It goes on; the SDK's counters begin in a forked process where those of its parent were."""
        return False

    def anew(self) -> Way:
        """The same."""
        return self

    def flush(self, _timeout: float, /) -> bool:
        """Nothing is kept here."""
        return True

    def close(self, _timeout: float, /) -> None:
        """Nothing is kept here."""

"""A recorder its caller opened: it stays open until the caller's block is left, whichever agents close."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from footprint_core.holding import hold, release

_CLOSE_SECONDS = 3.0


class Opened(ABC):
    """Lets `with recorder:` keep it open. An agent that still has it when the block is left closes it."""

    @abstractmethod
    def close(self, timeout: float, /) -> None:
        """Give back everything, within `timeout` seconds."""

    def __enter__(self) -> Self:
        hold(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if release(self):
            self.close(_CLOSE_SECONDS)

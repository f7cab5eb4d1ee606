"""Whether a path still names the file that was opened.

An open connection goes on writing to a file that was removed, replaced or emptied: every append would
succeed, and nobody could ever read it. A ledger file hardly ever shrinks, so one look at it tells.
"""

from __future__ import annotations

import os
from pathlib import Path

from footprint_core.errors import LedgerWriteError
from footprint_observe.store.connect import is_whole


class OpenedFile:
    """The file at a path, as it was when it was first looked at.

    Args:
        path: The path, absolute.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = os.fspath(path)
        self._known: tuple[int, int] | None = None
        self._size = 0

    def check(self) -> None:
        """Look at the file; the first look is what the others are compared with.

        Raises:
            LedgerWriteError: It is not the file it was, or not all of it.
        """
        try:
            found = os.stat(self._name)  # noqa: PTH116 - a Path costs as much again, at every append
        except OSError:
            raise LedgerWriteError(
                "The ledger file was removed while it was open, so nothing was written; put it back, then "
                "open the ledger again."
            ) from None
        known = (found.st_dev, found.st_ino)
        if self._known is None:
            self._known = known
        elif self._known != known:
            raise LedgerWriteError(
                "Another file was put in the place of the ledger file while it was open, so nothing was "
                "written; put the right one there, then open the ledger again."
            )
        # A VACUUM by another program makes a file shorter too, and leaves it whole.
        if not found.st_size or (found.st_size < self._size and not is_whole(self._path)):
            raise LedgerWriteError(
                "The ledger file was cut off while it was open, so nothing was written; restore it from a "
                "backup, then open the ledger again."
            )
        self._size = found.st_size

"""What a command's exit code says.

| code | |
|---|---|
| 0 | done |
| 1 | the answer is no: not in the ledger, nothing found, a check that failed |
| 2 | the command or its question cannot be understood |
| 3 | the ledger cannot be opened, read or written |
"""

from __future__ import annotations

from enum import IntEnum

from footprint_core.errors import FootprintError, LedgerError, RecoverError
from footprint_observe.query.refusals import NotInLedgerError, QuestionError


class Exit(IntEnum):
    """The exit codes of every command; end with `ctx.exit(Exit.NO)` where the answer is no."""

    DONE = 0
    NO = 1
    USAGE = 2
    LEDGER = 3


def exit_of(error: FootprintError) -> Exit:
    """The exit code of a refusal."""
    if isinstance(error, NotInLedgerError | RecoverError):
        return Exit.NO
    if isinstance(error, QuestionError):
        return Exit.USAGE
    return Exit.LEDGER if isinstance(error, LedgerError) else Exit.USAGE

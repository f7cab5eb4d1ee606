"""What a command's exit code says.

| code | |
|---|---|
| 0 | done; a list that is asked for may be empty |
| 1 | the answer is no: what is named is not there, nothing is found or can be opened, a check failed |
| 2 | the command or its question cannot be understood |
| 3 | the ledger cannot be opened, read or written, or the output cannot be written |
| 141 | who read the output has gone, like `head`: what a shell says where SIGPIPE ended a command |

A question with filters is answered with a list, and an empty one is an answer; `find` asks whether a text is
anywhere, like `grep`.
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
    READER_GONE = 141


def exit_of(error: FootprintError) -> Exit:
    """The exit code of a refusal."""
    if isinstance(error, NotInLedgerError | RecoverError):
        return Exit.NO
    if isinstance(error, QuestionError):
        return Exit.USAGE
    return Exit.LEDGER if isinstance(error, LedgerError) else Exit.USAGE

"""Why a question to a ledger file has no answer: it is none, or what it is about is not in the file."""

from __future__ import annotations

from footprint_core.errors import LedgerError


class QuestionError(LedgerError):
    """The question cannot be asked as it stands."""


class QuestionTimeoutError(QuestionError):
    """The question took longer than it was given, and was stopped."""


class NotInLedgerError(LedgerError):
    """What was asked for is not in this ledger."""


class NoSuchRunError(NotInLedgerError):
    """No run, or more than one, is meant by what was given."""


class NoSuchCallError(NotInLedgerError):
    """There is no call of that id."""

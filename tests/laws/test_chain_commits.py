"""Nothing acts on a decision that is not on record, and a commit that has begun is finished."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from footprint_core import (
    Agent,
    Answer,
    AskPause,
    Batch,
    Credential,
    CredentialRequest,
    LedgerWriteError,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    Receipt,
    ToolCallContext,
    ToolContext,
    ToolResultContext,
    allow,
    ask,
    check_in_approved,
    deny,
    tool,
)
from footprint_core.events import DecisionFiled, FatalError, TurnEnded
from footprint_core.facts import Decided, SegmentEnded
from footprint_core.providers import Chunk, Completed, ModelRequest, Scripted, call, reply
from story import Seen, answered, run

YES = check_in_approved(by="dana")
MOMENTS = ["input", "before-tool", "after-tool", "output"]

"""Recorded conversations: read from a file of JSON lines, and all checked before any is played."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pydantic import ValidationError

from footprint_core import plain
from footprint_core.errors import RunError
from footprint_core.plain import Json
from footprint_observe.backtest.chat import CHAT_MESSAGE, ChatMessage
from footprint_observe.backtest.turns import BrokenRecordingError, RecordedTurn, turns_of


class TranscriptError(RunError):
    """A file of recorded conversations cannot be read, or a line of it is no recorded conversation.

    Attributes:
        line: The line, from 1, or None when it is about the file.
        conversation: The id that stands on the line, or None.
    """

    def __init__(self, message: str, *, line: int | None = None, conversation: str | None = None) -> None:
        self.line = line
        self.conversation = conversation
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One recorded conversation.

    Attributes:
        id: What the recording calls it.
        line: The line it stands on, from 1.
        system: Its system prompt, or empty.
        turns: Its turns, at least one.
    """

    id: str
    line: int
    system: str
    turns: tuple[RecordedTurn, ...]


def read_transcripts(path: str | os.PathLike[str]) -> tuple[Transcript, ...]:
    """The conversations of a file of JSON lines, `{"id": ..., "messages": [...]}` each.

    Args:
        path: The file, in UTF-8; empty lines are passed over.

    Raises:
        TranscriptError: The file cannot be read or is empty, or a line is no complete conversation.
    """
    read = tuple(_transcript(line, number) for number, line in _lines(Path(path)))
    if not read:
        raise TranscriptError(f"{path} holds no conversation; give a file with one JSON object a line.")
    return read


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                # Some editors put a byte order mark in front of a file.
                stripped = line.removeprefix(b"\xef\xbb\xbf").strip()
                if stripped:
                    yield number, stripped
    except (OSError, ValueError) as error:
        raise TranscriptError(
            f"{path} cannot be read ({type(error).__name__}); give the path of a file of conversations."
        ) from None


def _transcript(line: bytes, number: int) -> Transcript:
    try:
        data: Json = plain.decode(line)
    except (ValueError, RecursionError):
        _refuse(number, None, "is no JSON; write one object a line, in UTF-8")
    if not plain.is_object(data):
        _refuse(number, None, 'is no JSON object; write {"id": ..., "messages": [...]}')
    id = data.get("id")
    if not isinstance(id, str) or not id.strip():
        _refuse(number, None, 'has no "id" that is text; give each conversation one')
    messages = data.get("messages")
    if not plain.is_array(messages) or not messages:
        _refuse(number, id, 'has no "messages"; give it a list with at least one')
    try:
        system, turns = turns_of([_message(message, at) for at, message in enumerate(messages, 1)])
    except BrokenRecordingError as error:
        _refuse(number, id, str(error))
    return Transcript(id=id, line=number, system=system, turns=turns)


def _message(message: Json, at: int) -> ChatMessage:
    try:
        return CHAT_MESSAGE.validate_python(message)
    except ValidationError as error:
        # The first place of the path is the role that was tried.
        where = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"][1:]) or "role"
        raise BrokenRecordingError(
            f"has a message {at} that is no chat message (see its {where}); use the OpenAI chat format"
        ) from None


def _refuse(line: int, conversation: str | None, what: str) -> NoReturn:
    named = "" if conversation is None else f" (conversation {conversation!r})"
    raise TranscriptError(f"Line {line}{named} {what}.", line=line, conversation=conversation) from None

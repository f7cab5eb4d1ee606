"""The arms are final, frozen and made of what they are made of; so is what rules and watchers are handed."""

from __future__ import annotations

from footprint_core import (
    Allow,
    Ask,
    Decision,
    Deny,
    MessageContext,
    ToolArgs,
    ToolCallContext,
    ToolResultContext,
    allow,
    ask,
    deny,
)
from footprint_core.events import TurnEnded
from footprint_core.facts import ToolFinished


# refused: mypy misc, pyright reportGeneralTypeIssues, naming Allow
class Result(Allow[ToolArgs], frozen=True):
    result: object = None


# refused: mypy misc, pyright reportGeneralTypeIssues, naming Deny
class Refused(Deny, frozen=True):
    pass


# refused: mypy misc, pyright reportGeneralTypeIssues, naming Ask
class Asked(Ask, frozen=True):
    pass


allowed: Allow[ToolArgs] = allow({"amount": 1}, why="less")
# refused: mypy misc, pyright reportAttributeAccessIssue, naming value
allowed.value = {"amount": 2}
# refused: mypy misc, pyright reportAttributeAccessIssue, naming why
allowed.why = "because"
# refused: mypy misc, pyright reportAttributeAccessIssue, naming kind
allowed.kind = "allow"
# refused: mypy attr-defined, pyright reportAttributeAccessIssue, naming result
allowed.result = "It is done."
denied = deny("no")
# refused: mypy misc, pyright reportAttributeAccessIssue, naming reason
denied.reason = "yes"
asked = ask("May it?")
# refused: mypy misc, pyright reportAttributeAccessIssue, naming detail
asked.detail = None

# refused: mypy call-arg, pyright reportCallIssue, naming result
Allow(result="It is done.")
# refused: mypy call-arg, pyright reportCallIssue, naming kind
Allow(kind="result")
# refused: mypy call-arg, pyright reportCallIssue
Allow({"amount": 1})
# refused: mypy call-arg, pyright reportCallIssue
Deny("no")
# refused: mypy call-arg, pyright reportCallIssue
Deny()
# refused: mypy call-arg, pyright reportCallIssue
Ask(detail=None)


def scribble(call: ToolCallContext, result: ToolResultContext, message: MessageContext) -> None:
    # refused: mypy misc, pyright reportAttributeAccessIssue
    call.args = {}
    # refused: mypy misc, pyright reportAttributeAccessIssue
    result.result = "It is done."
    # refused: mypy misc, pyright reportAttributeAccessIssue
    message.identity = "somebody"
    # refused: mypy assignment, pyright reportAttributeAccessIssue
    message.phase = "middle"


def rewrite(row: Decision, event: TurnEnded, fact: ToolFinished) -> None:
    # refused: mypy misc, pyright reportAttributeAccessIssue
    row.outcome = "allow"
    # refused: mypy misc, pyright reportAttributeAccessIssue
    event.outcome = "answered"
    # refused: mypy misc, pyright reportAttributeAccessIssue
    fact.result = "It is done."

"""Every error of the product, one small tree.

```text
FootprintError
├── BuilderError              the agent, a rule, a tool or a policy was described wrongly
│   ├── ActTwiceError         .act() was called a second time
│   ├── UnknownActKeyError    .act() got a key that is no moment
│   ├── UnknownMomentError    a word is not one of the five moments
│   ├── MissingHookError      a rule stands under a moment it has no hook for
│   ├── DuplicateWatcherError two watchers share an id
│   ├── ShadowedToolError     two tools share a name
│   └── OutcomeError          allow, deny or ask was called without what it needs
├── RunError                  a turn could not start, or did not end in an answer
│   ├── InvalidRunInputError  a message, a name or a reason is empty or no string, or an identity no JSON
│   ├── NoConversationError   there is no finished turn to go on behind
│   ├── MessageLostError      redaction or erasure took a message of the conversation
│   ├── RecoverError          a run cannot be gone on with, or given up
│   ├── RunInFlightError      the session already runs a turn
│   ├── ReentrantCallError    a watcher called the agent it watches
│   ├── PolicyHaltError       a permission checker ended the run
│   ├── OutputSchemaError     the answer does not match the declared schema
│   ├── PendingQuestionError  a question to a person is still open
│   ├── MessageDeniedError    a rule refused the message or the answer
│   ├── McpToolError          a tool of an MCP server failed, or could not be reached
│   ├── ProviderError         the model provider raised; it is the cause
│   └── CompactionUnmeasurableError a window counts tokens, and the provider does not
├── ResumeError               a pause could not be answered
│   ├── DecisionRequiredError the answer is no decision of a person
│   ├── PauseAnswerRequiredError a tool waits for an answer, and none came
│   ├── ForeignCheckpointError the checkpoint does not belong to this agent, or was edited
│   ├── UnknownPauseError     the ledger has no such pause, or keeps no body of it
│   └── StaleDecisionError    the pause was answered before
├── LedgerError               the ledger cannot be opened, read or written
│   ├── LedgerOpenError       the file, its folder or its format is not usable
│   ├── LedgerReadError       a row cannot be read as it stands in the file
│   ├── LedgerWriteError      an append failed; nothing acted on it
│   ├── LedgerBusyError       the ledger did not take an append in time
│   └── RunTakenOverError     the run was continued or given up elsewhere
├── KeyRingError              keys cannot be read, or do not open what was sealed
└── RecorderError             a recorder cannot be found or made
```

An error is one sentence that says what is wrong and what to do. It carries its facts as attributes and
never a message, an answer, an argument or a result; a rule's own reason is the exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal


class FootprintError(Exception):
    """The base of every error of the product."""


class BuilderError(FootprintError):
    """An agent, a rule, a tool or a watcher was described wrongly."""


class ActTwiceError(BuilderError):
    """`.act()` was called a second time on one builder."""


class UnknownActKeyError(BuilderError):
    """`.act()` got a key that is no moment.

    Attributes:
        key: The key that was given.
    """

    def __init__(self, *, key: str, known: Iterable[str]) -> None:
        self.key = key
        super().__init__(f".act() has no key {key!r}; use one of {', '.join(known)}.")


class UnknownMomentError(BuilderError):
    """A word is not one of the five moments."""

    def __init__(self, *, known: Iterable[str]) -> None:
        super().__init__(f"That is not a moment of the loop; use one of {', '.join(known)}.")


class MissingHookError(BuilderError):
    """A rule stands under a moment it has no hook for.

    Attributes:
        rule: The rule's name.
        bucket: The key of `.act()` it stands under.
    """

    def __init__(self, message: str, *, rule: str, bucket: str) -> None:
        self.rule = rule
        self.bucket = bucket
        super().__init__(message)


class DuplicateWatcherError(BuilderError):
    """Two watchers share one id.

    Attributes:
        watcher: The id.
    """

    def __init__(self, *, watcher: str) -> None:
        self.watcher = watcher
        super().__init__(f"Two different watchers have the id {watcher!r}; give each its own.")


class ShadowedToolError(BuilderError):
    """Two tools share one name.

    Attributes:
        tool: The name.
    """

    def __init__(self, *, tool: str) -> None:
        self.tool = tool
        super().__init__(f"Two tools are called {tool!r}, so one would shadow the other; rename one.")


class OutcomeError(BuilderError):
    """`allow`, `deny` or `ask` was called without what it needs, or used as a truth value."""


class RunError(FootprintError):
    """A turn could not start, or did not end in an answer.

    Attributes:
        run_id: The run, or None when none had begun.
        segment: The segment of the run, or None.
    """

    run_id: str | None = None
    segment: int | None = None


class InvalidRunInputError(RunError):
    """A message, a name or a reason is empty, blank or no string, or an identity is nothing JSON can hold."""


class NoConversationError(RunError):
    """There is no finished turn to go on behind: none before a `follow_up`, or not the one that was named."""


class MessageLostError(RunError):
    """A conversation or a run cannot go on from the ledger: redaction or erasure took a value of it.

    Attributes:
        kind: The kind of the entry that held it.
        field: The value of the entry that is gone or changed.
    """

    def __init__(self, *, run_id: str, kind: str, field: str) -> None:
        self.run_id = run_id
        self.kind = kind
        self.field = field
        super().__init__(
            f"The {field} of a {kind} entry of the run {run_id} was redacted or erased, so its conversation "
            "cannot go on from the ledger; begin a new one."
        )


class RecoverError(RunError):
    """A run cannot be recovered, or abandoned: it is over, waits for a person, or is not this agent's."""


class RunInFlightError(RunError):
    """The session already runs a turn."""


class ReentrantCallError(RunError):
    """A watcher called the agent it watches."""


class PendingQuestionError(RunError):
    """A question to a person is open, so no other turn can start.

    Attributes:
        tool_name: The tool the question is about.
        tool_call_id: The call the question is about.
    """

    def __init__(self, *, tool_name: str, tool_call_id: str) -> None:
        self.tool_name = tool_name
        self.tool_call_id = tool_call_id
        super().__init__(f"A question about {tool_name} (call {tool_call_id}) is open; use resume() first.")


class MessageDeniedError(RunError):
    """A rule refused the message at input, or the answer at output.

    Attributes:
        reason: The rule's reason.
        phase: Where it was refused.
        middleware: The rule's name.
    """

    def __init__(self, *, reason: str, phase: Literal["input", "output"], middleware: str) -> None:
        self.reason = reason
        self.phase: Literal["input", "output"] = phase
        self.middleware = middleware
        what = "message" if phase == "input" else "answer"
        super().__init__(f"The rule {middleware} refused the {what} at {phase}: {reason}")


class PolicyHaltError(RunError):
    """A permission checker ended the run.

    Attributes:
        reason: The checker's reason, or None.
        iteration: The model call that asked for the call.
        proposed: The call that was not run: its `name` and the `args` the checker was asked about.
        tool_call_id: Its id.
        checker_id: The checker's name.
    """

    def __init__(
        self,
        *,
        reason: str | None,
        iteration: int,
        proposed: dict[str, object],
        tool_call_id: str,
        checker_id: str,
    ) -> None:
        self.reason = reason
        self.iteration = iteration
        self.proposed = proposed
        self.tool_call_id = tool_call_id
        self.checker_id = checker_id
        said = f": {reason}" if reason else "; ask whoever keeps that policy."
        super().__init__(f"The permission checker {checker_id} ended the run{said}")


class OutputSchemaError(RunError):
    """The answer does not match the declared schema, and no retry is left. The answer is on record.

    Attributes:
        stage: Where it failed.
    """

    def __init__(self, *, stage: Literal["json-parse", "schema-validate"]) -> None:
        self.stage: Literal["json-parse", "schema-validate"] = stage
        super().__init__(
            f"The answer failed its schema at {stage}; look at the run, allow retries, or mend the prompt."
        )


class ProviderError(RunError):
    """The model provider raised; its own error is the cause.

    Attributes:
        provider: The provider's name.
        error_class: The class of its error.
    """

    def __init__(self, *, provider: str, error_class: str) -> None:
        self.provider = provider
        self.error_class = error_class
        super().__init__(
            f"The provider {provider} raised {error_class}; see the cause, then run the turn again."
        )


class CompactionUnmeasurableError(RunError):
    """The window counts tokens, and the provider does not report them.

    Attributes:
        provider: The provider's name.
    """

    def __init__(self, *, provider: str) -> None:
        self.provider = provider
        super().__init__(
            f"The provider {provider} reports no tokens, so the window cannot be measured; use a provider "
            "that does, or sliding_window()."
        )


class McpToolError(RunError):
    """A tool of an MCP server failed, or could not be reached. The model reads the text.

    Attributes:
        tool: The tool.
        server: The server it comes from.
    """

    def __init__(self, *, tool: str, server: str, said: str) -> None:
        self.tool = tool
        self.server = server
        super().__init__(f"The tool {tool} of the server {server} failed: {said}")


class ResumeError(FootprintError):
    """A pause could not be answered. It stays answerable unless the class says otherwise.

    Attributes:
        run_id: The run, or None when the checkpoint names none.
        segment: The segment that was begun, or None.
    """

    run_id: str | None = None
    segment: int | None = None


class DecisionRequiredError(ResumeError):
    """What came is no decision of a person.

    Attributes:
        gate: The kind of the pause.
        tool_name: The tool the question is about.
        middleware: The rule that asked, or None.
    """

    def __init__(self, *, gate: str, tool_name: str, middleware: str | None, came: str) -> None:
        self.gate = gate
        self.tool_name = tool_name
        self.middleware = middleware
        super().__init__(
            f"The {gate} about {tool_name} needs check_in_approved(by=...) or check_in_declined(by=...) "
            f"with the person's name, not {came}."
        )


class PauseAnswerRequiredError(ResumeError):
    """A tool asked a person while it ran, and no answer came. The pause stays answerable.

    Attributes:
        tool_name: The tool.
        tool_call_id: The call.
    """

    def __init__(self, *, tool_name: str, tool_call_id: str) -> None:
        self.tool_name = tool_name
        self.tool_call_id = tool_call_id
        super().__init__(
            f"The tool {tool_name} (call {tool_call_id}) waits for an answer; give resume() any JSON value."
        )


class ForeignCheckpointError(ResumeError):
    """The checkpoint is none, was edited, or belongs to another agent."""


class UnknownPauseError(ResumeError):
    """The ledger does not know the pause, or keeps no body of it to go on from."""


class StaleDecisionError(ResumeError):
    """The pause was already answered, here or by another process."""


class LedgerError(FootprintError):
    """The ledger cannot be opened, read or written.

    Attributes:
        run_id: The run that was being written, or None.
        segment: Its segment, or None.
    """

    run_id: str | None = None
    segment: int | None = None


class LedgerOpenError(LedgerError):
    """The file, its folder or its format is not usable."""


class LedgerReadError(LedgerError):
    """A row cannot be read as it stands in the file: it was damaged, or a newer release wrote it."""


class LedgerWriteError(LedgerError):
    """An append failed; nothing acted on what it held."""


class LedgerBusyError(LedgerError):
    """The ledger did not take an append in time; nothing acted on what it held."""


class RunTakenOverError(LedgerError):
    """The run was continued or given up elsewhere; this process stopped before it acted."""


class KeyRingError(FootprintError):
    """Keys cannot be read, or do not open what was sealed. It never shows a secret.

    Attributes:
        key_id: The key it is about, or None.
    """

    def __init__(self, message: str, *, key_id: str | None = None) -> None:
        self.key_id = key_id
        super().__init__(message)


class RecorderError(FootprintError):
    """A recorder cannot be found or made."""

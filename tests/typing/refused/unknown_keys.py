"""A sixth key, a sixth moment, and words that are nearly right."""

from __future__ import annotations

from footprint_core import (
    ActKey,
    ActOptions,
    AgentBuilder,
    Decision,
    LoopMoment,
    MessageContext,
    act_key_for,
    sliding_window,
)


def govern(builder: AgentBuilder) -> None:
    # refused: mypy call-arg, pyright reportCallIssue, naming before_model
    builder.act(before_model=[])
    # refused: mypy call-arg, pyright reportCallIssue, naming before_tools
    builder.act(before_tools=[])
    # refused: mypy call-arg, pyright reportCallIssue
    builder.act([])


# refused: mypy typeddict-unknown-key, pyright reportAssignmentType, naming before_model
options: ActOptions = {"before_model": []}
# refused: mypy typeddict-unknown-key, pyright reportAssignmentType, naming before-tool
dashed: ActOptions = {"before-tool": []}
# refused: mypy typeddict-unknown-key, pyright reportAssignmentType, naming result
more: ActOptions = {"input": [], "window": sliding_window(keep_recent_turns=1), "result": []}
# refused: mypy assignment, pyright reportAssignmentType, naming before_tool
moment: LoopMoment = "before_tool"
# refused: mypy assignment, pyright reportAssignmentType, naming before-tool
key: ActKey = "before-tool"
# refused: mypy arg-type, pyright reportArgumentType, naming before-model
act_key_for("before-model")
# refused: mypy arg-type, pyright reportArgumentType, naming before_tool
act_key_for("before_tool")
# refused: mypy arg-type, pyright reportArgumentType
act_key_for(moment.upper())


def about(row: Decision, message: MessageContext) -> bool:
    # refused: mypy comparison-overlap, pyright reportUnnecessaryComparison, naming beforetool
    if row.moment == "beforetool":
        return True
    # refused: mypy comparison-overlap, pyright reportUnnecessaryComparison, naming denied
    if row.outcome == "denied":
        return True
    # refused: mypy comparison-overlap, pyright reportUnnecessaryComparison, naming window
    return message.phase == "window"

"""What a pause has not, and answers that are none."""

from __future__ import annotations

from footprint_core import (
    Agent,
    Answer,
    AskPause,
    CheckInPause,
    HumanPause,
    Outcome,
    PersonDecision,
    ToolCallContext,
    ToolOutcome,
    approve_once,
    ask,
    ask_human,
    check_in_approved,
    check_in_declined,
    demands_decision,
    is_paused,
    pause_here,
)

# refused: mypy typeddict-item, pyright reportAssignmentType
maybe: PersonDecision = {"decision": "maybe", "by": "dana", "note": None}
# refused: mypy typeddict-item, pyright reportAssignmentType
nobody: PersonDecision = {"decision": "approved"}
# refused: mypy call-arg, pyright reportCallIssue
check_in_approved()
# refused: mypy call-arg, pyright reportCallIssue
check_in_approved("dana")
# refused: mypy call-arg, pyright reportCallIssue
check_in_declined(by="dana", reason="no")
# refused: mypy arg-type, pyright reportArgumentType
ask("Now?", expires_in="an hour")
# refused: mypy call-arg, pyright reportCallIssue
approve_once("once")
# refused: mypy arg-type, pyright reportArgumentType
approve_once(by="session")
# refused: mypy list-item, pyright reportArgumentType
approve_once(tools=[len])


def nothing_asked() -> None:
    # refused: mypy call-arg, pyright reportCallIssue
    ask_human()


def nothing_shown() -> None:
    # refused: mypy call-arg, pyright reportCallIssue
    pause_here()


def shown(outcome: Outcome) -> str:
    if is_paused(outcome):
        # refused: mypy union-attr, pyright reportAttributeAccessIssue, naming HumanPause
        return outcome.question
    return outcome.run_id


def detailed(outcome: Outcome) -> str:
    if demands_decision(outcome):
        # refused: mypy union-attr, pyright reportAttributeAccessIssue, naming CheckInPause
        return outcome.detail
    return outcome.run_id


def read(ask: AskPause, check_in: CheckInPause, human: HumanPause, answer: Answer) -> None:
    # refused: mypy attr-defined, pyright reportAttributeAccessIssue
    check_in.question.upper()
    # refused: mypy attr-defined, pyright reportAttributeAccessIssue
    human.question.upper()
    # refused: mypy attr-defined, pyright reportAttributeAccessIssue
    human.args.clear()
    # refused: mypy attr-defined, pyright reportAttributeAccessIssue
    answer.checkpoint.clear()
    # refused: mypy misc, pyright reportAttributeAccessIssue
    ask.args = {}
    # refused: mypy misc, pyright reportAttributeAccessIssue
    check_in.evidence = None
    # refused: mypy misc, pyright reportAttributeAccessIssue
    answer.text = "something else"


async def resumed(agent: Agent, outcome: Outcome, pause: AskPause) -> str:
    # refused: mypy call-overload, pyright reportArgumentType
    await agent.resume(outcome, check_in_approved(by="dana"))
    # refused: mypy call-overload, pyright reportArgumentType
    await agent.resume(pause, check_in_approved(by="dana"))
    # refused: mypy call-overload, pyright reportCallIssue
    await agent.resume(pause.checkpoint, check_in_approved(by="dana"), True)
    # refused: mypy call-overload, pyright reportCallIssue
    await agent.resume(answer=check_in_approved(by="dana"))
    # refused: mypy call-overload, pyright reportCallIssue
    await agent.resume(pause.checkpoint, pause_id=pause.pause_id, answer=check_in_approved(by="dana"))
    # refused: mypy call-overload, pyright reportArgumentType
    await agent.resume(pause.pause_id, check_in_approved(by="dana"))
    # refused: mypy call-overload, pyright reportArgumentType
    await agent.session().resume(pause_id=None, answer=check_in_approved(by="dana"))
    # refused: mypy union-attr, pyright reportAttributeAccessIssue
    return outcome.text


def tool_of_its_own(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy return-value, pyright reportReturnType
    return AskPause

"""The README's tables of moments and of verbs, made from the code.

    python tests/architecture/readme_tables.py     prints them

What is legal where comes from the unions a rule may answer with; the sentences say what it does there.
"""

from __future__ import annotations

from typing import get_args, get_origin

from footprint_core import (
    LOOP_MOMENTS,
    Allow,
    Ask,
    Deny,
    LoopMoment,
    MessageOutcome,
    ToolOutcome,
    ToolResultOutcome,
    seam_for,
)

UNIONS: dict[str, object] = {
    "on_message": MessageOutcome,
    "on_tool_call": ToolOutcome,
    "on_tool_result": ToolResultOutcome,
}
VALUES = {"on_message": "text", "on_tool_call": "arguments", "on_tool_result": "result"}
PASSES = {
    "on_message": "the {what} goes on",
    "on_tool_call": "the call goes on",
    "on_tool_result": "the model reads the result",
}
CHANGES = {
    "on_message": "the text is replaced",
    "on_tool_call": "the arguments are replaced",
    "on_tool_result": "what the model reads is replaced",
}
REFUSES = {
    "input": "`MessageDeniedError`, no model is called",
    "before-tool": "the tool does not run, the model reads the reason",
    "after-tool": "the result is withheld, the model reads the reason",
    "output": "`MessageDeniedError`, nothing is released",
}
ASKS = "the run pauses until a person decides"
NOT_HERE = "not here: a denial"
WHAT = {"input": "message", "output": "answer"}


def moments() -> str:
    """The table of moments."""
    rows = [
        "| moment | key of `.act()` | adds one more | hook | a watcher is told |",
        "|---|---|---|---|---|",
    ]
    for moment in LOOP_MOMENTS:
        seam = seam_for(moment)
        told = ", ".join(f"`{event.type}`" for event in seam.reports)
        rows.append(f"| {moment} | `{seam.key}` | `.{seam.door}()` | `{seam.hook}` | {told} |")
    return "\n".join(rows)


def verbs() -> str:
    """The table of verbs; the window has none, its strategy plans a removal."""
    columns: list[LoopMoment] = [moment for moment in LOOP_MOMENTS if seam_for(moment).hook in UNIONS]
    rows = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for verb, arm in (
        ("`allow()`", Allow),
        ("`allow(value, why=...)`", Allow),
        ("`deny(reason)`", Deny),
        ("`ask(question)`", Ask),
    ):
        cells = [_cell(verb, arm, moment) for moment in columns]
        rows.append(f"| {verb} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _cell(verb: str, arm: type, moment: LoopMoment) -> str:
    hook = seam_for(moment).hook
    legal = {get_origin(one) or one for one in get_args(UNIONS[hook])}
    if arm not in legal:
        return NOT_HERE
    if arm is Ask:
        return ASKS
    if arm is Deny:
        return REFUSES[moment]
    if "value" in verb:
        return CHANGES[hook]
    return PASSES[hook].format(what=WHAT.get(moment, ""))


if __name__ == "__main__":
    print(moments(), verbs(), sep="\n\n")

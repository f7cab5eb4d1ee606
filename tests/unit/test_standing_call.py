"""What stood of a call when its process died, read from the facts about it."""

from __future__ import annotations

from footprint_core.facts import Decided, PauseAnswered, PauseOpened
from footprint_core.loop.standing_call import Call, PersonDecided
from footprint_core.messages import ToolCall


def changed_by(rule: str, amount: int, *, shadow: bool) -> Decided:
    return Decided(
        middleware=rule,
        moment="before-tool",
        iteration=1,
        outcome="allow",
        changed=True,
        shadow=shadow,
        after={"amount": amount},
        call_id="c",
        tool_name="pay",
    )


def test_what_a_rule_would_have_changed_were_it_not_in_shadow_is_not_gone_on_with() -> None:
    call = Call(ToolCall(id="c", name="pay", args_json='{"amount": 1}'))
    call.take(2, changed_by("real", 2, shadow=False), set())
    call.take(3, changed_by("tried", 3, shadow=True), set())
    asked = Decided(
        middleware="gate", moment="before-tool", iteration=1, outcome="ask", call_id="c", tool_name="pay"
    )
    call.take(4, asked, set())
    call.pause(PauseOpened(pause_id="p", pause_kind="ask", iteration=1, call_id="c", tool_name="pay"))
    call.pause(
        PauseAnswered(
            pause_id="p", pause_kind="ask", answer="approved", tool_name="pay", call_id="c", paused_us=1
        )
    )
    known = call.known
    assert isinstance(known, PersonDecided)
    assert (known.changed, known.args) == (True, {"amount": 2})

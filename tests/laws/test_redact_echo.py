"""What a rule about a place or a key took out of a call is taken out of what was said about it, too."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from file_ledger import file_bytes, on_file, select
from footprint_core import (
    ActOptions,
    Answer,
    AskPause,
    Decision,
    Ledger,
    MemoryLedger,
    Permission,
    Redactor,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    deny,
    tool,
)
from footprint_core.facts import Fact
from footprint_core.ledger import REDACTED, Marks
from footprint_core.providers import call, reply
from footprint_observe import Detector, KeyRing, Redaction, Rule
from story import answered, describe, run

ROOT = Path(__file__).parents[2]
CARD = "card-51c0-9e21"
HELD = "held-7f3b-02aa"
SHORT = "abc12"
YES = check_in_approved(by="dana@ops")
POLICY = Redaction.of(fields=["**.card", "**.held", "**.short"])
ARGS = {"card": CARD, "short": SHORT}


@tool(name="charge")
def charge(card: str, short: str = "") -> dict[str, Any]:
    """Charge a card."""
    return {"held": HELD, "n": 1}


@before_tool("ceiling")
def passes(call: ToolCallContext) -> ToolOutcome:
    return allow(why=f"{call.args['card']} may pay, {call.args['short']} too")


@before_tool("four-eyes")
def asks(call: ToolCallContext) -> ToolOutcome:
    return ask(f"Charge {call.args['card']}?", detail={"of": [call.args["card"], 5], call.args["card"]: 1})


@before_tool("refuse")
def refuses(call: ToolCallContext) -> ToolOutcome:
    return deny(f"{call.args['card']} is no card of ours")


@after_tool("looks")
def looks(call: ToolResultContext) -> ToolResultOutcome:
    return allow(why=f"{call.result['held']} is held for {call.args['card']}")


def replies() -> list[Any]:
    return [reply(calls=[call("c1", "charge", ARGS)]), reply(text="done")]


def rows_of(ledger: Ledger, act: ActOptions, **options: Any) -> tuple[Decision, ...]:
    """The rows of a run, whose every question is approved."""
    builder, _ = describe(replies(), charge, act=act, ledger=ledger, **options)

    async def go() -> Answer:
        async with builder.build() as agent:
            out = await agent.run("go")
            while isinstance(out, AskPause):
                out = await agent.resume(json.loads(json.dumps(out.checkpoint)), YES)
            return answered(out)

    return run(go()).decisions


def ledgers(path: Path, policy: Redactor) -> list[Ledger]:
    return [MemoryLedger(redact=policy), on_file(path, redact=policy)]


def test_an_echo_of_the_args_goes_from_the_why_of_a_row_that_comes_before_them(tmp_path: Path) -> None:
    for ledger in ledgers(tmp_path / "l.db", POLICY):
        (row,) = rows_of(ledger, {"before_tool": [passes]})
        assert row.why == f"{REDACTED} may pay, {SHORT} too"
        assert row.redacted == (("why", "echo"),)


def test_an_echo_of_the_result_goes_from_the_rows_behind_it(tmp_path: Path) -> None:
    for ledger in ledgers(tmp_path / "l.db", POLICY):
        (row,) = rows_of(ledger, {"after_tool": [looks]})
        assert row.why == f"{REDACTED} is held for {REDACTED}"
        assert row.redacted == (("why", "echo"),)


def test_an_echo_goes_from_a_question_and_from_its_detail_at_every_depth(tmp_path: Path) -> None:
    for ledger in ledgers(tmp_path / "l.db", POLICY):
        row = rows_of(ledger, {"before_tool": [asks], "after_tool": [looks]})[0]
        assert row.why == f"Charge {REDACTED}?"
        assert row.detail == {"of": [REDACTED, 5], REDACTED: 1}
        assert dict(row.redacted) == {"why": "echo", "detail.of.0": "echo", "detail": "echo"}


def test_a_file_holds_no_byte_of_an_echo(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    act: ActOptions = {"before_tool": [passes, asks], "after_tool": [looks]}
    rows_of(on_file(path, redact=POLICY), act)
    kept = file_bytes(path)
    assert CARD.encode() not in kept
    assert HELD.encode() not in kept
    marked = select(path, "SELECT redacted FROM decisions WHERE redacted LIKE '%echo%'")
    assert len(marked) == 3
    rows_of(on_file(tmp_path / "all.db"), act)
    assert CARD.encode() in file_bytes(tmp_path / "all.db")


def test_an_echo_goes_from_the_refusal_the_model_read(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    builder, model = describe(
        replies(), charge, act={"before_tool": [refuses]}, ledger=on_file(path, redact=POLICY)
    )

    async def go() -> None:
        async with builder.build() as agent:
            answered(await agent.run("go"))

    run(go())
    assert model.requests[1].messages[-1].text == f"{CARD} is no card of ours"
    texts = {text for (text,) in select(path, "SELECT json FROM vals WHERE field IN ('why', 'text')")}
    assert f'"{REDACTED} is no card of ours"' in texts
    assert CARD.encode() not in file_bytes(path)


class Roles:
    name = "roles"

    def check(self, call: ToolCallContext, /) -> Permission:
        return Permission(
            result="deny",
            rationale=f"{call.args['card']} is blocked",
            tell_model=None,
            policy_rule_id=None,
            reason=f"of {call.args['card']}",
        )


def test_an_echo_goes_from_what_a_permission_checker_said(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    builder, _ = describe(replies(), charge, ledger=on_file(path, redact=POLICY))

    async def go() -> None:
        async with builder.permission(Roles()).build() as agent:
            answered(await agent.run("go"))

    run(go())
    kept = dict(select(path, "SELECT field, json FROM vals WHERE field IN ('rationale', 'reason')"))
    assert kept["rationale"] == f'"{REDACTED} is blocked"'
    assert CARD.encode() not in file_bytes(path)


RESUMES = """
import json, sys
sys.path[:0] = ["tests", "tests/laws"]
import test_redact_echo as told
from file_ledger import on_file
from story import answered, describe, run
builder, _ = describe(told.done(), told.charge, act=told.after_asking(sys.argv[2]),
                      ledger=on_file(sys.argv[1], redact=told.POLICY))

async def go():
    async with builder.build() as agent:
        return answered(await agent.resume(json.loads(sys.stdin.read()), told.YES))

print(json.dumps([row.to_dict() for row in run(go()).decisions]))
"""


def done() -> list[Any]:
    return [reply(text="done")]


def after_asking(then: str) -> ActOptions:
    """Rules that ask first, and the rule behind them."""
    return {"before_tool": [asks, {"passes": passes, "refuses": refuses}[then]], "after_tool": [looks]}


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ("passes", [f"{REDACTED} may pay, {SHORT} too", f"{REDACTED} is held for {REDACTED}"]),
        # No args are filed behind it: they are in the run's state alone.
        ("refuses", [f"{REDACTED} is no card of ours"]),
    ],
)
def test_an_echo_is_found_by_a_process_that_never_saw_the_reply(
    then: str, expected: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "l.db"
    builder, _ = describe(replies(), charge, act=after_asking(then), ledger=on_file(path, redact=POLICY))

    async def go() -> Any:
        async with builder.build() as agent:
            pause = await agent.run("go")
            assert isinstance(pause, AskPause)
            return pause.checkpoint

    other = subprocess.run(
        [sys.executable, "-c", RESUMES, str(path), then],
        cwd=ROOT, input=json.dumps(run(go())), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert other.returncode == 0, other.stderr
    whys = [row["why"] for row in json.loads(other.stdout) if row.get("why")]
    assert whys == [f"Charge {REDACTED}?", "approved by dana@ops", *expected]
    assert CARD.encode() not in file_bytes(path)


RULES: list[tuple[str, Redaction]] = [
    ("drop", Redaction.of(rules=[Rule(path="**.card", strategy="drop")])),
    ("partial", Redaction.of(rules=[Rule(key="card", strategy="partial")])),
    (
        "pseudonym",
        Redaction.of(rules=[Rule(key="card", strategy="pseudonym")], keys=KeyRing.of({"a": b"A" * 32})),
    ),
    ("seal", Redaction.of(rules=[Rule(path="**.card", strategy="seal")], keys=KeyRing.of({"a": b"A" * 32}))),
    ("mask", Redaction.of(rules=[Rule(path="args"), Rule(path="calls")])),
    ("drop", Redaction.of(rules=[Rule(path="args", strategy="drop")])),
]


@pytest.mark.parametrize(("strategy", "policy"), RULES)
def test_whatever_took_it_an_echo_is_taken(strategy: str, policy: Redaction) -> None:
    (row,) = rows_of(MemoryLedger(redact=policy), {"before_tool": [passes]})
    assert CARD not in str(row.why)
    assert ("why", "echo") in row.redacted


@pytest.mark.parametrize(
    "policy",
    [
        Redaction.of(),
        Redaction.of(fields=["before.card"]),
        Redaction.of(rules=[Rule(path="**.card", strategy="keep")]),
        Redaction.of(rules=[Rule(detector=Detector(name="x", pattern="nothing"))]),
    ],
)
def test_what_no_rule_took_is_no_echo(policy: Redaction) -> None:
    (row,) = rows_of(MemoryLedger(redact=policy), {"before_tool": [passes]})
    assert row.why == f"{CARD} may pay, {SHORT} too"
    assert row.redacted == ()


def test_an_echo_is_of_its_own_call_and_of_no_other() -> None:
    @before_tool("says")
    def says(call: ToolCallContext) -> ToolOutcome:
        return allow(why="about card-one-1111 and card-two-2222")

    calls = [call("c1", "charge", {"card": "card-one-1111"}), call("c2", "charge", {"card": "card-two-2222"})]
    builder, _ = describe(
        [reply(calls=calls), reply(text="done")],
        charge,
        act={"before_tool": [says]},
        ledger=MemoryLedger(redact=POLICY),
    )
    one, two = answered(run(builder.build().run("go"))).decisions
    assert one.why == f"about {REDACTED} and card-two-2222"
    assert two.why == f"about card-one-1111 and {REDACTED}"


class Plain:
    """A redactor of another make, which only redacts."""

    def redact(self, fact: Fact) -> tuple[Fact, Marks]:
        return POLICY.redact(fact)


class Careless(Plain):
    """One that cannot say what it took."""

    def removed(self, fact: Fact) -> Iterable[tuple[str, Any]]:
        raise RuntimeError(CARD)


def test_a_redactor_that_only_redacts_is_enough() -> None:
    (row,) = rows_of(MemoryLedger(redact=Plain()), {"before_tool": [passes]})
    assert row.why == f"{CARD} may pay, {SHORT} too"


def test_where_nobody_can_say_what_was_taken_nothing_that_was_said_is_kept() -> None:
    (row,) = rows_of(MemoryLedger(redact=Careless()), {"before_tool": [passes]})
    assert row.why == REDACTED
    assert row.redacted == (("why", "echo"),)


def test_an_echo_of_a_result_is_found_by_a_process_that_never_saw_the_tool_run(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    policy = Redaction.of(fields=["result.held"])

    @tool(name="colour")
    def colour() -> str:
        ask_human("Which?")

    @after_tool("saw")
    def saw(context: ToolResultContext) -> ToolResultOutcome:
        return allow(why=f"it says {context.result}")

    asked = reply(calls=[call("c0", "colour", {}), call("c1", "charge", {"card": "x"})])

    async def story(*said: Any, checkpoint: Any = None) -> Any:
        ledger = on_file(path, redact=policy)
        builder, _ = describe(
            said, colour, charge, ledger=ledger, parallel_tools=True, act={"after_tool": [saw]}
        )
        async with builder.build() as agent:
            if checkpoint is None:
                return await agent.run("go")
            return await agent.resume(checkpoint, "red")

    paused = run(story(asked))
    out = answered(run(story(reply(text="done"), checkpoint=paused.checkpoint)))
    said = [row.why for row in out.decisions if row.tool_call_id == "c1"]
    assert said == [f"it says {{'held': '{REDACTED}', 'n': 1}}"]
    assert HELD.encode() not in file_bytes(path)

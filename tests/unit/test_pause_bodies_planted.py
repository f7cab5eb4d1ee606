"""What a person is asked is in no file of a ledger that masks it: no body is written in the clear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from asked import YES, paused
from footprint_core import ask, ask_human, before_tool, tool
from footprint_core.facts import Fact
from footprint_core.ledger import Marks, mask_all
from footprint_core.providers import call, reply
from footprint_observe import KeyRing, Redaction, SqliteLedger
from sealed import KEYS, bodies, forms
from story import answered, describe, run

TOKEN = "canary-planted-7f3b91c0-zanzibar"


class MasksAll:
    """Keeps no value of any fact."""

    def redact(self, fact: Fact) -> tuple[Fact, Marks]:
        return mask_all(fact)


def said(what: str) -> str:
    return f"the {TOKEN} of the {what}"


@before_tool("four-eyes")
def four_eyes(call: Any) -> Any:
    return ask(said("question"), detail={said("key"): said("detail")})


@tool(check_in="always", evidence=lambda args: {"of": said("evidence")})
def wires(note: str) -> str:
    """A tool that needs consent."""
    return note


@tool
def wonders(note: str) -> str:
    """A tool that asks a person."""
    ask_human(said("question of the tool"), payload=said("payload"))


@tool
def pays(note: str) -> str:
    """A tool a rule asks about."""
    return note


STORIES: dict[str, tuple[Any, list[Any]]] = {
    "ask": (pays, [four_eyes]),
    "check-in": (wires, []),
    "human": (wonders, []),
}


def planted(folder: Path) -> list[str]:
    """The files of a folder that hold the token, and in which form."""
    return [
        f"{file.name}: {form}"
        for file in sorted(folder.iterdir())
        for form, data in forms(TOKEN).items()
        if data in file.read_bytes()
    ]


async def play(ledger: SqliteLedger, kind: str, folder: Path, opened: list[list[str]]) -> None:
    given, rules = STORIES[kind]
    replies = [reply(calls=[call("c1", given.name, {"note": said("argument")})]), reply(text="done")]
    builder, _ = describe(replies, given, ledger=ledger, act={"before_tool": rules})
    async with builder.system(said("prompt")).build() as agent:
        pause = paused(await agent.run(said("message"), identity={"who": said("identity")}))
        assert TOKEN in str(pause)
        opened.append(planted(folder))
        answered(await agent.resume(pause.checkpoint, YES))


@pytest.mark.parametrize("kind", STORIES)
@pytest.mark.parametrize("keys", [None, KEYS], ids=["without keys", "with keys"])
def test_what_is_asked_is_in_no_file_when_the_policy_masks_it(
    keys: KeyRing | None, kind: str, tmp_path: Path
) -> None:
    path, opened = tmp_path / "l.db", list[list[str]]()
    ledger = SqliteLedger(path, redact=MasksAll(), keys=keys)
    run(play(ledger, kind, tmp_path, opened))
    assert opened == [[]]
    assert planted(tmp_path) == []


@pytest.mark.parametrize("kind", STORIES)
def test_without_a_policy_the_same_look_finds_it(kind: str, tmp_path: Path) -> None:
    opened = list[list[str]]()
    run(play(SqliteLedger(tmp_path / "l.db", redact=Redaction.none()), kind, tmp_path, opened))
    assert "l.db-wal: raw" in opened[0]


def test_the_look_finds_every_form(tmp_path: Path) -> None:
    for number, (form, data) in enumerate(forms(TOKEN).items()):
        file = tmp_path / f"{number}"
        file.write_bytes(b"before" + data + b"behind")
        assert f"{number}: {form}" in planted(tmp_path)


def test_what_runs_behind_an_answer_by_id_is_what_was_asked_about_whatever_the_policy(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    given, rules = STORIES["ask"]
    replies = [reply(calls=[call("c1", given.name, {"note": said("argument")})]), reply(text="done")]
    ledger = SqliteLedger(path, redact=MasksAll(), keys=KEYS)
    builder, model = describe(replies, given, ledger=ledger, act={"before_tool": rules})

    async def go() -> None:
        async with builder.build() as agent:
            pause = paused(await agent.run("go"))
            assert len(bodies(path)) == 1
            answered(await agent.resume(pause_id=pause.pause_id, answer=YES))

    run(go())
    assert said("argument") in str(model.requests[-1].messages[-1])
    assert planted(tmp_path) == []

"""The name of a tool is a column, and a model can write anything there: what is no name is not kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from file_ledger import file_bytes, on_file, select
from footprint_core.providers import call, reply
from footprint_observe import Detector, Redaction
from footprint_observe.query.replay import replay
from story import answered, describe, run

SENTENCE = "ask Ada Lovelace, 1 Main St"
LIKE_A_NAME = "order-4711"
ORDERS = Redaction.of(detectors=[Detector(name="order", pattern=r"order-\d{4}")])


def look(where: str) -> str:
    return where


def played(path: Path, policy: Any) -> list[tuple[Any, ...]]:
    """The tools of a conversation in which the model made up two of three, as they are kept."""
    asked = [call("c1", SENTENCE, {}), call("c2", LIKE_A_NAME, {}), call("c3", "look", {"where": "here"})]
    builder, _ = describe([reply(calls=asked), reply(text="done")], look, ledger=on_file(path, redact=policy))

    async def go() -> str:
        async with builder.build() as agent:
            return answered(await agent.run("go")).run_id

    told = replay(path, run(go()))
    assert told.matches, told.difference
    return select(path, "SELECT DISTINCT tool_name FROM facts WHERE tool_name IS NOT NULL ORDER BY id")


def test_a_name_no_tool_can_have_is_in_no_row_under_a_policy(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    assert played(path, Redaction.of(fields=["text", "calls"])) == [("(invalid)",), (LIKE_A_NAME,), ("look",)]
    assert SENTENCE.encode() not in file_bytes(path)
    marked = select(
        path, "SELECT DISTINCT redacted FROM facts WHERE kind = 'call.taken' AND redacted NOT NULL"
    )
    assert marked == [('[["tool_name","mask"]]',)]


def test_a_name_that_a_detector_recognises_is_masked_wherever_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    assert ("[redacted]",) in played(path, ORDERS)
    assert LIKE_A_NAME.encode() not in file_bytes(path)


@pytest.mark.parametrize("policy", [Redaction.none(), ORDERS, Redaction.standard()])
def test_the_name_of_a_tool_there_is_stays(policy: Redaction, tmp_path: Path) -> None:
    assert ("look",) in played(tmp_path / "l.db", policy)


def test_without_a_policy_a_name_is_kept_as_it_was_written(tmp_path: Path) -> None:
    names = [(SENTENCE,), (LIKE_A_NAME,), ("look",)]
    assert played(tmp_path / "l.db", Redaction.none()) == names

"""The sweep is seen to fail: whatever a recorder lets out, in whatever way, is found and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from facts_only.leaky import WAYS, Way, leaky
from facts_only.sweep import leaks, swept
from planted import WORD, governed, said
from planted_forms import forms, found

STORY = {"governed": governed}
KEEPS: Way = lambda *_: None  # noqa: E731 - a way out that is none, beside the others
ELSEWHERE = {"in a log record": "log records", "in a warning": "warnings", "in a notice": "notices"}


@pytest.mark.parametrize("way", WAYS)
def test_a_recorder_that_lets_one_value_out_is_found(way: str, tmp_path: Path) -> None:
    text = said("argument")
    told = swept(tmp_path, STORY, {"leaky": leaky(WAYS[way], text)})
    where = {name.partition(":")[0] for name in leaks(told.held, text)}
    assert where == {ELSEWHERE.get(way, "leaky")}


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_packed_is_looked_into_and_a_recorder_that_keeps_to_facts_is_not_found(
    packed: bool, tmp_path: Path
) -> None:
    told = swept(
        tmp_path,
        STORY,
        {
            "leaky": leaky(WAYS["as it is"], WORD, packed=packed),
            "by its resource": leaky(KEEPS, WORD, packed=packed, resource=WORD),
            "silent": leaky(KEEPS, WORD, packed=packed),
        },
    )
    assert found(told.held, forms(WORD)) == ["leaky: raw", "by its resource: raw"]


def test_a_conversation_that_a_recorder_tells_nothing_of_is_named(tmp_path: Path) -> None:
    async def says_nothing(_: object) -> None:
        """Neither a run nor a word."""

    told = swept(tmp_path, {"nothing": says_nothing}, {"leaky": leaky(KEEPS, WORD)})
    assert (told.kept, told.untold) == ({"nothing": b"[]"}, ["nothing: leaky"])

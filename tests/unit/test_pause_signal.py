"""What a tool pauses with is JSON data, or a refusal that says where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import FootprintError, OutcomeError, PauseSignal, ask_human, pause_here


def holding_itself() -> Any:
    held: dict[str, Any] = {}
    held["self"] = [held]
    return held


@pytest.mark.parametrize(
    ("payload", "where"),
    [
        ({"a": [1, {"b": object()}]}, r"a\.1\.b stands a object"),
        (object(), "its top stands a object"),
        ([float("nan")], "0 stands a float"),
        ((1, {2: {"x": print}}), r"1\.2\.x stands a builtin"),
        (holding_itself(), r"self\.0 stands a dict"),
    ],
)
def test_a_payload_json_cannot_hold_is_refused_by_its_place_and_type(payload: Any, where: str) -> None:
    with pytest.raises(OutcomeError, match=where):
        pause_here(payload)


def test_a_payload_is_taken_as_a_copy_and_the_signal_is_no_error_of_the_product() -> None:
    payload = {"deep": [1]}
    with pytest.raises(PauseSignal) as raised:
        pause_here(payload)
    payload["deep"].append(2)
    assert raised.value.payload == {"deep": [1]}
    assert not isinstance(raised.value, Exception | FootprintError)


def test_a_question_is_a_text_and_there_is_one() -> None:
    with pytest.raises(PauseSignal) as raised:
        ask_human("Which?", options=["a", "b"])
    assert raised.value.payload == {"question": "Which?", "options": ["a", "b"]}
    odd: Any = 3
    for question, detail in ((odd, {}), (" ", {}), ("Which?", {"question": "another"})):
        with pytest.raises(OutcomeError):
            ask_human(question, **detail)

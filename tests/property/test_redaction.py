"""Redaction on any data: it never raises, it is done once, and a planted token survives in no form."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from footprint_core import plain
from footprint_core.facts import Decided, Fact, ModelReplied, ToolFinished
from footprint_core.ledger import Batch, Entry
from footprint_core.messages import ToolCall
from footprint_core.redacting import Redacting
from footprint_observe import Detector, KeyRing, Redaction, Rule
from footprint_observe.redaction.opened import opened_fields
from footprint_observe.redaction.rules import Strategy

RING = KeyRing.of({"k1": b"A" * 32})
TOKEN = "ghp_Q7x2Lm9Zr4Tv8Kp1Wn6Yb3Hc5Jd0Fs7Ga2Xe"
NEEDLE = TOKEN[6:]

_atoms = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
)
_pieces = st.sampled_from(
    ["password", "token", "=", ": ", '"', "{", "}", "[", "]", "\\", "%41", "\u200b", "\uff41", TOKEN, " ",
     "4111 1111 1111 1111", "a@example.org", "Bearer ", "QUFBQUFBQUFBQUFB", "é", "\n", "'", "&", "sealed:k1:",
     "[redacted]", "secret", ".", "\U0001f600"]
)  # fmt: skip
texts = st.text(st.characters(codec="utf-8"), max_size=30) | st.lists(_pieces, max_size=12).map("".join)
keys = texts | st.sampled_from(["password", "apiKey", "card", "ssn", "n", "email", "note"])
values: st.SearchStrategy[Any] = st.recursive(
    _atoms | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)
    | inner.map(json.dumps),
    max_leaves=12,
)  # fmt: skip
ways: st.SearchStrategy[Strategy] = st.sampled_from(["mask", "drop", "partial", "pseudonym", "seal"])


def policy(strategy: Strategy) -> Redaction:
    token = Detector(name="token", pattern=r"ghp_[A-Za-z0-9]{20,}")
    return Redaction.of(
        rules=[
            Rule(path="result.note", strategy="keep"),
            Rule(path="**.card", strategy=strategy),
            Rule(key="ssn", strategy=strategy),
            Rule(detector=token, strategy=strategy),
        ],
        personal=True,
        keys=RING,
    )


def finished(result: Any) -> ToolFinished:
    return ToolFinished(iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result=result)


def kept(result: Any, of: Redaction) -> Any:
    fact, marks = of.redact(finished(result))
    assert isinstance(fact, ToolFinished)
    assert not any(method == "failed" for _, method in marks)
    return fact.result


@given(values, ways)
def test_any_value_can_be_looked_through_and_what_is_kept_can_be_written(
    value: Any, strategy: Strategy
) -> None:
    detached = plain.detach(value)
    before = json.dumps(detached)
    new = kept(detached, policy(strategy))
    msgspec.json.encode(new)
    assert json.dumps(detached) == before


@given(st.text(min_size=1).filter(lambda key: "." not in key and key.strip() and key not in {"*", "**"}))
def test_a_path_takes_what_stands_under_any_key(key: str) -> None:
    for path in (f"result.{key}", f"**.{key}"):
        assert (
            kept({key: "planted", "n": 1}, Redaction.of(fields=[path], credentials=False))[key] != "planted"
        )


@given(values, ways.filter(lambda way: way not in {"pseudonym", "seal"}))
def test_what_was_redacted_once_stays_as_it_is(value: Any, strategy: Strategy) -> None:
    of = policy(strategy)
    once = kept(plain.detach(value), of)
    assert kept(once, of) == once


@given(values)
def test_what_no_rule_is_about_is_the_same_object(value: Any) -> None:
    fact = finished(plain.detach(value))
    assert Redaction.none().redact(fact)[0] is fact
    of = Redaction.of(
        fields=["before"], detectors=[Detector(name="x", pattern="\u2603{9}")], credentials=False
    )
    assert of.redact(fact)[0] is fact


def wide(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) for c in text)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORMS: dict[str, Callable[[], Any]] = {
    "plain": lambda: TOKEN,
    "key": lambda: {TOKEN: 1},
    "json": lambda: json.dumps({"a": TOKEN}),
    "json in json": lambda: json.dumps({"a": json.dumps([f"x {TOKEN}"])}),
    "json in prose": lambda: f"see {json.dumps({'a': [TOKEN]})} there",
    "percent": lambda: "".join(f"%{ord(c):02X}" for c in TOKEN),
    "quoted": lambda: quote(quote(f"a {TOKEN}&b")),
    "base64": lambda: b64(f"it is {TOKEN}"),
    "base64 url": lambda: base64.urlsafe_b64encode(f"~~~{TOKEN}???".encode()).decode().rstrip("="),
    "base64 twice": lambda: b64(b64(TOKEN)),
    "full-width": lambda: wide(TOKEN),
    "zero-width": lambda: "\u200d".join(TOKEN),
    "under a key": lambda: {"api_key": [NEEDLE]},
    "assigned": lambda: f"api_key={NEEDLE}",
    "assigned in json in prose": lambda: f'x {{"password": "{NEEDLE}"',
}
_words = st.text(st.sampled_from("abc .,\n"), max_size=20)


def survives(told: Any) -> bool:
    text = json.dumps(told, ensure_ascii=False)
    plainly = text.replace("\u200d", "").replace("\\", "") + unquote(unquote(text))
    core = NEEDLE[3:-3]
    forms = (core, wide(core), b64(core)[2:-4], b64("x" + core)[4:-4], b64("xx" + core)[4:-4])
    return any(form in plainly for form in forms) or core in b64_all(text)


def b64_all(text: str) -> str:
    """Everything in a text that can be read as base64, twice."""
    out = ""
    for part in text.replace('"', " ").split():
        for _ in range(2):
            try:
                part = base64.b64decode(part + "=" * (-len(part) % 4)).decode()  # noqa: PLW2901
            except ValueError:
                break
            out += part
    return out


@given(st.sampled_from(sorted(FORMS)), ways, _words, _words)
def test_a_planted_token_survives_in_no_form(form: str, strategy: Strategy, before: str, behind: str) -> None:
    planted = FORMS[form]()
    if isinstance(planted, str):
        planted = f"{before} {planted} {behind}"
    new = kept(plain.detach({"a": planted, "list": [planted], "other": 1}), policy(strategy))
    if strategy == "partial":
        new = json.loads(json.dumps(new).replace(TOKEN[-4:], ""))
    assert not survives(new), new


@given(values)
def test_what_was_sealed_is_opened_as_it_was(value: Any) -> None:
    detached = plain.detach(value)
    of = Redaction.of(rules=[Rule(path="result.v", strategy="seal")], keys=RING, credentials=False)
    fact, _ = of.redact(finished({"v": detached}))
    ((found),) = opened_fields(fact, RING)
    assert found.path == "result.v"
    assert plain.same(found.value, detached)


@given(st.lists(texts, min_size=1, max_size=3), values)
def test_no_text_that_a_rule_took_out_of_a_call_is_in_what_is_said_of_it(
    secrets: list[str], detail: Any
) -> None:
    args = json.dumps({"card": secrets})
    call = ToolCall(id="c", name="t", args_json=args)
    reply = ModelReplied(iteration=1, call_count=1, stop_reason="tool_use", duration_us=1, calls=(call,))
    said = Decided(
        middleware="m",
        moment="before-tool",
        iteration=1,
        outcome="deny",
        call_id="c",
        why=" and ".join(secrets),
        detail=plain.detach([detail, *secrets]),
    )
    facts: tuple[Fact, ...] = (said, reply)
    entries = tuple(Entry(position=at, time=at, fact=fact) for at, fact in enumerate(facts, 1))
    of = Redaction.of(fields=["**.card"], credentials=False)
    new, _ = Redacting(of).batch(Batch(run_id="r", segment=1, entries=entries))
    row = new[0].fact
    assert isinstance(row, Decided)
    for secret in plain.detach(secrets):
        if len(secret) >= 6 and secret not in "[redacted]":
            assert secret not in str(row.why)
            assert secret not in row.detail

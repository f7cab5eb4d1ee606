"""Where a secret can hide, and what only looks like one: the tables of both directions."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from footprint_core.facts import ToolFinished
from footprint_core.ledger import REDACTED
from footprint_observe import Detector, Redaction, Rule

PERSONAL = Redaction.personal()
PASSWORD = "Tr0ub4dor&3-Zq"
TOKEN = "ghp_A1b2A1b2A1b2A1b2A1b2A1b2A1b2A1b2A1b2"
CARD = "4111 1111 1111 1111"


def kept(result: Any, policy: Redaction = PERSONAL) -> Any:
    fact = ToolFinished(iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result=result)
    new, marks = policy.redact(fact)
    assert isinstance(new, ToolFinished)
    assert bool(marks) == (new is not fact)
    return new.result


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def wide(text: str) -> str:
    """The full-width forms of ASCII."""
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def spaced(text: str) -> str:
    """With characters between that cannot be seen."""
    return "\u200b".join(text)


HIDDEN: list[tuple[str, Any]] = [
    (TOKEN, {TOKEN: 1}),
    (TOKEN, f"see {TOKEN}"),
    (TOKEN, {"a": [f"see {TOKEN}."]}),
    (TOKEN, wide(TOKEN)),
    (TOKEN, f"é {spaced(TOKEN)}"),
    (TOKEN, b64(f"token {TOKEN}")),
    (TOKEN, f"see {b64(TOKEN)} there"),
    (TOKEN, b64(b64(f"twice {TOKEN}"))),
    (TOKEN, base64.urlsafe_b64encode(f"??>>{TOKEN}".encode()).decode()),
    (TOKEN, f"https://example.com/get/{b64(TOKEN)}"),
    (TOKEN, f"https://example.com/?q={quote(quote(TOKEN), safe='')}&a=b"),
    (TOKEN, "".join(f"%{ord(c):02x}" for c in TOKEN)),
    (TOKEN, quote(b64(f"token {TOKEN}!"))),
    (TOKEN, json.dumps({"note": f"line\n{TOKEN}"})),
    (TOKEN, {"body": json.dumps({"note": f"line\n{TOKEN}"})}),
    (TOKEN, json.dumps([json.dumps({"note": f"\t{TOKEN}"})])),
    (TOKEN, '{"a": "\\u0067hp_' + TOKEN[4:] + '"}'),
    (TOKEN, {"a": "\\" + TOKEN, "b": "c\nd"}),
    (
        "hooks.slack.com/services/T0",
        '{"u": "https:\\/\\/hooks.slack.com\\/services\\/T00\\/B00\\/XXXXXXXXXXXX"}',
    ),
    (PASSWORD, f"password={PASSWORD}"),
    (PASSWORD, f"the pwd: {PASSWORD}, not mine"),
    (PASSWORD, f"DB_PASSWORD := '{PASSWORD}'"),
    (PASSWORD, f"API key: {PASSWORD}"),
    (PASSWORD, f'sent {{"user": "ada", "password": "{PASSWORD}"}} to it'),
    (PASSWORD, f'sent {{"credentials": {{"user": "ada", "pw": "{PASSWORD}"}}}} to it'),
    (PASSWORD, f'sent {{"password": "{PASSWORD}" and broke off'),
    (PASSWORD, f"sent {{'password': '{PASSWORD}'}} to it"),
    (PASSWORD, json.dumps({"log": f'{{"password": "{PASSWORD}"}} was sent'})),
    (PASSWORD, f'{{\\"password\\": \\"{PASSWORD}\\"}}'),
    (PASSWORD, b64(json.dumps({"password": PASSWORD}))),
    (PASSWORD, f"{wide('password')}={PASSWORD}"),
    (PASSWORD, {wide("password"): PASSWORD}),
    (PASSWORD, {spaced("password"): PASSWORD}),
    (PASSWORD, f"p%61ssword%3D{quote(PASSWORD)}"),
    (PASSWORD, f"https://ada:{quote(PASSWORD)}@example.com/"),
    (PASSWORD, f"postgres://ada:{PASSWORD}@example.com/db"),
    (PASSWORD, f"Authorization: Basic {b64(f'ada:{PASSWORD}')}"),
    (PASSWORD, f"aws_secret_access_key={PASSWORD}"),
    (PASSWORD, f"AccountName=a;AccountKey={PASSWORD};EndpointSuffix=b"),
    (PASSWORD, f"curl -H 'X-Api-Key: {PASSWORD}'"),
    (PASSWORD, f"https://example.com/?api_key={PASSWORD}"),
    ("4111111111111111", {"n": 4111111111111111}),
    ("4111111111111111", [[4111111111111111]]),
    ("4111111111111111", json.dumps({"n": 4111111111111111})),
    ("1111 1111", f"pay with {CARD} now"),
    ("1111-1111", f"in 2026 {CARD.replace(' ', '-')} now"),
    ("1111", f"x {CARD.replace(' ', chr(0xA0))}"),
    ("1111", wide(CARD.replace(" ", ""))),
    ("ada@example", "write to ada@example.org."),
    ("ada", "write to ada%40example.org"),
    ("ada", wide("ada@example.org")),
    ("123-45", "SSN 123-45-6789"),
    ("1989", {"dateOfBirth": "1989-05-06"}),
    ("1989", "date of birth: 1989-05-06"),
    ("555", "call +1 415 555 2671 now"),
    ("555", "call (415) 555-2671"),
    ("3704", "pay DE89 3704 0044 0532 0130 00 AND SO ON"),
    ("192", "from 192.168.10.20."),
    ("db8", "from 2001:db8::8a2e:370:7334"),
]


@pytest.mark.parametrize(("secret", "result"), HIDDEN, ids=range(len(HIDDEN)))
def test_a_secret_does_not_survive_in_any_form(secret: str, result: Any) -> None:
    new = kept(result)
    told = json.dumps(new, ensure_ascii=False)
    assert REDACTED in told
    assert secret not in told
    assert b64(secret)[:12] not in told
    assert wide(secret) not in told
    assert spaced(secret) not in told
    assert quote(secret) not in told


ORDINARY: list[Any] = [
    "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    "d1" * 32,
    "9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "2026-11-30T12:00:00.123456+00:00",
    "20261130T120000Z",
    1764545430123456,
    1764545430123,
    1764545430123456789,
    "1764545430123456",
    4111111111111112,
    "4111 1111 1111 1112",
    "0000 0000 0000 0000",
    "978-3-16-148410-0",
    "9783161484100",
    "$1,234.56 and 1.234,56 EUR",
    [19.99, 1e21, -0.0, 0.1],
    "order W1234567890, invoice 2026-000123",
    "000-12-3456",
    "666-12-3456",
    "1.2.3, v1.2.3.4, 1.2.3.4.5, 10.0",
    "std::vector<int> a::b",
    "12:30:45",
    "aa:bb:cc:dd:ee:ff",
    "@ada, a@b, user@localhost",
    "basic economy, basic training",
    "max_tokens: 400, total_tokens = 12",
    "Password: required",
    "The password policy: strict. Your password has expired: contact us",
    "the key is missing; keyboard: qwerty; author: Ada",
    "if (a == b) { return key; }",
    "https://example.com:8080/path?page=2&limit=20#top",
    "https://example.com/%C3%A9t%C3%A9?q=a%20b",
    "naïve café — “quoted” … 50 % off ½ price ™ \u00a0",
    "日本語のテキスト、全角ＡＢＣ",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 family",
    "getCustomerShippingAddressByIdentifier",
    "com/example/someLongPackage/AnotherClassName",
    b64("just an ordinary sentence in base64"),
    '{"n": 1.0,  "spaced": [1, 2]}',
    'see {"a": 1} and [1, 2] and {not json}',
    "HAT170 DFW 2024-05-22 gift_card_3576581 credit_card_9876543",
    "415-555, 555-2671",
    "+1, +49 30",
    "GB82 WEST 1234 5698 7654 33",
    {"input_tokens": 5, "sort_key": "a", "tokenizer": "x", "ok": True, "none": None},
    {"password": None},
    "use the --password flag",
    "Secret::Manager, token::new(x), std::secret::v1",
    "if password == other_password, if token == None",
    "?token={token} password={user.password} password={0}",
    "<token> is no element",
    "%",
    "100%25",
    "%zz%4",
    "====",
    "QUFBQUFBQUFBQUFBQUFBQUFBQUFB",
]


@pytest.mark.parametrize("result", ORDINARY, ids=range(len(ORDINARY)))
@pytest.mark.parametrize(
    "around", [lambda v: v, lambda v: {"a": v}, lambda v: [v], lambda v: json.dumps([v])]
)
def test_what_only_looks_like_a_secret_is_the_same_object(result: Any, around: Any) -> None:
    value = around(result)
    assert kept(value) is value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"use {TOKEN}, then {TOKEN}", f"use {REDACTED}, then {REDACTED}"),
        (f"Authorization: Bearer {TOKEN}", f"Authorization: {REDACTED}"),
        (f"é{spaced(TOKEN)}é", f"é{REDACTED}é"),
        ("a%20password%3Dabc%20b", f"a%20password%3D{REDACTED}%20b"),
        (f"x {b64(TOKEN)} y", f"x {REDACTED} y"),
        ('log: {"n": 1.0, "password": "x"} end', f'log: {{"n":1.0,"password":"{REDACTED}"}} end'),
        ('log: {"n":  1.0} end, pwd=x', f'log: {{"n":  1.0}} end, pwd={REDACTED}'),
        ("password=a&b=c", f"password={REDACTED}&b=c"),
        ("login --password h8nter", f"login --password {REDACTED}"),
        ("<password>hunter</password>", f"<password>{REDACTED}</password>"),
        ("password::hunter2x", f"password::{REDACTED}"),
        ("password==hunter2x", f"password=={REDACTED}"),
        ("Uid=sa;Pwd={hunt;er2};", f"Uid=sa;Pwd={{{REDACTED}}};"),
        ("a\npassword: abc.\nb", f"a\npassword: {REDACTED}.\nb"),
    ],
)
def test_only_the_secret_goes_and_the_rest_stays_as_it_is_written(text: str, told: str) -> None:
    assert kept(text, Redaction.standard()) == told


def test_json_with_too_many_beginnings_is_masked_and_costs_little() -> None:
    tangled = '{"a":' * 5_000 + '{"password": {"x": "hunter2"}}'
    assert "hunter2" not in kept(f"see {tangled}", Redaction.standard())


def test_json_in_prose_that_has_a_key_twice_is_masked_with_its_text() -> None:
    assert kept('see {"password": {"a": "hunter2"}, "password": 1}', Redaction.standard()) == REDACTED


def test_a_lone_half_of_a_character_in_json_in_prose_hides_nothing() -> None:
    new = kept('see {"a": "\\ud800", "password": "hunter2"}, pwd=x', Redaction.standard())
    assert "hunter2" not in new
    msgspec.json.encode(new)


def test_a_path_reaches_into_json_in_json_and_into_json_in_prose() -> None:
    policy = Redaction.of(fields=["result.**.pin"])
    inner = json.dumps({"pin": 4821})
    assert kept({"a": inner}, policy) == {"a": f'{{"pin":"{REDACTED}"}}'}
    assert kept({"a": f"see {inner} there"}, policy) == {"a": f'see {{"pin":"{REDACTED}"}} there'}
    assert kept({"a": '{"p\\u0069n": 4821}'}, policy) == {"a": f'{{"pin":"{REDACTED}"}}'}


def test_a_number_goes_only_when_all_of_it_is_found() -> None:
    policy = Redaction.of(rules=[Rule(detector=Detector(name="four", pattern=r"\d{4}"))])
    assert kept([4821, 48213, 48.21, -4821, True], policy) == [REDACTED, 48213, 48.21, -4821, True]

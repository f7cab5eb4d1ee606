"""What is met by the form it stands in: code, settings, command lines, headers, pairs of key and value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from footprint_core.facts import ToolFinished
from footprint_core.ledger import REDACTED
from footprint_observe import Redaction, Rule

STANDARD, PERSONAL = Redaction.standard(), Redaction.personal()
SECRET = "s3cr3tpass"


def kept(result: Any, policy: Redaction = STANDARD) -> Any:
    fact = ToolFinished(iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result=result)
    new, _ = policy.redact(fact)
    assert isinstance(new, ToolFinished)
    return new.result


def letters(count: int, of: str = "a1B2") -> str:
    return (of * count)[:count]


FORMS: list[Any] = [
    "{b'password': b's3cr3tpass'}",
    "**Password:** s3cr3tpass",
    "**Password**: s3cr3tpass",
    "password: correct horse s3cr3tpass staple",
    "password: |\n  s3cr3tpass\n  s3cr3tpass\nuser: ada",
    "db:\n  password: >-\n    s3cr3tpass\n  user: x",
    "postgres://u:p@s3cr3tpass@h/db",
    "postgres://u:pa/s3cr3tpass@h",
    "Authorization: Bot s3cr3tpass",
    "Authorization: GenieKey s3cr3tpass",
    "Authorization: SharedKey acct:s3cr3tpass",
    'Authorization: Digest username="M", response="s3cr3tpass", x="y"',
    "Authorization: AWS4-HMAC-SHA256 Credential=AK/x, SignedHeaders=host, Signature=s3cr3tpass",
    "curl -H 'Authorization: Bot s3cr3tpass' https://x",
    [{"name": "password", "value": SECRET}],
    [{"key": "DB_PASSWORD", "value": SECRET}],
    {"headers": [{"name": "Authorization", "value": "Bot " + SECRET}]},
    "<password>s3cr3tpass</password>",
    "<wsse:Password Type='x'>s3cr3tpass</wsse:Password>",
    '<add key="password" value="s3cr3tpass"/>',
    '<user password="s3cr3tpass"/>',
    'log {"name": "password", "value": "s3cr3tpass',
    {"auths": {"x": {"auth": "dXNlcjpzM2NyM3RwYXNz"}}},
    "//r/:_auth=dXNlcjpzM2NyM3RwYXNz",
    "machine h login bob password s3cr3tpass",
    '{"auth": "dXNlcjpzM2NyM3RwYXNz"',
    "run --password s3cr3tpass now",
    "run --token s3cr3tpass",
    "curl -u admin:s3cr3tpass https://x",
    "curl -s -X POST --user 'admin:s3cr3tpass' u",
    "mysql -h x -ps3cr3tpass db",
    "ALTER USER a IDENTIFIED BY 's3cr3tpass'",
    "CREATE ROLE x WITH PASSWORD 's3cr3tpass'",
    "password\t=\ts3cr3tpass",
    "password          =          s3cr3tpass",
    "docker login -u me -p s3cr3tpass r",
    {"otp": SECRET},
    {"otp": 123456},
    {"pin": 4821},
    {"session_id": SECRET},
    {"sessionid": SECRET},
    {"PHPSESSID": SECRET},
    {"JSESSIONID": SECRET},
    {"recovery_codes": [SECRET]},
    {"backup_codes": [SECRET]},
    {"mnemonic": SECRET},
    {"seed_phrase": SECRET},
    {"consumer_key": SECRET},
    {"license_key": SECRET},
    {"security_answer": SECRET},
    "pin: 4821",
    "PHPSESSID=s3cr3tpass",
    "otp: 123456",
    "password=ab,s3cr3tpass",
    "password=ab(s3cr3tpass",
    "password: ab&s3cr3tpass",
    "Pwd={s3cr3tpass1}",
    "password::s3cr3tpass",
    {"authorization": "Bot s3cr3tpass"},
    {"Authorization": ["Bot s3cr3tpass"]},
]


@pytest.mark.parametrize("result", FORMS, ids=range(len(FORMS)))
def test_a_secret_goes_in_every_form(result: Any) -> None:
    new = kept(result)
    told = json.dumps(new)
    assert REDACTED in told
    assert SECRET not in told
    assert "dXNlcjpz" not in told
    assert new != result


TOKENS: list[str] = [
    "glrt-" + letters(20),
    "gldt-" + letters(20),
    "glptt-" + letters(40),
    "sk_org_live_" + letters(24),
    "dop_v1_" + letters(64, "a1b2"),
    "dapi" + letters(32, "a1b2"),
    "HRKU-" + letters(40),
    "hvs." + letters(24),
    letters(14) + ".atlasv1." + letters(60),
    "shpat_" + letters(32, "a1b2"),
    "sq0atp-" + letters(22),
    "gsk_" + letters(52),
    "xai-" + letters(80),
    "r8_" + letters(37),
    "pplx-" + letters(48),
    "nvapi-" + letters(64),
    "lsv2_pt_" + letters(32, "a1b2") + "_" + letters(10, "a1b2"),
    "lin_api_" + letters(40),
    "secret_" + letters(43),
    "ntn_" + letters(46),
    "figd_" + letters(40),
    "PMAK-" + letters(24, "a1b2") + "-" + letters(34, "a1b2"),
    "NRAK-" + letters(27, "A1B2"),
    "glsa_" + letters(32) + "_" + letters(8, "a1b2"),
    "sntrys_" + letters(60),
    "dckr_pat_" + letters(27),
    "ATATT3" + letters(180),
    "ATBB" + letters(32),
    "dp.pt." + letters(43),
    "pscale_tkn_" + letters(43),
    "sbp_" + letters(40, "a1b2"),
    "sb_secret_" + letters(31),
    "rubygems_" + letters(48, "a1b2"),
    "AGE-SECRET-KEY-1" + letters(58, "A1B2"),
    "key-" + letters(32, "a1b2"),
    "123456789:AA" + letters(33),
    "$2b$12$" + letters(53),
    "$6$salt$" + letters(86),
]


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_of_a_service_goes_whole(token: str) -> None:
    assert kept(f"see {token} there") == f"see {REDACTED} there"


ORDINARY: list[Any] = [
    {"authorization": "approved"},
    {"authorization_status": "approved 12"},
    {"prior_authorization": "PA-123456"},
    "Authorization: approved by manager",
    {"next_page_token": "CAUQAA"},
    {"nextToken": "abcdef1"},
    {"continuation_token": "abcdef1"},
    {"page_token": "abcdef1"},
    {"cursor_token": "abcdef"},
    {"password_reset": True},
    {"password_changed_at": "2026-11-30"},
    {"password_min_length": 12},
    {"secret_name": "prod/db"},
    {"secret_arn": "arn:aws:sm"},
    "invalid token: unexpected end",
    "token = next(tokens)",
    "sk-scikit-learn-model-evaluation-2024",
    {"password": False},
    "PASSWORD=\nUSER=bob",
    "password_min_length: 12",
    "GPIO pin: 13",
    {"auth": {"mode": "x"}},
    {"auth": "basic"},
    "https://example.com:8080/a@b",
    "token = get_token(a1)",
]


@pytest.mark.parametrize("result", ORDINARY, ids=range(len(ORDINARY)))
def test_what_is_no_secret_stays(result: Any) -> None:
    assert kept(result) is result


PEOPLE: list[Any] = [
    "555-123-4567",
    "415 555 2671",
    "415\u2011555\u20112671",
    "415\u2013555\u20132671",
    "SSN: 123456789",
    "the SSN 123-45-6789",
    "912-70-1234",
    "4111  1111  1111  1111",
    "4111\u20131111\u20131111\u20131111",
    "card4111111111111111",
    "ada@münchen.de",
    "zoë@example.com",
    "64:ff9b::192.0.2.33",
    "::ffff:192.0.2.33",
    "DE89-3704-0044-0532-0130-00",
    {"tel": "0123"},
    {"cell": "0123"},
    {"driver_licence": "x1"},
    {"account_number": "123"},
    {"routing_number": "12"},
    {"tin": "12"},
    {"vat_id": "x"},
    {"user_ip": "x"},
    {"userTin": "x"},
    "tel: 030 1234 5678",
    "date of birth: 6 May 1989",
]


@pytest.mark.parametrize("result", PEOPLE, ids=range(len(PEOPLE)))
def test_no_part_of_personal_data_stays(result: Any) -> None:
    told = json.dumps(kept(result, PERSONAL), ensure_ascii=False)
    assert REDACTED in told
    assert not any(c.isdigit() for c in told)
    assert "@" not in told


NOBODY: list[Any] = [
    "logo@2x.png",
    "git@github.com:a/b.git",
    "a::b1",
    "x[1::2]",
    "5::10",
    "12:30::45",
    {"email_count": 3},
    {"phone_model": "iPhone 12"},
    "testing the routing of cells",
    "tell me, excellent",
    "200 100 4000",
]


@pytest.mark.parametrize("result", NOBODY, ids=range(len(NOBODY)))
def test_what_only_looks_personal_stays(result: Any) -> None:
    assert kept(result, PERSONAL) is result


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("postgres://u:p@x/y@h/db?a=b", f"postgres://u:{REDACTED}@x/y@h/db?a=b"),
        ("password: correct horse, user: bob", f"password: {REDACTED}, user: bob"),
        ("password: correct horse user: bob", f"password: {REDACTED} user: bob"),
        ("password: correct horse. Then go", f"password: {REDACTED}. Then go"),
        ("token: a1b2c3 was sent", f"token: {REDACTED} was sent"),
        ("password: |\n  a b\n  c\nuser: ada", f"password: |\n  {REDACTED}\nuser: ada"),
        ("Authorization: Bot a, b\nHost: x", f"Authorization: {REDACTED}\nHost: x"),
        ("curl -H 'Authorization: Bot a' u", f"curl -H 'Authorization: {REDACTED}' u"),
        ("curl -u ada:b https://x", f"curl -u ada:{REDACTED} https://x"),
        ("recovery codes: abcd-1234, efgh-5678", f"recovery codes: {REDACTED}"),
        ("password:\nuser: bob", "password:\nuser: bob"),
        ("x(password: ab[cd]) y", f"x(password: {REDACTED}) y"),
        ("f(password=abc, n=1)", f"f(password={REDACTED}, n=1)"),
    ],
)
def test_only_the_secret_goes(text: str, told: str) -> None:
    assert kept(text) == told


def test_a_rule_of_ones_own_spares_nothing() -> None:
    policy = Redaction.of(rules=[Rule(key="authorization"), Rule(key="email")])
    assert kept({"authorization": "approved", "email_count": 3, "email_verified": True}, policy) == {
        "authorization": REDACTED, "email_count": REDACTED, "email_verified": REDACTED,
    }  # fmt: skip

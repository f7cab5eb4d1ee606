"""What a credential looks like in a text, and that looking takes time in proportion to the text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from footprint_core import BuilderError
from footprint_observe import Detector, Redaction
from footprint_observe.redaction.credentials import (
    API_TOKEN,
    BASIC,
    BEARER,
    COOKIE,
    CREDENTIALS,
    JWT,
    PRIVATE_KEY,
    URL_PASSWORD,
)
from footprint_observe.redaction.personal import PERSONAL

HEADER = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
PAYLOAD = "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4ifQ"
SIGNATURE = "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow-IBAAKCAQEA\n=abc\n-----END RSA PRIVATE KEY-----"

FOUND = [
    (JWT, f"{HEADER}.{PAYLOAD}.{SIGNATURE}"),
    (JWT, f"{HEADER}.{PAYLOAD}."),
    (JWT, f"{HEADER}.encryptedkey.iv12.{SIGNATURE}.tag1"),
    (JWT, f"glued{HEADER}.{PAYLOAD}.{SIGNATURE}"),
    (BEARER, "Bearer abc123def456"),
    (BEARER, "bearer: abcdefghijklmnopqrstuvwxyz"),
    (BEARER, "BEARER%20abc.def-123~xyz=="),
    (API_TOKEN, "sk-ant-api03-abcDEF123_xyz-789"),
    (API_TOKEN, "sk-" + "a1" * 24),
    (API_TOKEN, "sk-proj-" + "x" * 40),
    (API_TOKEN, "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"),
    (API_TOKEN, "rk_test_" + "4eC39HqLyjWDarjtT1zdp7dc"),
    (API_TOKEN, "whsec_" + "4eC39HqLyjWDarjtT1zdp7dc"),
    (API_TOKEN, "ghp_" + "A1b2" * 9),
    (API_TOKEN, "github_pat_" + "11ABCDEFG0_abc" * 3),
    (API_TOKEN, "glpat-" + "abcDEF123-_xyz789GHI"),
    (API_TOKEN, "xoxb-123456789012-abcDEF"),
    (API_TOKEN, "AKIAIOSFODNN7EXAMPLE"),
    (API_TOKEN, "AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY"),
    (API_TOKEN, "ya29." + "a0AfH6SMBx-abc_def123456"),
    (API_TOKEN, "GOCSPX-" + "abcdefghijklmnopqrst1234"),
    (API_TOKEN, "hf_" + "aB" * 17),
    (API_TOKEN, "SG." + "a1B2c3D4e5F6g7H8" + "." + "i9J0k1L2m3N4o5P6q7R8"),
    (API_TOKEN, "abc8Q~" + "dEf" * 11),
    (API_TOKEN, "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"),
    (API_TOKEN, "https://discord.com/api/webhooks/123456789012345678/abcDEF-123_xyz"),
    (PRIVATE_KEY, PEM),
    (PRIVATE_KEY, PEM.replace("RSA ", "")),
    (PRIVATE_KEY, PEM.replace("RSA", "OPENSSH")),
    (PRIVATE_KEY, "-----BEGIN PGP PRIVATE KEY BLOCK-----\nabc\n-----END PGP PRIVATE KEY BLOCK-----"),
]


def replaced(detector: Detector, text: str) -> str:
    out, done = "", 0
    for start, stop in detector.found(text):
        out += text[done:start] + "#"
        done = stop
    return out + text[done:]


@pytest.mark.parametrize(("detector", "credential"), FOUND)
@pytest.mark.parametrize(
    "around", ["{}", "use {} now", "x={}&y", '"{}"', "({})", "\n{}\n", "key:{}", "é {} é"]
)
def test_a_credential_is_found_whatever_stands_around_it(
    detector: Detector, credential: str, around: str
) -> None:
    assert replaced(detector, around.format(credential)) == around.format("#")


@pytest.mark.parametrize(
    ("detector", "text", "kept"),
    [
        (BASIC, "Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic #"),
        (BASIC, "basic%20dXNlcjpwYXNzd29yZA", "basic%20#"),
        (URL_PASSWORD, "postgres://app:s3cr3t@db.example.com/x", "postgres://app:#@db.example.com/x"),
        (URL_PASSWORD, "redis://:s3cr3t@localhost:6379/0", "redis://:#@localhost:6379/0"),
        (URL_PASSWORD, "amqps://u:p%40ss@h and https://a:b@c", "amqps://u:#@h and https://a:#@c"),
        (COOKIE, "Cookie: session=abc; theme=dark\nHost: x", "Cookie: #\nHost: x"),
        (COOKIE, "set-cookie: id=1; HttpOnly", "set-cookie: #"),
        (API_TOKEN, "https://x.blob.core.windows.net/c?sv=1&sig=abcDEF%2F0123456789&x=1",
         "https://x.blob.core.windows.net/c?sv=1#&x=1"),
        (API_TOKEN, "https://b.s3.amazonaws.com/k?X-Amz-Signature=0123456789abcdef01",
         "https://b.s3.amazonaws.com/k#"),
    ],
)  # fmt: skip
def test_only_the_secret_goes_where_the_rest_is_none(detector: Detector, text: str, kept: str) -> None:
    assert replaced(detector, text) == kept


def test_a_private_key_that_was_cut_off_goes_to_the_end_of_its_text() -> None:
    assert replaced(PRIVATE_KEY, f"it is {PEM[:60]}\nand more") == "it is #"


@pytest.mark.parametrize(
    "text",
    [
        "the bearer instrument", "bearer of responsibilities", "a bearer", "Bearer ",
        "sk-learn-and-its-pipelines-are-fine", "risk-assessment-of-the-4th-quarter-2026",
        "task-12345678901234567890", "basic economy", "Basic authentication", "a basic understanding of it",
        "the task is sk-", "eyJ", "eyJust.saying", "https://example.com/eyJ.html", "v1.2.3", "a.b.c",
        "ghp_short", "highlight", "hf_model", "AKIA", "AKIAnot-a-key", "xox-", "AIza", "skeleton_key_test_",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nMIIB",
        "PRIVATE KEY", "order W123-456", "0123456789" * 20, "a" * 500, "192.168.0.1", "d1" * 32,
        "https://example.com:8080/a@b", "http://[::1]:80/", "mailto:a@b", "cookie: chocolate", "a cookie",
        "https://slack.com/help", "?signature=yes", "https://hooks.slack.com/services/", "pk_live_",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479", "2026-11-30T12:00:00.123456+00:00", "1764545430123456",
    ],
)  # fmt: skip
def test_ordinary_text_is_left_alone(text: str) -> None:
    for detector in CREDENTIALS:
        assert replaced(detector, text) == text, detector.name


ADVERSARIAL: list[Callable[[int], str]] = [
    lambda n: "eyJ" * n,
    lambda n: "eyJ-" * n,
    lambda n: "eyJ." * n,
    lambda n: ".eyJ" * n,
    lambda n: "eyJabcd." * n,
    lambda n: "a" * (4 * n) + "eyJ",
    lambda n: "a-" * (2 * n) + "eyJ",
    lambda n: "a." * (2 * n) + "eyJ",
    lambda n: "bearer " * n,
    lambda n: "bearer" + " " * (6 * n),
    lambda n: "bearer\t " * n + "a" * n,
    lambda n: "bearer " + "-" * (6 * n),
    lambda n: "bearer %20" * n,
    lambda n: "basic " * n,
    lambda n: "sk-" * (2 * n),
    lambda n: "sk-" + "a-" * (3 * n),
    lambda n: "sk-a" * n,
    lambda n: "sk-" + "_" * (4 * n),
    lambda n: "ghp_" * n,
    lambda n: "AIza" * n,
    lambda n: "npm_hf_sk_live_" * n,
    lambda n: "-----BEGIN PRIVATE KEY-----" * n,
    lambda n: "-----BEGIN " * n + "PRIVATE KEY",
    lambda n: "-----BEGIN " + "A " * n + "PRIVATE KEY",
    lambda n: "-" * (10 * n) + "PRIVATE KEY",
    lambda n: "-----BEGIN PRIVATE KEY-----" + "-----END " * n,
    lambda n: "-----BEGIN PRIVATE KEY-----" + "-" * (6 * n),
    lambda n: "a://" * n,
    lambda n: "a://a:" * n,
    lambda n: "4111 " * n,
    lambda n: "4111" * n,
    lambda n: "+1 " * n,
    lambda n: "a@" * n,
    lambda n: "a." * n + "@",
    lambda n: "1." * n,
    lambda n: "a:" * n,
    lambda n: "DE89 " * n,
    lambda n: "{" * n,
    lambda n: '{"' * n,
    lambda n: '{"a":' * n,
    lambda n: '["' * n,
    lambda n: "[" * n + '"token"',
    lambda n: "token=" * n,
    lambda n: "token: " * n,
    lambda n: 'token="' * n,
    lambda n: "token" + " " * n + "=",
    lambda n: "authorization: " * n,
    lambda n: "auth: |\n  " * n,
    lambda n: "password: correct " * n,
    lambda n: "password: " + "horse " * n,
    lambda n: "password=a,b(c&d" * n,
    lambda n: 'name="a" value=' * n,
    lambda n: "<password " * n,
    lambda n: "<password>" * n,
    lambda n: "curl -u " * n,
    lambda n: "curl " * n + "-u a:b",
    lambda n: "mysql -" * n,
    lambda n: "login a " * n,
    lambda n: "https://a:" + "b/" * n,
    lambda n: "ada@" + "a." * n,
    lambda n: "%41" * n,
    lambda n: "%25" * n,
    lambda n: "QUFB" * n,
    lambda n: "QUF/" * n,
    lambda n: "\uff41" * n,
    lambda n: "a\u200b" * n,
    lambda n: "\u00e9\\u0041" * n,
]


def cost(text: str) -> float:
    """CPU time of a whole policy on a text, the least of several."""
    policy = Redaction.of(personal=True, fields=["**.ssn"])._compiled
    assert policy is not None
    hits = policy._all

    def once() -> float:
        start = time.process_time()
        # Without the gate of the look: what is behind it must be linear.
        look_through(text, hits)
        return time.process_time() - start

    return min(once() for _ in range(3))


def look_through(text: str, hits: frozenset[int]) -> None:
    from footprint_core.facts import MessageTaken
    from footprint_observe.redaction.apply import _Walk

    policy = Redaction.of(personal=True, fields=["**.ssn"])._compiled
    assert policy is not None
    fact = MessageTaken(turn_index=1, message_chars=1, text=text)
    walk = _Walk(policy, fact)
    walk._hits = hits
    walk._text(text, "text", 0, policy.fields, 1 << 30)


@pytest.mark.parametrize("make", ADVERSARIAL)
def test_a_text_sixteen_times_as_long_takes_about_sixteen_times_as_long(make: Callable[[int], str]) -> None:
    # Quadratic would be 256 times; a machine that is busy for a moment is allowed for.
    small, large = cost(make(1_000)), cost(make(16_000))
    assert large < 64 * max(small, 5e-4)


@pytest.mark.parametrize(
    "pattern", [r"(?<=a)b", r"(?=a)b", r"(a)\1", r"a++", r"(?>a)b", "(", r"\Z", "a{2000}"]
)
def test_a_pattern_that_could_run_away_is_none(pattern: str) -> None:
    with pytest.raises(BuilderError, match="the detector 'mine' is none RE2 takes"):
        Redaction.of(detectors=[Detector(name="mine", pattern=pattern)])


def test_a_pattern_that_runs_away_elsewhere_takes_its_time_here() -> None:
    policy = Redaction.of(detectors=[Detector(name="nested", pattern=r"(?:a+)+b")])
    from footprint_core.facts import MessageTaken

    fact = MessageTaken(turn_index=1, message_chars=1, text="a" * 50_000)
    assert policy.redact(fact)[0] is fact


@pytest.mark.parametrize("count", [1, 8])
def test_patterns_that_would_take_seconds_to_build_are_refused(count: int) -> None:
    pattern = r"[\pL\pN_]{900}" if count == 1 else r"[\pL\pN_]{60}"
    detectors = [Detector(name=f"d{at}", pattern=f"X{at}{pattern}") for at in range(count)]
    with pytest.raises(BuilderError, match="too large") as raised:
        Redaction.of(detectors=detectors)
    assert raised.value.__context__ is None


def test_names_of_included_detectors_are_unique() -> None:
    names = [detector.name for detector in (*CREDENTIALS, *PERSONAL)]
    assert len(set(names)) == len(names)

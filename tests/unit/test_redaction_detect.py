"""What a credential looks like in a text, and that looking takes time in proportion to the text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from footprint_observe.redaction.detect import API_TOKEN, BEARER, CREDENTIALS, JWT, PRIVATE_KEY, Detector

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
    (API_TOKEN, "ghp_" + "A1b2" * 9),
    (API_TOKEN, "github_pat_" + "11ABCDEFG0_abc" * 3),
    (API_TOKEN, "glpat-" + "abcDEF123-_xyz789GHI"),
    (API_TOKEN, "xoxb-123456789012-abcDEF"),
    (API_TOKEN, "AKIAIOSFODNN7EXAMPLE"),
    (API_TOKEN, "AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY"),
    (API_TOKEN, "hf_" + "aB" * 17),
    (PRIVATE_KEY, PEM),
    (PRIVATE_KEY, PEM.replace("RSA ", "")),
    (PRIVATE_KEY, PEM.replace("RSA", "OPENSSH")),
    (PRIVATE_KEY, "-----BEGIN PGP PRIVATE KEY BLOCK-----\nabc\n-----END PGP PRIVATE KEY BLOCK-----"),
]


def replaced(detector: Detector, text: str) -> str:
    if not any(hint in text for hint in detector.hints):
        return text
    return detector.pattern.sub("#", text)


@pytest.mark.parametrize(("detector", "credential"), FOUND)
@pytest.mark.parametrize("around", ["{}", "use {} now", "x={}&y", '"{}"', "({})", "\n{}\n", "key:{}"])
def test_a_credential_is_found_whatever_stands_around_it(
    detector: Detector, credential: str, around: str
) -> None:
    assert replaced(detector, around.format(credential)) == around.format("#")


def test_a_private_key_that_was_cut_off_goes_to_the_end_of_its_text() -> None:
    assert replaced(PRIVATE_KEY, f"it is {PEM[:60]}\nand more") == "it is #"


@pytest.mark.parametrize(
    "text",
    [
        "the bearer instrument", "bearer of responsibilities", "a bearer", "Bearer ",
        "sk-learn-and-its-pipelines-are-fine", "risk-assessment-of-the-4th-quarter-2026",
        "task-12345678901234567890",
        "the task is sk-", "eyJ", "eyJust.saying", "https://example.com/eyJ.html", "v1.2.3", "a.b.c",
        "ghp_short", "highlight", "hf_model", "AKIA", "AKIAnot-a-key", "xox-", "AIza", "skeleton_key_test_",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nMIIB",
        "PRIVATE KEY", "order W123-456", "0123456789" * 20, "a" * 500, "192.168.0.1", "d1" * 32,
    ],
)  # fmt: skip
def test_ordinary_text_is_left_alone(text: str) -> None:
    for detector in CREDENTIALS:
        assert replaced(detector, text) == text, detector.name


@pytest.mark.parametrize(("detector", "credential"), FOUND)
def test_every_match_holds_a_hint(detector: Detector, credential: str) -> None:
    assert any(hint in credential for hint in detector.hints)


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
    lambda n: "sk-" * (2 * n),
    lambda n: "sk-" + "a-" * (3 * n),
    lambda n: "sk-a" * n,
    lambda n: "sk-" + "_" * (4 * n),
    lambda n: "ghp_" * n,
    lambda n: "github_pat_" * n,
    lambda n: "xoxb-" * n,
    lambda n: "AIza" * n,
    lambda n: "AKIA" * n,
    lambda n: "npm_hf_sk_live_" * n,
    lambda n: "-----BEGIN PRIVATE KEY-----" * n,
    lambda n: "-----BEGIN " * n + "PRIVATE KEY",
    lambda n: "-----BEGIN " + "A " * n + "PRIVATE KEY",
    lambda n: "-----BEGIN " + "A" * (4 * n) + "PRIVATE KEY",
    lambda n: "-" * (10 * n) + "PRIVATE KEY",
    lambda n: "-----BEGIN PRIVATE KEY-----" + "-----END " * n,
    lambda n: "-----BEGIN PRIVATE KEY-----" + "-" * (6 * n),
    lambda n: "-----BEGIN PRIVATE KEY-----" + "----END" * n,
]


def cost(text: str) -> float:
    """CPU time of all detectors on a text, the least of several."""

    def once() -> float:
        start = time.process_time()
        for detector in CREDENTIALS:
            # Without the gate of the hints: the patterns themselves must be linear.
            detector.pattern.sub("#", text)
        return time.process_time() - start

    return min(once() for _ in range(3))


@pytest.mark.parametrize("make", ADVERSARIAL)
def test_a_text_sixteen_times_as_long_takes_about_sixteen_times_as_long(make: Callable[[int], str]) -> None:
    # Quadratic would be 256 times; a machine that is busy for a moment is allowed for.
    small, large = cost(make(2_000)), cost(make(32_000))
    assert large < 64 * max(small, 1e-4)

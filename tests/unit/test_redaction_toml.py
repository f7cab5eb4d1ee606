"""A policy as a TOML file, and what is refused in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from footprint_core import BuilderError
from footprint_observe import Detector, KeyRing, Redaction, Rule
from footprint_observe.redaction.personal import EMAIL
from footprint_observe.redaction.toml_policy import KNOWN

RING = KeyRing.of({"k1": b"A" * 32})

WHOLE = r"""
credentials = true
personal = true
fields = ["before.customer.ssn"]
erasable = ["args.card"]

[[detectors]]
name = "order"
pattern = 'W\d{7}'

[[detectors]]
name = "pin"
pattern = 'pin (?P<secret>\d{4})'

[[rules]]
path = "args.note"
strategy = "keep"

[[rules]]
key = "customer id"
strategy = "pseudonym"

[[rules]]
detector = "e-mail"
strategy = "seal"

[[rules]]
detector = "pin"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "policy.toml"
    path.write_text(text)
    return path


def test_a_file_says_what_the_arguments_say(tmp_path: Path) -> None:
    pin = Detector(name="pin", pattern=r"pin (?P<secret>\d{4})")
    assert Redaction.from_toml(written(tmp_path, WHOLE), keys=RING) == Redaction.of(
        rules=[
            Rule(path="args.note", strategy="keep"),
            Rule(key="customer id", strategy="pseudonym"),
            Rule(detector=EMAIL, strategy="seal"),
            Rule(detector=pin),
        ],
        fields=["before.customer.ssn"],
        detectors=[Detector(name="order", pattern=r"W\d{7}")],
        personal=True,
        erasable=["args.card"],
        keys=RING,
    )


def test_an_empty_file_is_the_standard_policy(tmp_path: Path) -> None:
    assert Redaction.from_toml(str(written(tmp_path, ""))) == Redaction.standard()
    assert Redaction.from_toml(written(tmp_path, "credentials = false")) == Redaction.none()


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_every_included_detector_can_be_named(name: str, tmp_path: Path) -> None:
    policy = Redaction.from_toml(written(tmp_path, f'[[rules]]\ndetector = "{name}"\nstrategy = "drop"'))
    assert policy.rules == (Rule(detector=KNOWN[name], strategy="drop"),)


REFUSED = [
    (
        '[[rules]]\npath = "args"\nstrategy = "hash"',
        "'mask', 'drop', 'partial', 'pseudonym', 'seal' or 'keep'",
    ),
    ('[[rules]]\npath = "nowhere.ssn"', "begins with the name of a value"),
    ('[[rules]]\npath = "args..ssn"', "keys joined by dots"),
    ('[[rules]]\npath = "args"\nkey = "ssn"', "a path, a key or a detector"),
    ("[[rules]]\n", "a path, a key or a detector"),
    ('[[rules]]\nkey = "123"', "at least one word"),
    ('[[rules]]\ndetector = "mail"', "'mail', which is not known; use one of .*e-mail"),
    ('[[rules]]\npath = "args"\nstrategy = "seal"', "seal needs keys"),
    ('[[rules]]\npath = "args"\nstrategy = "pseudonym"', "pseudonym needs keys"),
    ('[[rules]]\npath = "args"\nstrategie = "drop"', "rules.1.strategie that is not known"),
    ("[[rules]]\npath = 5", "rules.1.path that is not understood"),
    ('rules = "args"', "rules that is not understood"),
    ('field = ["args"]', "field that is not known"),
    ('fields = "args"', "fields that is not understood"),
    ('fields = ["nowhere"]', "begins with the name of a value"),
    ('erasable = ["nowhere"]', "begins with the name of a value"),
    ('personal = "yes"', "personal that is not understood"),
    ('keys = "A"', "keys that is not known"),
    ('[[detectors]]\nname = "x"\npattern = "(a)\\\\1"', "the detector 'x' is none RE2 takes"),
    ('[[detectors]]\nname = "x"\npattern = "(?=a)b"', "the detector 'x' is none RE2 takes"),
    ('[[detectors]]\nname = "x"\npattern = "a*"', "matches the empty text"),
    ('[[detectors]]\nname = "x"', "detectors.1.pattern that is not understood"),
    ('[[detectors]]\nname = "iban"\npattern = "a"', "that of an included one"),
    ('[[detectors]]\nname = "x"\npattern = "a"\n[[detectors]]\nname = "x"\npattern = "b"', "have one name"),
    ("a = = b", "is no TOML"),
    ("rules = " + "[" * 20_000, "nested too deep"),
]


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_what_is_not_understood_is_refused_by_name(text: str, says: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BuilderError, match=says) as raised:
        Redaction.from_toml(path)
    assert raised.value.__context__ is None


def test_a_file_that_cannot_be_read_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(BuilderError, match=r"absent\.toml cannot be read \(No such file"):
        Redaction.from_toml(tmp_path / "absent.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BuilderError, match=r"bytes\.toml is no TOML"):
        Redaction.from_toml(tmp_path / "bytes.toml")

"""What tells who a person is or what they pay with, by its look; each with the checksum it has."""

from __future__ import annotations

import re
from ipaddress import ip_address

from footprint_observe.redaction.detect import Detector

_DASH = r"\x{2010}-\x{2015}\x{2212}-"
_LATIN = r"A-Za-z\x{c0}-\x{24f}\x{370}-\x{52f}"
_PICTURE = re.compile(r"\d(?:\.\d)?x\.[a-z]{3,4}$")


def _is_card(text: str) -> bool:
    """Whether the digits pass the check of Luhn (ISO/IEC 7812-1, annex B)."""
    digits = [int(c) for c in reversed(text) if c.isdigit()]
    if len(set(digits)) == 1:
        return False
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + doubled) % 10 == 0


def _is_ssn(text: str) -> bool:
    """Whether it was ever issued: no area 000 or 666, no group 00, no serial 0000.

    An area 9xx is that of an individual taxpayer, by its group (IRS Publication 1915).
    """
    digits = "".join(c for c in text if c.isdigit())
    area, group, serial = digits[:3], int(digits[3:5]), digits[5:]
    if area[0] == "9" and not (50 <= group <= 65 or 70 <= group <= 99):
        return False
    return area not in {"000", "666"} and group != 0 and serial != "0000"


def _is_email(text: str) -> bool:
    # `git@` is how a repository is addressed, and `logo@2x.png` a picture.
    name, _, host = text.partition("@")
    return name != "git" and _PICTURE.match(host) is None


def _is_iban(text: str) -> bool:
    """Whether the check digits are right (ISO 13616-1, ISO/IEC 7064 MOD 97-10)."""
    joined = "".join(c for c in text if c.isalnum()).upper()
    return int("".join(str(int(c, 36)) for c in joined[4:] + joined[:4])) % 97 == 1


def _is_phone(text: str) -> bool:
    """Whether it has as many digits as a number can have (ITU-T E.164)."""
    return 8 <= sum(c.isdigit() for c in text) <= 15


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    # `a::b1` is a name in C++ and Rust, `1::2` a slice.
    parts = text.split(":")
    return any(c.isdigit() for c in text) and ("::" not in text or any(len(part) > 2 for part in parts))


_GAP = rf"[ .{_DASH}]{{0,2}}"

PAYMENT_CARD = Detector(
    name="payment-card",
    pattern=(
        # A name may be glued to it: `card4111...`.
        r"(?:\b|[A-Za-z_])(?P<secret>"
        # Visa, Mastercard, Discover, JCB, UnionPay, by the digits their numbers begin with.
        rf"(?:4\d{{3}}|5[1-5]\d\d|2[2-7]\d\d|6011|6[245]\d\d|35[2-8]\d)(?:{_GAP}\d{{4}}){{3}}(?:{_GAP}\d{{3}})?"
        rf"|3[47]\d\d{_GAP}\d{{6}}{_GAP}\d{{5}}"  # American Express
        rf"|3(?:0[0-5]|[689]\d)\d{_GAP}\d{{6}}{_GAP}\d{{4}}"  # Diners Club
        r")\b"
    ),
    check=_is_card,
)
"""Numbers of payment cards, in groups or not."""

US_SSN = Detector(name="us-ssn", pattern=rf"\b\d{{3}}[ {_DASH}]\d{{2}}[ {_DASH}]\d{{4}}\b", check=_is_ssn)
"""US social security numbers, and those of individual taxpayers."""

EMAIL = Detector(
    name="e-mail",
    pattern=rf"[{_LATIN}0-9._%+'-]+@(?:[{_LATIN}0-9-]+\.)+[{_LATIN}]{{2,24}}",
    check=_is_email,
)
"""E-mail addresses."""

PHONE = Detector(
    name="phone",
    pattern=(
        rf"\+\d{{1,3}}[ ./{_DASH}]?(?:\(0?\d{{1,4}}\)[ ./{_DASH}]?|\d{{1,5}}[ ./{_DASH}]?){{1,5}}\d{{2,5}}\b"
        # As it is written in North America.
        rf"|(?:\b1[ .{_DASH}])?\(\d{{3}}\) ?\d{{3}}[ .{_DASH}]\d{{4}}\b"
        rf"|\b(?:1[ .{_DASH}])?[2-9]\d{{2}}(?:[.{_DASH}]\d{{3}}[.{_DASH}]| [2-9]\d{{2}} )\d{{4}}\b"
    ),
    check=_is_phone,
)
"""Phone numbers: international with a plus, and North American in groups."""

# Characters of an IBAN by country, two letters and two check digits included (ISO 13616, SWIFT's registry).
_LENGTHS = {
    15: "NO", 16: "BE", 18: "DK FI FK FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK",
    21: "CH HR LI LV", 22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG", 25: "LY PT ST", 26: "IS TR", 27: "BI DJ FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HN HU LB NI PL SV", 29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC",
    33: "RU",
}  # fmt: skip


def _iban_of(length: int, countries: str) -> str:
    fours, rest = divmod(length - 4, 4)
    last = rf"[ {_DASH}]?[A-Z0-9]{{{rest}}}" if rest else ""
    return rf"(?:{'|'.join(countries.split())})\d\d(?:[ {_DASH}]?[A-Z0-9]{{4}}){{{fours}}}{last}"


IBAN = Detector(
    name="iban",
    pattern=rf"(?i)\b(?:{'|'.join(_iban_of(*one) for one in _LENGTHS.items())})\b",
    check=_is_iban,
)
"""International bank account numbers, in groups of four or not."""

_HEX = r"[0-9A-Fa-f]{1,4}"
_QUAD = r"\d{1,3}(?:\.\d{1,3}){3}"

IP = Detector(
    name="ip",
    pattern=(
        # All parts that are there: a version of five is no address, and neither are four of them.
        r"\b\d{1,3}(?:\.\d{1,5}){3,}\b"
        rf"|\b(?:(?:{_HEX}:){{6}}{_QUAD}\b|(?:{_HEX}:){{7}}{_HEX}\b"
        rf"|{_HEX}(?::{_HEX}){{0,6}}::(?:(?:{_HEX}:){{0,6}}(?:{_QUAD}|{_HEX})\b)?)"
    ),
    check=_is_ip,
)
"""Addresses of the internet protocol, version 4 and 6."""

PERSONAL: tuple[Detector, ...] = (PAYMENT_CARD, US_SSN, EMAIL, PHONE, IBAN, IP)
"""Everything personal that has a look of its own."""

PERSONAL_KEYS = (
    "ssn", "social security", "email", "e mail", "mail address", "phone", "mobile", "telephone", "fax number",
    "iban", "bank account", "card number", "cvv", "cvc", "ip address",
    "client ip", "remote ip", "user ip", "date of birth", "birth date", "birthday", "dob", "passport",
    "driver license", "drivers license", "driver licence", "drivers licence", "driving licence", "tax id",
    "national id", "tel", "cell", "account number", "routing number", "tin", "vat id",
)  # fmt: skip
"""Keys under which personal data stands, each as its words."""

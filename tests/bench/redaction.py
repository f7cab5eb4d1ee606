"""What redaction costs: microseconds per KB of JSON, and as a ratio to encoding the same values by `json`.

Run it as a program; it is no test. Rows are those a ledger is given: arguments, results, prose, JSON inside a
text, other alphabets; in those called `found` a policy finds something, and of the mix one in twenty is such.
Pairs are interleaved, each figure is the median of them, in CPU time. `--json FILE` writes the figures too.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from footprint_core.facts import Fact, MessageTaken, ToolFinished, ToolIntended
from footprint_core.ledger import redacted
from footprint_observe import Redaction

PAIRS, ROWS = 15, 100
BUDGET_US = 100.0
ENGLISH = (
    "the parcel of order 4711 was left at a neighbour who has not answered the door since monday and the "
    "customer asks when a new one will be sent or whether the amount goes back to the account it came from"
)
GERMAN = (
    "das Päckchen wurde bei einem Nachbarn abgegeben, der seit Montag die Tür nicht öffnet, und die Kundin "
    "möchte wissen, wann ein neues verschickt wird"
)
JAPANESE = "荷物は隣の家に届けられましたが、月曜日から返事がありません。新しいものはいつ送られますか。"


def prose(chance: random.Random, size: int, language: str = ENGLISH) -> str:
    words, text = language.split(), ""
    while len(text) < size:
        text += f"{chance.choice(words)} "
    return text[:size]


def args(chance: random.Random) -> dict[str, Any]:
    return {
        "order": chance.randrange(10**6), "amount": 4200, "currency": "EUR", "reason": prose(chance, 40)
    }  # fmt: skip


def record(chance: random.Random, size: int) -> dict[str, Any]:
    items = [
        {
            "sku": f"A-{chance.randrange(10**6)}",
            "price": chance.randrange(9999) / 100,
            "note": prose(chance, 60),
        }
        for _ in range(size // 110)
    ]
    return {"order": chance.randrange(10**6), "status": "sent", "customer": "c-1009", "items": items}


def result(value: Any) -> Fact:
    return ToolFinished(iteration=1, call_id="c", tool_name="t", failed=False, duration_us=9, result=value)


def found(chance: random.Random) -> Any:
    return {
        "email": f"ada{chance.randrange(999)}@example.com",
        "api_key": f"sk-{chance.getrandbits(160):040x}",
        "note": f"{prose(chance, 80)} card 4111 1111 1111 1111, call +1 415 555 {chance.randrange(9999):04d}",
        "items": record(chance, 300)["items"],
    }


KINDS: dict[str, Callable[[random.Random], Fact]] = {
    "args": lambda c: ToolIntended(iteration=1, call_id="c", tool_name="t", args=args(c)),
    "result of 200 B": lambda c: result(record(c, 200)),
    "result of 2 KB": lambda c: result(record(c, 2000)),
    "prose of 1 KB": lambda c: MessageTaken(turn_index=0, message_chars=1000, text=prose(c, 1000)),
    "JSON in a text": lambda c: result(
        {"body": json.dumps({"data": record(c, 500), "meta": json.dumps(args(c))})}
    ),
    "German prose": lambda c: MessageTaken(turn_index=0, message_chars=1000, text=prose(c, 1000, GERMAN)),
    "Japanese prose": lambda c: MessageTaken(turn_index=0, message_chars=400, text=JAPANESE * 9),
    "found": lambda c: result(found(c)),
}


def mixed(chance: random.Random) -> Fact:
    """A row as they come: one in twenty holds something to find."""
    (kind,) = chance.choices(tuple(KINDS), (30, 30, 10, 15, 5, 3, 2, 5))
    return KINDS[kind](chance)


POLICIES = {"standard": Redaction.standard(), "personal": Redaction.personal()}


def values_of(fact: Fact) -> list[Any]:
    return [value for name in fact.values if (value := getattr(fact, name)) is not msgspec.UNSET]


def spent(work: Callable[[], object]) -> float:
    began = time.process_time_ns()
    work()
    return (time.process_time_ns() - began) / 1e3


def compared(kind: str, policy: str) -> dict[str, Any]:
    """The figures of one kind of row under one policy."""
    chance = random.Random(7)
    facts = [KINDS.get(kind, mixed)(chance) for _ in range(ROWS)]
    values = [values_of(fact) for fact in facts]
    kilobytes = sum(len(json.dumps(value, ensure_ascii=False).encode()) for value in values) / 1024
    redactor = POLICIES[policy]

    def redact() -> int:
        return sum(bool(redacted(fact, redactor)[1]) for fact in facts)

    def encode() -> None:
        for value in values:
            json.dumps(value)

    marked = redact()
    encode()
    pairs = [(spent(redact), spent(encode)) for _ in range(PAIRS)]
    return {
        "rows": kind,
        "policy": policy,
        "us_per_kb": round(statistics.median(one for one, _ in pairs) / kilobytes, 1),
        "ratio": round(statistics.median(one / two for one, two in pairs), 1),
        "bytes": round(kilobytes * 1024 / ROWS),
        "marked": marked / ROWS,
        "budget_us_per_kb": BUDGET_US,
    }


def main() -> None:
    """Print one line a kind of row and policy."""
    parser = argparse.ArgumentParser(description="What redaction costs.")
    parser.add_argument("--json", type=Path, help="Write the figures here.")
    asked = parser.parse_args()
    figures = [compared(kind, policy) for policy in POLICIES for kind in (*KINDS, "all of them, mixed")]
    print(f"{'policy':<10}{'rows':<20}{'bytes':>7}{'marked':>8}{'us/KB':>8}{'budget':>8}{'x json':>8}")
    for one in figures:
        missed = "  missed" if one["us_per_kb"] > BUDGET_US else ""
        print(
            f"{one['policy']:<10}{one['rows']:<20}{one['bytes']:>7}{one['marked']:>8.0%}{one['us_per_kb']:>8}"
            f"{BUDGET_US:>8.0f}{one['ratio']:>8}{missed}"
        )
    if asked.json is not None:
        asked.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

r"""A policy as a TOML file: read, and checked by pydantic at the edge.

```toml
personal = true
fields = ["before.customer.ssn"]
erasable = ["args.card"]

[[detectors]]
name = "order"
pattern = 'W\d{7}'

[[rules]]
path = "args.note"
strategy = "keep"

[[rules]]
key = "customer id"
strategy = "pseudonym"

[[rules]]
detector = "e-mail"
strategy = "seal"
```
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from footprint_core.errors import BuilderError
from footprint_observe.redaction.credentials import CREDENTIALS
from footprint_observe.redaction.detect import Detector
from footprint_observe.redaction.personal import PERSONAL
from footprint_observe.redaction.rules import Rule, Strategy

KNOWN: dict[str, Detector] = {detector.name: detector for detector in (*CREDENTIALS, *PERSONAL)}
"""The detectors that are included, by name."""


class TomlPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says, as the arguments of `Redaction.of`."""

    rules: tuple[Rule, ...]
    fields: tuple[str, ...]
    detectors: tuple[Detector, ...]
    credentials: bool
    personal: bool
    erasable: tuple[str, ...]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _DetectorTable(_Table):
    name: Annotated[str, Field(min_length=1)]
    pattern: str


class _RuleTable(_Table):
    strategy: Strategy = "mask"
    path: str | None = None
    key: str | None = None
    detector: str | None = None


class _PolicyTable(_Table):
    rules: list[_RuleTable] = []
    fields: list[str] = []
    detectors: list[_DetectorTable] = []
    credentials: bool = True
    personal: bool = False
    erasable: list[str] = []


def read_toml(path: str | os.PathLike[str]) -> TomlPolicy:
    """What a file says.

    Raises:
        BuilderError: The file cannot be read, or something in it is not understood.
    """
    table = _table(Path(path))
    own = {one.name: Detector(name=one.name, pattern=one.pattern) for one in table.detectors}
    shadowing = sorted(own.keys() & KNOWN.keys())
    if shadowing or len(own) != len(table.detectors):
        raise BuilderError(f"Two detectors of {path} have one name, or that of an included one; rename one.")
    named = KNOWN | own
    rules = tuple(
        Rule(
            strategy=one.strategy,
            path=one.path,
            key=one.key,
            detector=None if one.detector is None else _detector(one.detector, named, path),
        )
        for one in table.rules
    )
    used = {one.detector for one in table.rules}
    return TomlPolicy(
        rules=rules,
        fields=tuple(table.fields),
        # A detector that a rule names does what the rule says; the others mask.
        detectors=tuple(detector for name, detector in own.items() if name not in used),
        credentials=table.credentials,
        personal=table.personal,
        erasable=tuple(table.erasable),
    )


def _table(path: Path) -> _PolicyTable:
    try:
        with path.open("rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        failure = f"cannot be read ({error.strerror or type(error).__name__}); name another file"
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        failure = "is no TOML; correct it"
    except ValueError:
        failure = "has a name no file can have; name another file"
    except RecursionError:
        failure = "is nested too deep; correct it"
    else:
        try:
            return _PolicyTable.model_validate(data)
        except ValidationError as error:
            failure = _said(error)
    raise BuilderError(f"The policy {path} {failure}.")


def _said(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part + 1) if isinstance(part, int) else part for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"has an entry {where} that is not known; take it out or look at its spelling"
    # What pydantic says of a strategy names those there are, and never the value that came.
    return f"has an entry {where} that is not understood ({first['msg']}); correct it"


def _detector(name: str, named: dict[str, Detector], path: str | os.PathLike[str]) -> Detector:
    if name not in named:
        raise BuilderError(
            f"The policy {path} has a rule about the detector {name!r}, which is not known; use one of "
            f"{', '.join(sorted(named))}, or describe it under [[detectors]]."
        )
    return named[name]

"""What came of a scenario, in the suite's words and by kind."""

from __future__ import annotations

import msgspec

from conformance.values import Json


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a scenario that was played.

    Attributes:
        steps: For each action what was observed, by kind; a kind that was not observed is absent.
        whole: What was observed of all of it, by kind.
        remote: Names of the tools that came from a server, whose calls may have no id.
    """

    steps: tuple[dict[str, Json], ...]
    whole: dict[str, Json]
    remote: frozenset[str]

"""What tests ask for what came of a scenario."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from conformance.observed import Observed
from conformance.reading import Case

Played: TypeAlias = Callable[[Case], Observed]
"""What came of a case, which is played when it is first asked for."""

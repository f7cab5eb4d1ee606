"""What is put in the place of a value that is not kept."""

from __future__ import annotations

from typing import Literal, TypeAlias

Strategy: TypeAlias = Literal["mask"]
"""How a value is redacted, as marks spell it."""

MASKED = "[redacted]"
"""What stands for a masked value, whatever it was: not even its length or type is told."""

FAILED = "mask:failed"
"""The mark of a whole value that was masked because it could not be looked through."""

"""Model providers: the port, and a scripted one for tests and demonstrations."""

from __future__ import annotations

from footprint_core.providers.port import Chunk, Completed, ModelRequest, Provider, ToolOffer, Whole
from footprint_core.providers.scripted import Scripted, call, reply

__all__ = [
    "Chunk",
    "Completed",
    "ModelRequest",
    "Provider",
    "Scripted",
    "ToolOffer",
    "Whole",
    "call",
    "reply",
]

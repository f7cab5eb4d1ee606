"""Examples are drawn the same way in every run, so that a red one is red for everybody."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "footprint",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("footprint")

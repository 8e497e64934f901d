"""How hypothesis draws: the same input in each run; with `HAT_FUZZ=20000` that many random ones for each test."""

import os

from hypothesis import HealthCheck, settings

LONG = int(os.environ.get("HAT_FUZZ", 0))
SLOW = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
draws = settings(
    max_examples=LONG or 100, derandomize=not LONG, deadline=None, database=None, suppress_health_check=SLOW
)
few_draws = settings(draws, max_examples=LONG or 20)

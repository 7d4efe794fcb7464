"""Settings of the property tests: caches below `.local/`, and no wall clock on a machine that is busy."""

from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir

set_hypothesis_home_dir(".local/cache/hypothesis")
settings.register_profile(
    "unit", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unit")

"""The short form of the kill storm; the long one is in tests/prove."""

import pytest

from tests.live.lab import Lab
from tests.live.storm import storm


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_run_ends_once_whenever_the_operator_is_killed(lab: Lab, seed: int) -> None:
    storm(lab, seed)

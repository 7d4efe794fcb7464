"""Sixty runs, and the operator SIGKILLed at random points of them: twenty rounds."""

import os
from random import Random

import pytest

from tests.live.lab import Lab
from tests.live.storm import storm

ROUNDS = 20
# Printed, and so repeatable: AGENTJOBS_STORM_SEED=123 make prove
SEED = int(os.environ.get("AGENTJOBS_STORM_SEED") or Random().randrange(10**6))


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_every_run_ends_once_whenever_the_operator_is_killed(lab: Lab, seed: int) -> None:
    storm(lab, seed)

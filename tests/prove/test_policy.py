"""100,000 random histories of pools, the core against the oracle; prints what they covered.

AGENTJOBS_HISTORIES sets how many. A failure names its seed: `play(seed, steps, Counter())` plays it again.
"""

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.unit.scheduling.history import play
from tests.unit.scheduling.situations import WANTED

HISTORIES = int(os.environ.get("AGENTJOBS_HISTORIES", "100000"))
BATCH = 250
STEPS = (6, 12, 12, 12, 30)  # most are short: what two events do to each other is seen soonest there


def play_batch(first: int) -> Counter[str]:
    covered: Counter[str] = Counter()
    for seed in range(first, min(first + BATCH, HISTORIES)):
        play(seed, STEPS[seed % len(STEPS)], covered)
    return covered


def test_random_histories_agree_and_keep_every_invariant(capsys: pytest.CaptureFixture[str]) -> None:
    covered: Counter[str] = Counter()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as workers:
        for batch in workers.map(play_batch, range(0, HISTORIES, BATCH)):
            covered.update(batch)
    with capsys.disabled():
        print(f"\n{HISTORIES:,} histories covered")
        for situation, times in covered.most_common():
            print(f"{times:>12,}  {situation}")
    assert sorted(WANTED - set(covered)) == [], "the generator never reached these"

"""The core against the oracle in random histories: the same starts, promises and reasons after every event.

The long form, 100,000 histories: `make prove`.
"""

from collections import Counter
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.unit.scheduling.history import EVENTS, History, play
from tests.unit.scheduling.situations import COMMON, WANTED

HISTORIES = 120
STEPS = 25


class PolicyMachine(RuleBasedStateMachine):
    """One pool, told to both; every choice is Hypothesis's, so that what fails is made small."""

    history: History

    @initialize(random=st.randoms(use_true_random=False))
    def begin(self, random: Random) -> None:
        self.history = History(random)

    @rule(event=st.sampled_from(sorted(EVENTS)), random=st.randoms(use_true_random=False))
    def happen(self, event: str, random: Random) -> None:
        self.history.random = random
        self.history.step(event)

    def teardown(self) -> None:
        if hasattr(self, "history"):
            self.history.rebuilt()


TestPolicyMachine = PolicyMachine.TestCase
TestPolicyMachine.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


def test_seeded_histories_agree_and_reach_what_they_must() -> None:
    covered: Counter[str] = Counter()
    for seed in range(HISTORIES):
        play(seed, STEPS, covered)
    assert sorted(COMMON - set(covered)) == []
    assert covered.keys() - WANTED == set(), "a situation that nobody asked for"

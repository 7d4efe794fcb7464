"""100,000 hostile admission reviews over HTTP; prints what kinds of answers were reached.

AGENTJOBS_REVIEWS sets how many. A failure names its seed: `hostile.body(Random(seed))` is the review.
"""

import os

import pytest

from tests.unit.admission.fuzz import WANTED, Target

REVIEWS = int(os.environ.get("AGENTJOBS_REVIEWS", "100000"))


async def test_hostile_reviews_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    target = Target()
    await target.attack(range(REVIEWS))
    with capsys.disabled():
        print(f"\n{REVIEWS:,} reviews were answered")
        for answer, times in target.covered.most_common():
            print(f"{times:>12,}  {answer}")
    assert sorted(WANTED - set(target.covered)) == [], "the generator never reached these"

"""Hostile reviews: always a well-formed answer, never a fault of ours; `make prove` sends far more."""

from tests.unit.admission.fuzz import WANTED, Target


async def test_hostile_reviews_are_answered() -> None:
    target = Target()
    await target.attack(range(2000))
    assert sorted(WANTED - set(target.covered)) == [], target.covered

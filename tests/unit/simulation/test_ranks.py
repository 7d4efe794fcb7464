"""Numbers at ranks: as sorting has them, with less memory."""

import random
import tracemalloc
from array import array

import pytest

from agentjobs.simulation import ranks
from agentjobs.simulation.ranks import at_ranks


def test_it_is_what_sorting_says_however_many_parts_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "_PART", 7)
    draw = random.Random(1)
    for count in range(1, 50):
        numbers = array("q", (draw.choice((0, 3, 10**15, draw.randrange(10**9))) for _ in range(count)))
        assert at_ranks(numbers, range(1, count + 1)) == sorted(numbers)
    assert at_ranks(array("q"), [1]) == []


def test_it_takes_hardly_more_memory_than_the_numbers() -> None:
    numbers = array("q", range(500_000, 1_000_000))
    tracemalloc.start()
    assert at_ranks(numbers, (1, 250_000, 500_000)) == [500_000, 749_999, 999_999]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 16 * len(numbers)  # sorted() takes more than forty bytes a number

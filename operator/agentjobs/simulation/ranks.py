"""The wait that so many runs did not exceed, of millions of runs, with little memory.

A sorted list of as many numbers would take five times the memory that the array of them takes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

_PART = 50_000  # numbers that are sorted at a time


def at_ranks(numbers: array[int], ranks: Iterable[int]) -> list[int]:
    """Return the numbers that would stand at some places, from 1, were they all sorted.

    Args:
        numbers: none below 0.
    """
    if not numbers:
        return []
    parts = [array("q", sorted(numbers[at : at + _PART])) for at in range(0, len(numbers), _PART)]
    every = range(max(part[-1] for part in parts) + 1)

    def not_above(number: int) -> int:
        return sum(bisect_right(part, number) for part in parts)

    return [bisect_left(every, rank, key=not_above) for rank in ranks]

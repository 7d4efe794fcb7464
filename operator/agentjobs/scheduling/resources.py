"""Amounts of what a pool has and a run asks for, in exact integers."""

from __future__ import annotations

from typing import NamedTuple


class Amounts(NamedTuple):
    """Slots, CPU in millicores, memory in MiB, whole GPUs."""

    slots: int = 0
    cpu_millicores: int = 0
    memory_mb: int = 0
    gpu_count: int = 0

    def plus(self, other: Amounts) -> Amounts:
        """Return the sum, resource by resource."""
        return Amounts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def minus(self, other: Amounts) -> Amounts:
        """Return the difference; negative where a capacity shrank below what is held."""
        return Amounts(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class Capacity(NamedTuple):
    """What a pool has in all, in the units of `Amounts`; None means: not limited."""

    slots: int | None = None
    cpu_millicores: int | None = None
    memory_mb: int | None = None
    gpu_count: int | None = None

    def shortage(self, held: Amounts, request: Amounts) -> str | None:
        """Return the first resource that `request` asks for and that is not free, or None when it fits.

        A resource the request does not use never stops it, even when the pool holds more of it than
        it has: draining the last GPU must not stop runs without one.
        """
        for name, total, used, asked in zip(self._fields, self, held, request, strict=True):
            if total is not None and asked > 0 and used + asked > total:
                return name
        return None

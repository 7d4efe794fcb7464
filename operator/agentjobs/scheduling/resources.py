"""Amounts of what a pool has and a run asks for, in exact integers."""

from __future__ import annotations

from typing import NamedTuple

_new = tuple.__new__  # what a named tuple's own constructor calls, which takes twice as long


class Amounts(NamedTuple):
    """Slots, CPU in millicores, memory in MiB, whole GPUs."""

    slots: int = 0
    cpu_millicores: int = 0
    memory_mb: int = 0
    gpu_count: int = 0

    def plus(self, other: Amounts) -> Amounts:
        """Return the sum, resource by resource."""
        slots, cpu, memory, gpu = self
        other_slots, other_cpu, other_memory, other_gpu = other
        return _new(Amounts, (slots + other_slots, cpu + other_cpu, memory + other_memory, gpu + other_gpu))

    def minus(self, other: Amounts) -> Amounts:
        """Return the difference; negative where a capacity shrank below what is held."""
        slots, cpu, memory, gpu = self
        other_slots, other_cpu, other_memory, other_gpu = other
        return _new(Amounts, (slots - other_slots, cpu - other_cpu, memory - other_memory, gpu - other_gpu))


class Bounds(NamedTuple):
    """An upper bound for each resource, in the units of `Amounts`; None means: not limited."""

    slots: int | None = None
    cpu_millicores: int | None = None
    memory_mb: int | None = None
    gpu_count: int | None = None

    def less(self, held: Amounts) -> Bounds:
        """Return what is left when `held` is taken; negative where it is more than there was."""
        slots, cpu, memory, gpu = self
        held_slots, held_cpu, held_memory, held_gpu = held
        return _new(
            Bounds,
            (
                None if slots is None else slots - held_slots,
                None if cpu is None else cpu - held_cpu,
                None if memory is None else memory - held_memory,
                None if gpu is None else gpu - held_gpu,
            ),
        )

    def more(self, freed: Amounts) -> Bounds:
        """Return what is left when `freed` is given back."""
        slots, cpu, memory, gpu = self
        freed_slots, freed_cpu, freed_memory, freed_gpu = freed
        return _new(
            Bounds,
            (
                None if slots is None else slots + freed_slots,
                None if cpu is None else cpu + freed_cpu,
                None if memory is None else memory + freed_memory,
                None if gpu is None else gpu + freed_gpu,
            ),
        )


NO_BOUNDS = Bounds()
NOTHING = Amounts()


def short(left: Bounds, request: Amounts) -> str | None:
    """Return the first resource that `request` asks for and `left` has too little of; None when it fits.

    A resource that the request does not use never stops it, however far it is overdrawn: losing the last
    GPU must not stop runs without one.
    """
    for name, there, asked in zip(left._fields, left, request, strict=True):
        if asked and there is not None and asked > there:
            return name
    return None


def fits(left: Bounds, request: Amounts) -> bool:
    """Whether `short` finds nothing; the same rule, written out for speed."""
    slots, cpu, memory, gpu = left
    asked_slots, asked_cpu, asked_memory, asked_gpu = request
    return (
        (slots is None or asked_slots <= slots or not asked_slots)
        and (cpu is None or asked_cpu <= cpu or not asked_cpu)
        and (memory is None or asked_memory <= memory or not asked_memory)
        and (gpu is None or asked_gpu <= gpu or not asked_gpu)
    )


def ceil_percent(percent: int, amount: int) -> int:
    """Return a percentage of an amount, rounded up: that it rounds up is a rule, not an accident."""
    return -(-percent * amount // 100)

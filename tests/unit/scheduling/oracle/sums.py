"""What is held, what is free and what has room, in all and on each node, now or later (rule 1)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.unit.scheduling.oracle.world import Bound, Four, Held, World

SHORTAGES = ("NoFreeSlot", "InsufficientCPU", "InsufficientMemory", "InsufficientGPU")


def total(many: Iterator[Four] | list[Four]) -> Four:
    a = b = c = d = 0
    for w, x, y, z in many:
        a, b, c, d = a + w, b + x, c + y, d + z
    return (a, b, c, d)


def plus(a: Four, b: Four) -> Four:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3])


def above(amounts: Four, bound: Bound, request: Four) -> int | None:
    """The first resource that the request uses and of which the amounts exceed the bound."""
    for r in range(4):
        top = bound[r]
        if request[r] and top is not None and amounts[r] > top:
            return r
    return None


def capacity(world: World) -> Bound:
    if world.nodes is None:
        return world.capacity
    sums = total(list(world.nodes.values()))
    return (world.capacity[0], sums[1], sums[2], sums[3])


def usage(world: World, team: str, at: int | None = None) -> Four:
    """What a team holds now, or what of it cannot have ended at a later moment."""
    return total(
        held.request for held in world.held.values() if held.team == team and not _over(world, held, at)
    )


def critical_usage(world: World, team: str, at: int | None = None) -> Four:
    return total(
        held.request
        for held in world.held.values()
        if held.team == team and held.critical and not _over(world, held, at)
    )


def free(world: World, at: int | None = None) -> Bound:
    used = total(held.request for held in world.held.values() if not _over(world, held, at))
    a, b, c, d = capacity(world)
    return (
        None if a is None else a - used[0],
        None if b is None else b - used[1],
        None if c is None else c - used[2],
        None if d is None else d - used[3],
    )


def _over(world: World, held: Held, at: int | None) -> bool:
    """Whether a run has ended at a later moment, at the latest. What is overdue does not count as ending."""
    return at is not None and held.until is not None and world.now < held.until <= at


def node_free(world: World, at: int | None = None) -> dict[str, Four]:
    """What each node has left. A run whose pod is not bound counts where it was likely to go."""
    assert world.nodes is not None
    left = dict(world.nodes)
    for held in world.held.values():
        if held.node in left and not _over(world, held, at):
            a, b = left[held.node], held.request
            left[held.node] = (0, a[1] - b[1], a[2] - b[2], a[3] - b[3])
    return left


def holds(left: Four, request: Four) -> bool:
    return all(not request[r] or request[r] <= left[r] for r in (1, 2, 3))


def roomy(world: World, request: Four, avoid: str | None = None, at: int | None = None) -> str | None:
    """The node with most room of those that can hold a request: most CPU, then memory, GPUs, then by name."""
    fitting = [
        (left[1:], node)
        for node, left in node_free(world, at).items()
        if node != avoid and holds(left, request)
    ]
    return max(fitting)[1] if fitting else None


def lack(world: World, request: Four, at: int | None = None) -> str | None:
    """What there is too little of, of the pool as a whole and then of every node."""
    short = above(request, free(world, at), request)
    if short is not None:
        return SHORTAGES[short]
    if world.nodes is not None and roomy(world, request, at=at) is None:
        return "NoNodeFits"
    return None

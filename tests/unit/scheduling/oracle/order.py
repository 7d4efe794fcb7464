"""Who waits in line, what can never start, which teams are known, and who of a class goes first (rule 2)."""

from __future__ import annotations

from fractions import Fraction

from tests.unit.scheduling.oracle.sums import above, capacity, holds, usage
from tests.unit.scheduling.oracle.world import SECOND, Job, Owed, Promise, World

Lines = dict[str, dict[int, list[Job]]]  # by team and class, the oldest first


def lines(world: World) -> Lines:
    found: Lines = {}
    for job in sorted(world.jobs.values(), key=lambda job: job.age):
        if shut_out(world, job) is None:
            found.setdefault(job.team, {}).setdefault(job.weight, []).append(job)
    return found


def known(world: World, line: Lines) -> set[str]:
    """The teams with a run that waits in line or holds, or whose last one ended within the window."""
    teams = set(line) | {held.team for held in world.held.values()}
    return teams | {
        team for team, ended in world.ended.items() if ended and ended + world.window * SECOND > world.now
    }


def in_line(line: Lines, promise: Promise) -> bool:
    """Whether the holder still waits, in the class in which it was promised."""
    return any(job.uid == promise.uid for classes in line.values() for job in classes.get(promise.weight, ()))


def shut_out(world: World, job: Job) -> str | None:
    """Why a run is not in line at all: the first that applies of the table."""
    if world.admitted is not None and job.team not in world.admitted:
        return "TeamMissing"
    if never_fits(world, job):
        return "NeverFits"
    if job.not_before > world.now:
        return "RetryBackoff"
    if world.closed.get(job.namespace, 0) > world.now:
        return "QuotaExceeded"
    return None


# -- what can never start --------------------------------------------------------------------------


def never_fits(world: World, job: Job) -> bool:
    owed = world.owed.get(job.team, Owed())
    bounds = [owed.limit, world.capacity if world.nodes is None else (world.capacity[0], None, None, None)]
    if job.critical:
        bounds.append(owed.critical_limit)
    return any(above(job.request, bound, job.request) is not None for bound in bounds)


def too_large(world: World, job: Job) -> bool:
    """Whether a run would not fit even if nothing else held anything."""
    if above(job.request, capacity(world), job.request) is not None:
        return True
    return no_node_ever(world, job)


def no_node_ever(world: World, job: Job) -> bool:
    """Whether no node could hold a run even if nothing else were there."""
    return world.nodes is not None and not any(holds(offer, job.request) for offer in world.nodes.values())


# -- rule 2 ----------------------------------------------------------------------------------------


def place(world: World, job: Job) -> tuple[Fraction, int, tuple[int, int, str]]:
    """Smaller goes first. A resource of which the pool has nothing has no share."""
    used = usage(world, job.team)
    shares = [Fraction(u, c) for u, c in zip(used, capacity(world), strict=True) if c]
    if not shares:
        shares = [Fraction(sum(held.team == job.team for held in world.held.values()))]
    weight = world.owed.get(job.team, Owed()).weight
    return (max(shares) / weight, world.served.get(job.team, 0), job.age)

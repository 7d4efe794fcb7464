"""The reservation, and who may start beside it or before it (rule 7)."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.scheduling.oracle.order import Lines, in_line, known, lines, too_large
from tests.unit.scheduling.oracle.rules import beyond_share, limit_stop, within_guarantee
from tests.unit.scheduling.oracle.sums import above, critical_usage, free, lack, plus, roomy, usage
from tests.unit.scheduling.oracle.world import GRACE, SECOND, Begin, Bound, Job, Owed, Promise, World

LEAST_START = 20


def latest_start(world: World, job: Job) -> tuple[int, str | None] | None:
    """S and the node it will be on: the first end by which the run fits; None when there is none."""
    for end in sorted({held.until for held in world.held.values() if held.until is not None}):
        if end > world.now and lack(world, job.request, end) is None:
            return end, roomy(world, job.request, at=end) if world.nodes is not None else None
    return None


def outlook(world: World, promise: Promise) -> tuple[int, str | None, Bound]:
    """S for all others, the node it is on, and what is free then.

    Where S cannot be told any more, or the holder fits and waits for a guarantee, the promise stands.
    """
    holder = world.jobs[promise.uid]
    found = latest_start(world, holder) if lack(world, holder.request) is not None else None
    if found is None:
        return promise.before, promise.node, free(world)
    return found[0], found[1], free(world, found[0])


def past_reservation(world: World, line: Lines, job: Job) -> Begin | None:
    """How a run that fits now starts; None when the reservation stops it."""
    usual = Begin(job.uid, world.start_timeout, None, False)
    promise = world.promise
    if promise is None or promise.uid == job.uid or job.weight < promise.weight:
        return usual
    holder = world.jobs[promise.uid]
    if job.team != holder.team and within_guarantee(world, job):
        return replace(usual, guaranteed=True)
    if not leaves_limits(world, job, holder):
        return None
    at, node, left = outlook(world, promise)
    if beside(world, line, job, holder, at, node, left):
        return replace(usual, avoid=node)
    decided = max(world.now, world.last_scheduled + 1)
    hole = (at - decided) // SECOND - job.timeout - GRACE
    if hole >= LEAST_START:
        return Begin(job.uid, min(hole, world.start_timeout), None, True)
    return None


def leaves_limits(world: World, job: Job, holder: Job) -> bool:
    """Whether a run of the holder's own team leaves it within its limits."""
    if job.team != holder.team:
        return True
    owed = world.owed.get(job.team, Owed())
    both = plus(job.request, holder.request)
    if above(plus(usage(world, job.team), both), owed.limit, holder.request) is not None:
        return False
    if not (job.critical and holder.critical):
        return True
    return above(plus(critical_usage(world, job.team), both), owed.critical_limit, holder.request) is None


def beside(world: World, line: Lines, job: Job, holder: Job, at: int, node: str | None, left: Bound) -> bool:
    """Whether a run fits at S beside the holder, on another node, its own team's within the share."""
    for there, asked, reserved in zip(left, job.request, holder.request, strict=True):
        if asked and there is not None and asked > there - reserved:
            return False
    if world.nodes is not None and roomy(world, job.request, avoid=node) is None:
        return False
    if job.team != holder.team or len(known(world, line)) <= 1:
        return True
    used = plus(usage(world, job.team, at), job.request)
    after = [None if there is None else there - asked for there, asked in zip(left, job.request, strict=True)]
    return not beyond_share(world, holder, used, (after[0], after[1], after[2], after[3]))


def still_reserved(world: World, line: Lines) -> Promise | None:
    """The reservation as it stands: gone with its holder, its class, its limit, or its chance."""
    promise = world.promise
    if promise is None or not in_line(line, promise):
        return None
    holder = world.jobs[promise.uid]
    if limit_stop(world, holder) is not None or too_large(world, holder):
        return None
    return promise


def told(world: World, was: Promise | None) -> Promise | None:
    """What the holder is told after a look: S as it is now, but never later than it was told before."""
    promise = still_reserved(world, lines(world))
    if promise is None or lack(world, world.jobs[promise.uid].request) is None:
        return promise
    found = latest_start(world, world.jobs[promise.uid])
    known = was is not None and (was.uid, was.weight) == (promise.uid, promise.weight)
    if found is None or (known and found[0] >= promise.before):
        return promise
    return replace(promise, before=found[0], node=found[1])

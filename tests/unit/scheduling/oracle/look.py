"""A look at the pool: what starts now, in order, and why everything else waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.unit.scheduling.oracle.order import Lines, in_line, lines, place, shut_out
from tests.unit.scheduling.oracle.reservation import latest_start, past_reservation, still_reserved, told
from tests.unit.scheduling.oracle.rules import stop
from tests.unit.scheduling.oracle.sums import lack, roomy
from tests.unit.scheduling.oracle.world import GRACE, SECOND, Begin, Held, Job, Promise, World


def decide(world: World) -> list[Begin]:
    """What starts now, in order. The world is changed: those runs hold, and the reservation is as after."""
    starts: list[Begin] = []
    decide_nothing(world)
    if not world.exists or world.on_hold:
        if world.promise is not None and not in_line(lines(world), world.promise):
            world.promise = None
        return starts
    was = world.promise
    while (begin := upcoming(world)) is not None:
        starts.append(begin)
        start(world, begin)
    world.promise = told(world, was)
    return starts


def decide_nothing(world: World) -> None:
    """A back-off that has passed stays passed, whatever the clock does."""
    for job in list(world.jobs.values()):
        if 0 < job.not_before <= world.now:
            world.jobs[job.uid] = replace(job, not_before=0)
    world.closed = {name: until for name, until in world.closed.items() if until > world.now}


def upcoming(world: World) -> Begin | None:
    """The first head that may start, the most urgent first; the reservation changes hands on the way."""
    line = lines(world)
    world.promise = still_reserved(world, line)
    parked: set[str] = set()
    for weight in sorted({weight for classes in line.values() for weight in classes}):
        newly: set[str] = set()
        for job, holder in _candidates(world, line, weight):
            if job.team in parked and not holder:
                continue
            reason = stop(world, line, job, holder=holder)
            if reason is not None:
                if reason != "CriticalLimit":
                    newly.add(job.team)
                continue
            if lack(world, job.request) is None:
                begin = past_reservation(world, line, job)
                if begin is not None:
                    return begin
            elif world.promise is None or world.promise.weight > weight:
                found = latest_start(world, job)
                if found is not None:
                    world.promise = Promise(job.uid, weight, *found)
        parked |= newly
    return None


def _candidates(world: World, line: Lines, weight: int) -> list[tuple[Job, bool]]:
    """The heads of a class in order, the holder of the reservation before all of them."""
    heads = sorted(
        (classes[weight][0] for classes in line.values() if weight in classes),
        key=lambda job: place(world, job),
    )
    promise = world.promise
    if promise is None or promise.weight != weight:
        return [(job, False) for job in heads]
    return [
        (world.jobs[promise.uid], True),
        *((job, False) for job in heads if job.uid != promise.uid),
    ]


def start(world: World, begin: Begin) -> None:
    job = world.jobs.pop(begin.uid)
    world.last_scheduled = scheduled = max(world.now, world.last_scheduled + 1)
    until = scheduled + (begin.start_seconds + job.timeout + GRACE) * SECOND
    node = roomy(world, job.request, avoid=begin.avoid) if world.nodes is not None else None
    world.held[job.uid] = Held(job.uid, job.team, job.critical, job.request, until, node, bound=False)
    world.served[job.team] = scheduled
    if world.promise is not None and world.promise.uid == job.uid:
        world.promise = None


# -- why it waits ----------------------------------------------------------------------------------


def reason(world: World, uid: str) -> str | None:
    """Why a run waits, the first of the table that applies; None when nothing stops it."""
    if not world.exists:
        return "PoolMissing"
    if world.on_hold:
        return "PoolOnHold"
    job = world.jobs[uid]
    out = shut_out(world, job)
    if out is not None:
        return out
    line = lines(world)
    holder = world.promise is not None and world.promise.uid == uid
    if not holder and behind_own(world, line, job):
        return "BehindOwn"
    why = stop(world, line, job, holder=holder) or lack(world, job.request)
    if why is not None:
        return why
    return "BehindReservation" if past_reservation(world, line, job) is None else None


def behind_own(world: World, line: Lines, job: Job) -> bool:
    """Whether an older run of its class or a parked one of a more urgent class goes before it."""
    own = line[job.team]
    if own[job.weight][0].uid != job.uid:
        return True
    for weight, jobs in own.items():
        if weight < job.weight:
            holder = world.promise is not None and world.promise.uid == jobs[0].uid
            if stop(world, line, jobs[0], holder=holder) not in (None, "CriticalLimit"):
                return True
    return False


def reasons(world: World) -> Mapping[str, str | None]:
    return {uid: reason(world, uid) for uid in world.jobs}

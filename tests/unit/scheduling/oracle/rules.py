"""What stops the head of a line: limits, guarantees and shares (rules 3 to 5)."""

from __future__ import annotations

from tests.unit.scheduling.oracle.order import Lines, known, no_node_ever
from tests.unit.scheduling.oracle.sums import above, capacity, critical_usage, free, plus, total, usage
from tests.unit.scheduling.oracle.world import ZERO, Bound, Four, Job, Owed, World


def stop(world: World, line: Lines, job: Job, *, holder: bool = False) -> str | None:
    """The first of rules 3 to 5 that stops a head. Its share does not stop the holder of the reservation."""
    reason = limit_stop(world, job)
    if reason is not None:
        return reason
    if guarantee_stop(world, line, job):
        return "GuaranteedToOthers"
    return "TeamShare" if not holder and share_stop(world, line, job) else None


def limit_stop(world: World, job: Job) -> str | None:
    owed = world.owed.get(job.team, Owed())
    if above(plus(usage(world, job.team), job.request), owed.limit, job.request) is not None:
        return "TeamLimit"
    if job.critical:
        held = plus(critical_usage(world, job.team), job.request)
        if above(held, owed.critical_limit, job.request) is not None:
            return "CriticalLimit"
    return None


def guaranteed(world: World, team: str) -> Four:
    """What a team is guaranteed of each finite resource, scaled where all guarantees exceed C."""
    own = world.owed.get(team, Owed()).guaranteed
    scaled = []
    for r, c in enumerate(capacity(world)):
        everyone = sum(owed.guaranteed[r] for owed in world.owed.values())
        if c is None:
            scaled.append(0)
        elif everyone > c:
            scaled.append(own[r] * max(c, 0) // everyone)
        else:
            scaled.append(own[r])
    return (scaled[0], scaled[1], scaled[2], scaled[3])


def promised(world: World, team: str) -> Bound:
    """The guarantee as a bound: no resource without a C is bound by it."""
    own, have = guaranteed(world, team), capacity(world)
    return (
        None if have[0] is None else own[0],
        None if have[1] is None else own[1],
        None if have[2] is None else own[2],
        None if have[3] is None else own[3],
    )


def kept(world: World, line: Lines, team: str) -> Four:
    """What is kept for a team: the waiting runs that it could start within its guarantee."""
    if not any(guaranteed(world, team)):
        return ZERO
    bound = promised(world, team)
    ceiling = world.owed.get(team, Owed()).critical_limit
    held, critical = usage(world, team), critical_usage(world, team)
    counted = ZERO
    for weight in sorted(line.get(team, {})):
        for job in line[team][weight]:
            if job.critical and above(plus(critical, job.request), ceiling, job.request) is not None:
                break
            if no_node_ever(world, job):
                break
            if above(plus(plus(held, counted), job.request), bound, job.request) is not None:
                return counted
            counted = plus(counted, job.request)
            if job.critical:
                critical = plus(critical, job.request)
    return counted


def within_guarantee(world: World, job: Job) -> bool:
    """Whether a run stays within its own team's guarantee in every finite resource it uses."""
    if not any(guaranteed(world, job.team)):
        return False
    own = plus(usage(world, job.team), job.request)
    return above(own, promised(world, job.team), job.request) is None


def guarantee_stop(world: World, line: Lines, job: Job) -> bool:
    if within_guarantee(world, job):
        return False
    others = total([kept(world, line, team) for team in line if team != job.team])
    left = free(world)
    for asked, there, keep in zip(job.request, left, others, strict=True):
        if asked and there is not None and keep and there - asked < keep:
            return True
    return False


def share_stop(world: World, line: Lines, job: Job) -> bool:
    if len(known(world, line)) <= 1:
        return False
    return beyond_share(world, job, usage(world, job.team), free(world))


def beyond_share(world: World, job: Job, used: Four, left: Bound) -> bool:
    own = guaranteed(world, job.team)
    for r, c in enumerate(capacity(world)):
        there, asked = left[r], job.request[r]
        if c is None or there is None or not asked or not used[r]:
            continue
        share = max(up(world.share, c), own[r])
        headroom = max(up(world.headroom, c), 1 if r == 0 else 0)
        if used[r] + asked > share and headroom and there - asked < headroom:
            return True
    return False


def up(percent: int, amount: int) -> int:
    return -((-percent * amount) // 100)

"""The situations that the random histories must reach; one that is never reached is a blind generator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from agentjobs.scheduling.model import WaitReason
from tests.unit.scheduling.oracle import look, order, reservation, rules, sums
from tests.unit.scheduling.oracle.world import Begin, Job, Owed, Promise, World

REASONS = frozenset(f"reason {reason.value}" for reason in WaitReason if reason is not WaitReason.HELD_BACK)
WANTED = REASONS | {
    "preview of what would start",
    "preview of what would wait",
    "two teams stopped at their share",
    "three teams stopped at their share",
    "start in a pool of 1 slot",
    "start in a pool of 2 slots",
    "start in a pool of 3 slots",
    "start in a pool without any bound",
    "a lone team holds more than its share",
    "a newcomer meets a team beyond its share",
    "beyond the share while the headroom stays free",
    "first use of a resource in the headroom",
    "guarantee stops a more urgent run",
    "start within the own guarantee while others' is kept",
    "guarantees beyond C",
    "kept for two teams",
    "criticalLimit ends the count of a guarantee",
    "less urgent start past a parked run",
    "own less urgent start past criticalLimit",
    "a start lets a more urgent run start",
    "GPU run holds the reservation",
    "take-over by a more urgent class",
    "reservation on a node",
    "holder starts",
    "holder starts beyond its share",
    "holder waits for what is guaranteed to others",
    "holder is not the oldest of its line",
    "holder stopped by a limit",
    "promise moved earlier",
    "promise passed",
    "guaranteed start past the reservation",
    "hole with the whole start time",
    "hole with less start time",
    "hole filled by the holder's own team",
    "beside the reservation",
    "beside on another node",
    "beside by the holder's own team",
    "share at S denies a run of the holder's own team",
    "limits deny a run of the holder's own team",
    "holder grown too large for the pool",
    "more urgent start past the reservation",
    "several starts in one look",
    "small run starts before one that does not fit",
    "fragmented nodes: enough in all, on none",
    "less than what is held",
    "no capacity at all",
    "an overdue run",
    "a run whose end nobody knows",
    "equal shares, the longest not served first",
    "clock went back",
    "retry with back-off",
    "retry that returned at once",
    "pod bound elsewhere",
    "restart while a promise stood",
}

RARE = {
    "three teams stopped at their share",
    "beside by the holder's own team",
    "guaranteed start past the reservation",
    "holder starts beyond its share",
    "pod bound elsewhere",
    "a start lets a more urgent run start",
    "criticalLimit ends the count of a guarantee",
    "share at S denies a run of the holder's own team",
    "limits deny a run of the holder's own team",
    "holder stopped by a limit",
    "holder grown too large for the pool",
    "start within the own guarantee while others' is kept",
    "kept for two teams",
    "hole filled by the holder's own team",
    "hole with less start time",
    "hole with the whole start time",
    "own less urgent start past criticalLimit",
}
COMMON = WANTED - RARE  # reached by every hundred histories; the rare ones by thousands


def note(
    covered: Counter[str],
    before: World,
    after: World,
    begins: list[Begin],
    reasons: Mapping[str, str | None],
) -> None:
    """Count what one look showed."""
    covered.update(f"reason {reason}" for reason in set(reasons.values()))
    covered.update(_of_state(before, after, reasons))
    covered.update(_of_reservation(before, after, begins, reasons))
    if begins:
        covered.update(_of_starts(before, begins))


def _of_state(before: World, after: World, reasons: Mapping[str, str | None]) -> Iterator[str]:
    line = order.lines(after)
    known = order.known(after, line)
    at_share = {after.jobs[uid].team for uid, reason in reasons.items() if reason == "TeamShare"}
    if len(at_share) > 1:
        yield "two teams stopped at their share"
    if len(at_share) > 2:
        yield "three teams stopped at their share"
    beyond = {team for team in known if _beyond(after, team)}
    if beyond and len(known) == 1:
        yield "a lone team holds more than its share"
    if beyond and len(known) > 1 and any(team not in {h.team for h in after.held.values()} for team in line):
        yield "a newcomer meets a team beyond its share"
    kept = [team for team in line if any(rules.kept(after, line, team))]
    if len(kept) > 1:
        yield "kept for two teams"
    if any(_ends_count(after, line, team) for team in kept):
        yield "criticalLimit ends the count of a guarantee"
    have, left = sums.capacity(after), sums.free(after)
    if any(
        c is not None and sum(owed.guaranteed[r] for owed in after.owed.values()) > c
        for r, c in enumerate(have)
    ):
        yield "guarantees beyond C"
    if any(there is not None and there < 0 for there in left):
        yield "less than what is held"
    if have[0] == 0:
        yield "no capacity at all"
    if any(held.until is None for held in after.held.values()):
        yield "a run whose end nobody knows"
    if any(held.until is not None and held.until <= after.now for held in after.held.values()):
        yield "an overdue run"
    if "NoNodeFits" in reasons.values():
        yield "fragmented nodes: enough in all, on none"
    for uid, reason in reasons.items():
        if reason == "GuaranteedToOthers":
            job = after.jobs[uid]
            if any(team != job.team and min(line[team]) > job.weight for team in kept):
                yield "guarantee stops a more urgent run"


def _ends_count(world: World, line: order.Lines, team: str) -> bool:
    ceiling = world.owed.get(team, Owed()).critical_limit
    held = sums.critical_usage(world, team)
    return any(
        sums.above(sums.plus(held, job.request), ceiling, job.request) is not None
        for jobs in line[team].values()
        for job in jobs
        if job.critical
    )


def _beyond(world: World, team: str) -> bool:
    used = sums.usage(world, team)
    return any(
        c is not None and c > 0 and used[r] > rules.up(world.share, c)
        for r, c in enumerate(sums.capacity(world))
    )


def _of_reservation(
    before: World, after: World, begins: list[Begin], reasons: Mapping[str, str | None]
) -> Iterator[str]:
    was, now = before.promise, after.promise
    started = {begin.uid for begin in begins}
    if was is not None:
        if was.uid in started:
            yield "holder starts"
        elif was.uid in after.jobs and (now is None or now.uid != was.uid):
            if reasons[was.uid] in ("TeamLimit", "CriticalLimit"):
                yield "holder stopped by a limit"
            elif order.too_large(after, after.jobs[was.uid]):
                yield "holder grown too large for the pool"
            if now is not None and now.weight < was.weight:
                yield "take-over by a more urgent class"
        elif now is not None and now.before < was.before:
            yield "promise moved earlier"
    if now is None:
        return
    holder = after.jobs[now.uid]
    if holder.request[3]:
        yield "GPU run holds the reservation"
    if now.node is not None:
        yield "reservation on a node"
    if now.before < after.now:
        yield "promise passed"
    if after.exists and not after.on_hold:
        if reasons[now.uid] == "GuaranteedToOthers":
            yield "holder waits for what is guaranteed to others"
        if order.lines(after)[holder.team][holder.weight][0].uid != holder.uid:
            yield "holder is not the oldest of its line"
        yield from _denied(after, now, reasons)


def _denied(after: World, now: Promise, reasons: Mapping[str, str | None]) -> Iterator[str]:
    holder, line = after.jobs[now.uid], order.lines(after)
    for uid, reason in reasons.items():
        job = after.jobs[uid]
        if reason == "BehindReservation" and job.team == holder.team:
            if reservation.leaves_limits(after, job, holder):
                other = replace(job, team="nobody")
                if reservation.past_reservation(after, line, other) is not None:
                    yield "share at S denies a run of the holder's own team"
            else:
                yield "limits deny a run of the holder's own team"


def _of_starts(before: World, begins: list[Begin]) -> Iterator[str]:
    world = before.copy()
    look.decide_nothing(world)
    if len(begins) > 1:
        yield "several starts in one look"
    last = -1
    for begin in begins:
        look.upcoming(world)  # the reservation as it is at this start
        line, job = order.lines(world), world.jobs[begin.uid]
        slots = sums.capacity(world)[0]
        if slots in (1, 2, 3):
            yield f"start in a pool of {slots} slot{'s' if slots > 1 else ''}"
        if not any(c is not None for c in sums.capacity(world)):
            yield "start in a pool without any bound"
        if job.weight < last:
            yield "a start lets a more urgent run start"
        last = job.weight
        yield from _of_share(world, line, job)
        yield from _of_promise(world, line, job, begin)
        for heads in line.values():
            for weight, jobs in heads.items():
                head = jobs[0]
                if weight > job.weight or head.uid == job.uid:
                    continue
                why = rules.stop(world, line, head)
                if why == "CriticalLimit" and head.team == job.team:
                    yield "own less urgent start past criticalLimit"
                elif why is not None and weight < job.weight:
                    yield "less urgent start past a parked run"
                elif why is None and sums.lack(world, head.request) and job.request < head.request:
                    yield "small run starts before one that does not fit"
                elif weight == job.weight and order.place(world, head)[0] == order.place(world, job)[0]:
                    yield "equal shares, the longest not served first"
        look.start(world, begin)


def _of_share(world: World, line: order.Lines, job: Job) -> Iterator[str]:
    used, left = sums.usage(world, job.team), sums.free(world)
    if len(order.known(world, line)) > 1:
        for r, c in enumerate(sums.capacity(world)):
            there = left[r]
            if c is None or there is None or not job.request[r]:
                continue
            headroom = rules.up(world.headroom, c)
            if used[r] and used[r] + job.request[r] > max(
                rules.up(world.share, c), rules.guaranteed(world, job.team)[r]
            ):
                yield "beyond the share while the headroom stays free"
            if not used[r] and headroom and there - job.request[r] < headroom:
                yield "first use of a resource in the headroom"
    bound = rules.promised(world, job.team)
    within = sums.above(sums.plus(used, job.request), bound, job.request) is None
    if within and any(any(rules.kept(world, line, team)) for team in line if team != job.team):
        yield "start within the own guarantee while others' is kept"


def _of_promise(world: World, line: order.Lines, job: Job, begin: Begin) -> Iterator[str]:
    promise = world.promise
    if promise is None:
        return
    if promise.uid == job.uid:
        if rules.share_stop(world, line, job):
            yield "holder starts beyond its share"
        return
    if job.weight < promise.weight:
        yield "more urgent start past the reservation"
        return
    own = job.team == world.jobs[promise.uid].team
    if begin.guaranteed:
        yield "guaranteed start past the reservation"
        return
    if not begin.backfill:
        yield "beside the reservation"
        if begin.avoid is not None:
            yield "beside on another node"
        if own:
            yield "beside by the holder's own team"
        return
    whole = begin.start_seconds == world.start_timeout
    yield "hole with the whole start time" if whole else "hole with less start time"
    if own:
        yield "hole filled by the holder's own team"

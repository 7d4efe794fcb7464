"""The contract of docs/scheduling.md by brute force: every rule is evaluated anew from what is true now.

It shares nothing with the core, not even its types: amounts are tuples of slots, CPU, memory and GPUs, a
bound of None is no bound. Times are microseconds, durations seconds. Simple before fast, and exact: shares
are fractions. Whoever doubts the core reads this beside the contract.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

Four = tuple[int, int, int, int]
Bound = tuple[int | None, int | None, int | None, int | None]
NONE: Bound = (None, None, None, None)
ZERO: Four = (0, 0, 0, 0)
SECOND = 1_000_000
GRACE = 30
LEAST_START = 20
SHORTAGES = ("NoFreeSlot", "InsufficientCPU", "InsufficientMemory", "InsufficientGPU")


@dataclass(frozen=True)
class Owed:
    """What one team is owed."""

    weight: int = 1
    guaranteed: Four = ZERO
    limit: Bound = NONE
    critical_limit: Bound = NONE


@dataclass(frozen=True)
class Job:
    """A run that waits."""

    uid: str
    namespace: str
    team: str
    weight: int
    critical: bool
    created: int
    version: int
    request: Four
    timeout: int
    not_before: int = 0

    @property
    def age(self) -> tuple[int, int, str]:
        return (self.created, self.version, self.uid)


@dataclass(frozen=True)
class Held:
    """A run that holds; `bound` says whether its pod is on its node, or only likely to go there."""

    uid: str
    team: str
    critical: bool
    request: Four
    until: int | None
    node: str | None
    bound: bool = True


@dataclass(frozen=True)
class Promise:
    """The pool's one reservation."""

    uid: str
    weight: int
    before: int
    node: str | None


@dataclass(frozen=True)
class Begin:
    """A run that starts, and how."""

    uid: str
    start_seconds: int
    avoid: str | None
    backfill: bool
    guaranteed: bool = False


@dataclass
class World:
    """Everything that is true now."""

    now: int = 0
    exists: bool = True
    on_hold: bool = False
    capacity: Bound = NONE
    nodes: dict[str, Four] | None = None
    share: int = 25
    headroom: int = 10
    window: int = 3600
    start_timeout: int = 300
    admitted: frozenset[str] | None = None
    owed: dict[str, Owed] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)  # by team: when its last run ended
    served: dict[str, int] = field(default_factory=dict)  # by team: when its newest run was scheduled
    last_scheduled: int = 0
    closed: dict[str, int] = field(default_factory=dict)  # by namespace: until when
    promise: Promise | None = None

    def copy(self) -> World:
        return replace(
            self,
            jobs=dict(self.jobs),
            held=dict(self.held),
            ended=dict(self.ended),
            served=dict(self.served),
            closed=dict(self.closed),
        )


# -- sums ------------------------------------------------------------------------------------------


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


# -- who waits in line -----------------------------------------------------------------------------


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


def never_fits(world: World, job: Job) -> bool:
    owed = world.owed.get(job.team, Owed())
    bounds = [owed.limit, world.capacity if world.nodes is None else (world.capacity[0], None, None, None)]
    if job.critical:
        bounds.append(owed.critical_limit)
    return any(above(job.request, bound, job.request) is not None for bound in bounds)


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


# -- rule 2 ----------------------------------------------------------------------------------------


def place(world: World, job: Job) -> tuple[Fraction, int, tuple[int, int, str]]:
    """Smaller goes first. A resource of which the pool has nothing has no share."""
    used = usage(world, job.team)
    shares = [Fraction(u, c) for u, c in zip(used, capacity(world), strict=True) if c]
    if not shares:
        shares = [Fraction(sum(held.team == job.team for held in world.held.values()))]
    weight = world.owed.get(job.team, Owed()).weight
    return (max(shares) / weight, world.served.get(job.team, 0), job.age)


# -- rules 3 to 5 ----------------------------------------------------------------------------------


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


def stop(world: World, line: Lines, job: Job, *, holder: bool = False) -> str | None:
    """The first of rules 3 to 5 that stops a head. Its share does not stop the holder of the reservation."""
    reason = limit_stop(world, job)
    if reason is not None:
        return reason
    if guarantee_stop(world, line, job):
        return "GuaranteedToOthers"
    return "TeamShare" if not holder and share_stop(world, line, job) else None


# -- rule 7 ----------------------------------------------------------------------------------------


def lack(world: World, request: Four, at: int | None = None) -> str | None:
    """What there is too little of, of the pool as a whole and then of every node."""
    short = above(request, free(world, at), request)
    if short is not None:
        return SHORTAGES[short]
    if world.nodes is not None and roomy(world, request, at=at) is None:
        return "NoNodeFits"
    return None


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


def too_large(world: World, job: Job) -> bool:
    """Whether a run would not fit even if nothing else held anything."""
    if above(job.request, capacity(world), job.request) is not None:
        return True
    return no_node_ever(world, job)


def no_node_ever(world: World, job: Job) -> bool:
    """Whether no node could hold a run even if nothing else were there."""
    return world.nodes is not None and not any(holds(offer, job.request) for offer in world.nodes.values())


def in_line(line: Lines, promise: Promise) -> bool:
    """Whether the holder still waits, in the class in which it was promised."""
    return any(job.uid == promise.uid for classes in line.values() for job in classes.get(promise.weight, ()))


# -- the look --------------------------------------------------------------------------------------


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

"""What docs/scheduling.md says holds always, each as a check of its own, numbered as there.

They look at what was decided, not at how; only the second needs the oracle's opinion of who could start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import ceil

from agentjobs.scheduling.model import LEAST_TIMEOUT_SECONDS, Plan
from agentjobs.scheduling.pool import Pool
from tests.unit.scheduling.bridge import new_pool, to_promise
from tests.unit.scheduling.oracle import look, order, rules, sums
from tests.unit.scheduling.oracle.world import ZERO, Begin, Four, Held, Job, Owed, World


def check_look(before: World, after: World, plan: Plan, pool: Pool) -> bool:
    """Check one look at a pool: the facts before it, what it decided, the facts after it.

    Returns whether a run started that its team's guarantee let pass the reservation.
    """
    books_add_up(after, pool)
    if after.exists and not after.on_hold:
        starts_one_by_one(before, plan)
        at_rest(after, pool)
    return any(start.guaranteed for start in plan.starts)


def books_add_up(world: World, pool: Pool) -> None:
    """1: what teams hold and what is free add up to C; books rebuilt from the objects equal those kept."""
    books, fresh = pool.books, new_pool(world).books
    for held, left, have in zip(books.held, books.free, books.capacity, strict=True):
        assert have is None or (left is not None and held + left == have), "invariant 1: U + free = C"
    assert tuple(books.held) == sums.total([held.request for held in world.held.values()]), "invariant 1"
    for team in {*books.teams, *fresh.teams}:
        kept, rebuilt = books.team(team), fresh.team(team)
        assert (kept.held, kept.held_critical, kept.live) == (
            rebuilt.held,
            rebuilt.held_critical,
            rebuilt.live,
        ), f"invariant 1: books of {team}"
        if not world.exists:
            continue  # whether a run never fits is known when the pool is
        assert {weight: list(line) for weight, line in kept.lines.items()} == {
            weight: list(line) for weight, line in rebuilt.lines.items()
        }, f"invariant 1: lines of {team}"
    assert books.ends == sorted(
        (held.until, held.uid) for held in world.held.values() if held.until is not None
    ), "invariant 1: ends"


def starts_one_by_one(before: World, plan: Plan) -> None:
    """Replay a plan start by start, with the checks that speak of the moment of a start."""
    world = before.copy()
    look.decide_nothing(world)
    last = before.last_scheduled
    for start in plan.starts:
        job = world.jobs[start.run.uid]
        assert start.scheduled > last, "the order of starts can be read from their times"
        assert start.scheduled == max(before.now, last + 1)
        last = start.scheduled
        within_bounds(world, job)
        no_more_urgent_could(world, job)
        holder = before.promise is not None and before.promise.uid == job.uid
        if not holder:
            headroom_stays(world, job)
        begin = Begin(job.uid, start.start_seconds, start.avoid_node, start.backfill)
        look.start(world, begin)


def within_bounds(world: World, job: Job) -> None:
    """Capacity and limits hold at every start, whatever else is said."""
    assert sums.above(job.request, sums.free(world), job.request) is None, "beyond what is free"
    owed = world.owed.get(job.team, Owed())
    held = sums.plus(sums.usage(world, job.team), job.request)
    assert sums.above(held, owed.limit, job.request) is None, "beyond the limit"


def no_more_urgent_could(world: World, job: Job) -> None:
    """2: no more urgent head exists that could have started."""
    first = look.upcoming(world)  # which also says who holds the reservation by now
    assert first is not None
    assert world.jobs[first.uid].weight >= job.weight, (
        f"invariant 2: {first.uid} could start before {job.uid}"
    )


def headroom_stays(world: World, job: Job) -> None:
    """3: while others are known, no start takes a team above F and leaves less than H free."""
    line = order.lines(world)
    if len(order.known(world, line)) < 2:
        return
    have, free, used = sums.capacity(world), sums.free(world), sums.usage(world, job.team)
    own = rules.guaranteed(world, job.team)
    for index, asked in enumerate(job.request):
        there, left = have[index], free[index]
        if not asked or not used[index] or there is None or left is None:
            continue
        share = max(ceil(world.share * there / 100), own[index])
        headroom = max(ceil(world.headroom * there / 100), int(index == 0))
        assert used[index] + asked <= share or left - asked >= headroom, f"invariant 3: {job.uid}"


def at_rest(world: World, pool: Pool) -> None:
    """6: at rest every run has a reason, and asking again gives the same."""
    first = {uid: pool.why(uid, world.now) for uid in world.jobs}
    assert all(wait is not None and wait.message for wait in first.values()), "invariant 6"
    again = pool.decide(world.now)
    assert again.starts == (), "invariant 6: a second look starts nothing"
    assert to_promise(again.reservation) == world.promise, "invariant 6"
    assert {uid: pool.why(uid, world.now) for uid in world.jobs} == first, "invariant 6"
    for uid, wait in first.items():
        if wait is not None and wait.hole_seconds is not None:
            _hole_is_true(world, pool, uid, wait.hole_seconds)


def _hole_is_true(world: World, pool: Pool, uid: str, longest: int) -> None:
    """With the timeout that it is told of a run would start now, and with a second more it would not."""
    run = pool.books.waiting[uid]
    assert run.timeout_seconds > longest >= LEAST_TIMEOUT_SECONDS, f"a false hole: {uid}"
    for seconds in (longest, longest + 1):
        pool.wait(run._replace(timeout_seconds=seconds))
        starts = pool.why(uid, world.now) is None
        assert starts == (seconds == longest), f"a false hole: {uid}, {seconds} s"
    pool.wait(run)


class Promises:
    """4: a promise is broken only by a cause that is named, and the pool counts it under one of those."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, set[str]]] = {}
        self._counted: Counter[str] = Counter()

    def restarted(self, world: World) -> None:
        """A new pool counts from nothing; it knows of the promise that stands, and of the outage."""
        self._counted = Counter()
        self._open = {}
        if world.promise is not None:
            self._open[world.promise.uid] = (world.promise.before, {"Outage"})

    def disturb(self, cause: str, uids: Iterable[str] | None = None) -> None:
        for uid in self._open if uids is None else uids:
            if uid in self._open:
                self._open[uid][1].add(cause)

    def drop(self, uid: str) -> None:
        """Nothing is owed any more to a run that was withdrawn or changed its class."""
        self._open.pop(uid, None)

    def check(self, before: World, after: World, plan: Plan, pool: Pool, *, demanded: bool) -> None:
        if any(held.until is not None and held.until < after.now for held in after.held.values()):
            self.disturb("LostCapacity")  # a run holds on beyond its latest end
        urgent = [start.run.weight for start in plan.starts]
        if after.promise is not None:
            urgent.append(after.promise.weight)
        for uid, (_, causes) in self._open.items():
            if urgent and uid in before.jobs and min(urgent) < before.jobs[uid].weight:
                causes.add("MoreUrgentClass")
        self._guarantee_demand(after, demanded)
        for by, causes in self._open.values():
            assert after.now <= by or causes, f"invariant 4: a start was promised by {by}, it is {after.now}"
        self._count(after, {start.run.uid for start in plan.starts}, pool)
        if after.promise is not None:
            by, causes = self._open.get(after.promise.uid, (after.promise.before, set()))
            assert after.promise.before <= by or causes, "invariant 4: a promise moved later"
            self._open[after.promise.uid] = (min(by, after.promise.before), causes)

    def _count(self, world: World, started: set[str], pool: Pool) -> None:
        """Compare what the pool counted at this look with the promises that were settled."""
        counted = pool.promises.outcomes - self._counted
        self._counted = Counter(pool.promises.outcomes)
        kept, broken = 0, set[str]()
        for uid in started & self._open.keys():
            by, causes = self._open.pop(uid)
            if world.now <= by:
                kept += 1
            else:
                broken |= causes
        assert counted["Kept"] <= kept, "invariant 4: a promise is called kept that was not"
        assert counted.keys() - {"Kept"} <= broken, f"invariant 4: {counted}, but causes were {broken}"

    def _guarantee_demand(self, world: World, demanded: bool) -> None:
        """A holder that has room waits for what is kept for others, or they took it before it."""
        line = order.lines(world)
        for uid, (_, causes) in self._open.items():
            if demanded or (uid in world.jobs and rules.guarantee_stop(world, line, world.jobs[uid])):
                causes.add("GuaranteeDemand")


class Guarantees:
    """5: what is kept for a team is startable by the latest end of what ran when it asked."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[Four, int | None]] = {}

    def forget(self) -> None:
        """What is guaranteed, or what there is, changed: all ask anew."""
        self._asked = {}

    def check(self, before: World, after: World) -> None:
        line = order.lines(after)
        kept = {team: rules.kept(after, line, team) for team in line}
        for team in list(self._asked):
            if not any(kept.get(team, ZERO)):
                del self._asked[team]
        own = {held.team for uid, held in after.held.items() if uid not in before.held}
        for team, amounts in kept.items():
            then = self._asked.get(team)
            grew = then is None or any(now > was for now, was in zip(amounts, then[0], strict=True))
            if any(amounts) and (grew or team in own):
                self._asked[team] = (amounts, latest_end(after.held.values(), after.now))
            elif then is not None and any(amounts):
                self._asked[team] = (amounts, then[1])
        overdue = any(held.until is None or held.until <= after.now for held in after.held.values())
        due = [by for _, by in self._asked.values()]
        if overdue or not due or not all(by is not None and by < after.now for by in due):
            return
        needed = sums.total(list(kept.values()))
        for amount, left in zip(needed, sums.free(after), strict=True):
            assert left is None or not amount or left >= amount, f"invariant 5: kept {needed}, not free"


def latest_end(held: Iterable[Held], now: int) -> int | None:
    """When all of these have ended; None when that cannot be told."""
    ends = [one.until for one in held]
    known = [end for end in ends if end is not None and end > now]
    return max(known, default=now) if len(known) == len(ends) else None

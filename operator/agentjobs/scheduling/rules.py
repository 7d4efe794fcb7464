"""The rules that stop a run, each a function of a few numbers: limits (3), share (4), guarantee (5).

They are numbered as in docs/scheduling.md. A resource that a run does not use never stops it, and a
resource without a finite capacity is left out of account.
"""

from __future__ import annotations

from math import lcm
from operator import mul

from agentjobs.scheduling.books import Books, Team
from agentjobs.scheduling.model import PoolSettings, Run, Wait, WaitReason
from agentjobs.scheduling.resources import NO_BOUNDS, NOTHING, Amounts, Bounds, ceil_percent, short

UNITS = {
    "slots": "slots",
    "cpu_millicores": "millicores of CPU",
    "memory_mb": "MiB of memory",
    "gpu_count": "GPUs",
}
_ONE = {**UNITS, "slots": "slot", "cpu_millicores": "millicore of CPU", "gpu_count": "GPU"}
_BITS = (1, 2, 4, 8)  # of the resources in a mask
_WEIGHT_LIMIT = 1000  # of an AgentTeam


class Standing:
    """What the pool's settings mean in numbers; made anew when they or the capacity change.

    Attributes:
        share: what any team may always hold; None where there is no capacity, or a capacity without end.
        headroom: what a team that goes beyond its share must leave free; 0 without a finite capacity.
        guaranteed: by team, scaled down where all guarantees together are more than there is.
    """

    def __init__(self, settings: PoolSettings, capacity: Bounds) -> None:
        self.share = Bounds(*(ceil_percent(settings.share_percent, c) if c else None for c in capacity))
        headroom = [0 if c is None else ceil_percent(settings.headroom_percent, c) for c in capacity]
        if capacity.slots is not None:
            headroom[0] = max(1, headroom[0])
        self.headroom = Amounts(*headroom)
        self.guaranteed = _scaled(settings, capacity)
        self._tops = {team: _at_least(self.share, owed) for team, owed in self.guaranteed.items()}
        self._common = lcm(*(c for c in capacity if c))
        self._factors = [self._common // c if c else 0 for c in capacity]
        self._finite = any(capacity)

    def dominant_share(self, team: Team) -> int:
        """Return the team's dominant share divided by its weight, as an integer that orders exactly (rule 2).

        The share is a fraction with the common denominator L of all capacities; two different fractions
        a/(L·v) and b/(L·w) differ by at least 1/(L·v·w), so for weights up to 1,000 the floor of
        1,000,000·a/v orders them as they are, and equal ones are equal. Without a finite capacity the
        share is the number of runs.
        """
        numerator = max(map(mul, team.held, self._factors)) if self._finite else team.live
        return numerator * _WEIGHT_LIMIT**2 // team.settings.weight

    def thousandths(self, held: Amounts) -> int | None:
        """Return the largest part of any resource that a team holds; None without a finite capacity."""
        return max(map(mul, held, self._factors)) * 1000 // self._common if self._finite else None

    def top(self, team: str) -> Bounds:
        """Return F of rule 4: the pool's share, or what the team is guaranteed where that is more."""
        return self._tops.get(team, self.share)


def _at_least(share: Bounds, owed: Amounts) -> Bounds:
    return Bounds(*(None if s is None else max(s, o) for s, o in zip(share, owed, strict=True)))


def _scaled(settings: PoolSettings, capacity: Bounds) -> dict[str, Amounts]:
    named = {team: s.guaranteed for team, s in settings.teams.items() if s.guaranteed != NOTHING}
    sums = [sum(owed[index] for owed in named.values()) for index in range(4)]
    scaled = {
        team: Amounts(
            *(
                0 if c is None else o if all_owed <= c else o * c // all_owed
                for o, c, all_owed in zip(owed, capacity, sums, strict=True)
            )
        )
        for team, owed in named.items()
    }
    return {team: owed for team, owed in scaled.items() if owed != NOTHING}


# -- rule 3: limits ----------------------------------------------------------------------------------


def limited(team: Team, weight: int) -> bool:
    """Whether a limit stops a team's head of a class, or parks it with a more urgent one (rule 6).

    A criticalLimit parks critical runs alone.
    """
    settings = team.settings
    if settings.limit == NO_BOUNDS and settings.critical_limit == NO_BOUNDS:
        return False
    stops = [limit_stop(team, team.lines[above].head) for above in team.classes if above <= weight]
    return stops[-1] is not None or WaitReason.TEAM_LIMIT in stops


def limit_stop(team: Team, run: Run) -> WaitReason | None:
    """Return which limit of its team a run would exceed now."""
    settings = team.settings
    if settings.limit != NO_BOUNDS and short(settings.limit.less(team.held), run.request):
        return WaitReason.TEAM_LIMIT
    if (
        run.critical
        and settings.critical_limit != NO_BOUNDS
        and short(settings.critical_limit.less(team.held_critical), run.request)
    ):
        return WaitReason.CRITICAL_LIMIT
    return None


def never_fits(settings: PoolSettings, team: str, request: Amounts, *, critical: bool) -> str | None:
    """Return why a run could never start whatever ends: a limit or the fixed capacity is below its request.

    Nodes may come, so being larger than every one of them is no reason.
    """
    bounds = [(settings.capacity, "the pool has")]
    if (own := settings.teams.get(team)) is not None:
        bounds.append((own.limit, f"the limit of team {team} is"))
        if critical:
            bounds.append((own.critical_limit, f"the criticalLimit of team {team} is"))
    for bound, words in bounds:
        if (name := short(bound, request)) is not None:
            return f"{counted(getattr(request, name), name)} asked, {words} {getattr(bound, name)}"
    return None


# -- rule 4: share -----------------------------------------------------------------------------------


def beyond_share(top: Bounds, held: Amounts, request: Amounts) -> int:
    """Return the resources, as a bit mask, in which a request takes a team beyond its share.

    The first use of a resource is always within it. A run with an empty mask is not stopped by rule 4,
    any other only while less than the headroom would stay free of one of these resources.
    """
    mask = 0
    for bit, asked, used, most in zip(_BITS, request, held, top, strict=True):
        if asked and used > 0 and most is not None and used + asked > most:
            mask |= bit
    return mask


def headroom_left(standing: Standing, free: Bounds, request: Amounts, mask: int) -> bool:
    """Whether enough stays free of each resource of the mask."""
    for index, (there, asked, kept) in enumerate(zip(free, request, standing.headroom, strict=True)):
        if mask >> index & 1 and kept and there is not None and there - asked < kept:
            return False
    return True


# -- rule 5: guarantee -------------------------------------------------------------------------------


def within_guarantee(owed: Amounts, held: Amounts, request: Amounts, capacity: Bounds) -> bool:
    """Whether a run stays within its own team's guarantee in every resource it uses."""
    return all(
        not asked or c is None or h + asked <= o
        for asked, h, o, c in zip(request, held, owed, capacity, strict=True)
    )


def demand(books: Books, standing: Standing, team: Team) -> Amounts:
    """Return what is kept for a team: what it is guaranteed, does not hold, and has runs for.

    Its runs are counted in its own order, up to the first that would exceed the guarantee: that one
    and those behind it could not start within it. Where a critical run is at its limit, or a run is larger
    than every node, only those behind it in its class are left out with it.
    """
    owed = standing.guaranteed.get(team.id)
    kept = NOTHING
    if owed is None:
        return kept
    held, critical = team.held, team.held_critical
    for weight in team.classes:
        for run in team.lines[weight]:
            if run.critical and short(team.settings.critical_limit.less(critical), run.request):
                break
            if not books.possible(run.request):
                break
            if not within_guarantee(owed, held, run.request, books.capacity):
                return kept
            held, kept = held.plus(run.request), kept.plus(run.request)
            if run.critical:
                critical = critical.plus(run.request)
    return kept


def leaves_guaranteed(free: Bounds, request: Amounts, kept: Amounts) -> bool:
    """Whether a run leaves what is kept for other teams."""
    return all(
        not asked or not k or there is None or there - asked >= k
        for there, asked, k in zip(free, request, kept, strict=True)
    )


# -- words -------------------------------------------------------------------------------------------


def counted(amount: int, name: str) -> str:
    """Return an amount of a resource in words, such as `1 slot`."""
    return f"{amount} {_ONE[name] if amount == 1 else UNITS[name]}"


_SHORTAGES = {
    "slots": WaitReason.NO_FREE_SLOT,
    "cpu_millicores": WaitReason.INSUFFICIENT_CPU,
    "memory_mb": WaitReason.INSUFFICIENT_MEMORY,
    "gpu_count": WaitReason.INSUFFICIENT_GPU,
}


def shortage(name: str, request: Amounts, held: Amounts, capacity: Bounds) -> Wait:
    """Return the wait of a run that finds too little of a resource."""
    asked, used, there = getattr(request, name), getattr(held, name), getattr(capacity, name)
    return Wait(_SHORTAGES[name], f"needs {counted(asked, name)}; {used} of {there} are held")


def limit_words(stop: WaitReason, team: Team, run: Run) -> Wait:
    """Return the wait of a run that a limit of its team stops."""
    critical = stop is WaitReason.CRITICAL_LIMIT
    bounds = team.settings.critical_limit if critical else team.settings.limit
    held = team.held_critical if critical else team.held
    name = short(bounds.less(held), run.request) or "slots"
    asked, used, top = getattr(run.request, name), getattr(held, name), getattr(bounds, name)
    whose = "critical runs of the team" if critical else "the team"
    return Wait(stop, f"needs {counted(asked, name)}; {whose} may hold {top} and holds {used}")

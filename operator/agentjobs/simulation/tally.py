"""What a replay measures, as it goes: a few sums, and eight bytes for each run that started."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agentjobs.apis.agentjob import Priority
from agentjobs.scheduling.books import Books, Team
from agentjobs.scheduling.model import SECOND, TeamSettings
from agentjobs.scheduling.resources import NOTHING, Amounts, Bounds, fits
from agentjobs.scheduling.rules import Standing
from agentjobs.simulation.setup import Setup
from agentjobs.simulation.trace import TraceRun


@dataclass(slots=True)
class Part:
    """What became of the runs of one team and class.

    Attributes:
        waits: of each that started, microseconds.
        within_share: how many would have started at once had their team had its share, within its limits,
            for itself.
        instant: how many of those started within a second.
    """

    waits: array[int] = field(default_factory=lambda: array("q"))
    within_share: int = 0
    instant: int = 0
    refused: int = 0
    never_fits: int = 0
    left_waiting: int = 0

    def add(self, other: Part) -> None:
        """Take another part in."""
        self.waits.extend(other.waits)
        self.within_share += other.within_share
        self.instant += other.instant
        self.refused += other.refused
        self.never_fits += other.never_fits
        self.left_waiting += other.left_waiting


@dataclass(frozen=True, slots=True)
class Result:
    """What a replay found.

    Attributes:
        parts: by team and class.
        ends: by team, when its last run ended, microseconds from the first submission.
        shares: by team that ever waited, the mean dominant share it held meanwhile, for its weight.
        utilisation: by resource that is limited, the part held from the first submission to the last.
        idle_while_waiting: the part of the slots that was free while a run waited; None without a limit.
        starts_past_urgent: starts at moments when a run of a more urgent class went on waiting.
        backfilled: starts before a reservation's holder, in the hole before its promise.
        promises: "Kept", or the cause of those that were not; Unexplained would be a fault.
        reasons: of runs that never started, why they waited at the end.
        span: from the first submission to the last end, microseconds.
    """

    parts: Mapping[tuple[str, Priority], Part]
    ends: Mapping[str, int]
    shares: Mapping[str, float]
    utilisation: Mapping[str, float]
    idle_while_waiting: float | None
    starts_past_urgent: int
    backfilled: int
    promises: Mapping[str, int]
    reasons: Mapping[str, int]
    span: int

    @property
    def jain(self) -> float | None:
        """Jain's index of `shares`: 1 when all are equal, 1/n when one team had all; None below two teams."""
        values = list(self.shares.values())
        squares = sum(value * value for value in values)
        return sum(values) ** 2 / (len(values) * squares) if len(values) > 1 and squares else None


class _Share:
    """A team's share as if it were the team's alone: which runs would find room in it at once.

    What does not is left out, so the answer depends on the trace alone, and never on a policy.
    """

    __slots__ = ("critical", "ends", "held")

    def __init__(self) -> None:
        self.ends: list[tuple[int, Amounts, bool]] = []
        self.held = NOTHING
        self.critical = NOTHING

    def has_room(self, said: TraceRun, now: int, top: Bounds, settings: TeamSettings) -> bool:
        """Whether a run submitted now starts at once; it is counted if it does."""
        while self.ends and self.ends[0][0] <= now:
            _, request, critical = heapq.heappop(self.ends)
            self._count(NOTHING.minus(request), critical=critical)
        critical = said.priority is Priority.CRITICAL
        if not fits(settings.limit.less(self.held), said.request):
            return False
        if critical and not fits(settings.critical_limit.less(self.critical), said.request):
            return False
        # The first use of a resource is always within the share.
        for asked, held, most in zip(said.request, self.held, top, strict=True):
            if asked and most is not None and held + asked > max(most, asked):
                return False
        self._count(said.request, critical=critical)
        end = now + min(said.seconds, said.timeout_seconds) * SECOND
        heapq.heappush(self.ends, (end, said.request, critical))
        return True

    def _count(self, amounts: Amounts, *, critical: bool) -> None:
        self.held = self.held.plus(amounts)
        if critical:
            self.critical = self.critical.plus(amounts)


class _Waited:
    """How much a team held while it had a run waiting."""

    __slots__ = ("area", "backlog", "seconds", "since")

    def __init__(self) -> None:
        self.backlog = NOTHING  # what its waiting runs ask for
        self.area = 0.0
        self.seconds = 0
        self.since = 0


class Tally:
    """Takes note of what happens; reads the books, and decides nothing."""

    def __init__(self, setup: Setup, books: Books) -> None:
        self._books = books
        self._standing = Standing(setup.settings, books.capacity)
        self._weights = setup.weights
        self._parts: dict[tuple[str, Priority], Part] = {}
        self._waited: dict[str, _Waited] = {}
        self._own: dict[str, _Share] = {}
        self._shares: dict[str, float] = {}  # of teams that wait: what they hold now
        self._pending = Counter[int]()  # by class weight
        self._ends: dict[str, int] = {}
        self._reasons = Counter[str]()
        self._first: int | None = None
        self._now = 0
        self._held = [0, 0, 0, 0]  # resource-microseconds
        self._held_then = (0, [0, 0, 0, 0])  # the same at the last submission
        self._idle = 0
        self._waiting_time = 0
        self._past_urgent = 0
        self._backfilled = 0

    def pass_time(self, now: int) -> None:
        """Nothing changed from the last event until now."""
        if self._first is None:
            self._first = self._now = now
        passed, self._now = now - self._now, now
        if not passed:
            return
        for index, amount in enumerate(self._books.held):
            self._held[index] += amount * passed
        if self._pending:
            self._waiting_time += passed
            self._idle += passed * max(0, self._books.free.slots or 0)

    # -- what happens to a run -------------------------------------------------------------------

    def submitted(self, said: TraceRun) -> bool:
        """A run waits; return whether it would start at once had its team its share to itself."""
        team = self._books.team(said.team)
        self._settle(team)
        waited = self._waited.setdefault(said.team, _Waited())
        waited.backlog = waited.backlog.plus(said.request)
        self._measure(team)
        self._pending[self._weights[said.priority]] += 1
        self._held_then = (self._now, list(self._held))
        own = self._own.setdefault(said.team, _Share())
        within = own.has_room(said, self._now, self._standing.top(said.team), team.settings)
        part = self._part(said)
        part.within_share += within
        return within

    def started(self, said: TraceRun, now: int, *, within_share: bool, backfill: bool) -> None:
        """A run starts, and is counted in the books as holding already."""
        wait = now - said.submitted
        part = self._part(said)
        part.waits.append(wait)
        part.instant += within_share and wait <= SECOND
        self._backfilled += backfill
        team = self._books.teams[said.team]
        self._settle(team)
        self._waited[said.team].backlog = self._waited[said.team].backlog.minus(said.request)
        self._measure(team)
        weight = self._weights[said.priority]
        self._pending[weight] -= 1
        if not self._pending[weight]:
            del self._pending[weight]

    def looked(self, weights: Sequence[int]) -> None:
        """A look at the pool started runs of these class weights."""
        if weights and self._pending:
            most_urgent = min(self._pending)
            self._past_urgent += sum(weight > most_urgent for weight in weights)

    def ended(self, team: str) -> None:
        """A run of a team has ended, and is out of the books."""
        self._ends[team] = self._now
        books = self._books.teams[team]
        self._settle(books)
        self._measure(books)

    def refused(self, said: TraceRun) -> None:
        """A run was refused because too many of its team wait."""
        self._part(said).refused += 1

    def never_fits(self, said: TraceRun) -> None:
        """A run was refused because it can never start."""
        self._part(said).never_fits += 1

    def left_waiting(self, said: TraceRun, reason: str) -> None:
        """A run still waits when nothing more can happen."""
        self._part(said).left_waiting += 1
        self._reasons[reason] += 1

    def result(self, promises: Mapping[str, int]) -> Result:
        """Return what was found."""
        first = self._first or 0
        until, held = self._held_then
        capacity = self._books.capacity
        window = until - first
        slots = capacity.slots
        return Result(
            self._parts,
            {team: end - first for team, end in self._ends.items()},
            {team: waited.area / waited.seconds for team, waited in self._waited.items() if waited.seconds},
            {
                name: held[index] / (window * top)
                for index, (name, top) in enumerate(zip(capacity._fields, capacity, strict=True))
                if top and window
            },
            self._idle / (self._waiting_time * slots)
            if slots and self._waiting_time
            else 0.0
            if slots
            else None,
            self._past_urgent,
            self._backfilled,
            dict(promises),
            self._reasons,
            self._now - first,
        )

    # -- shares ----------------------------------------------------------------------------------

    def _settle(self, team: Team) -> None:
        """Count what a waiting team has held since its last change."""
        share = self._shares.pop(team.id, None)
        if share is not None:
            waited = self._waited[team.id]
            waited.area += share * (self._now - waited.since)
            waited.seconds += self._now - waited.since

    def _measure(self, team: Team) -> None:
        """Note what a team holds from now on, if it waits."""
        waited = self._waited.get(team.id)
        if waited is not None and waited.backlog.slots:
            waited.since = self._now
            self._shares[team.id] = self._share(team.held, team)

    def _share(self, held: Amounts, team: Team) -> float:
        parts = [used / top for used, top in zip(held, self._books.capacity, strict=True) if top]
        return max(parts, default=team.live) / team.settings.weight

    def _part(self, said: TraceRun) -> Part:
        key = (said.team, said.priority)
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = Part()
        return part

"""The books of a pool: who waits, who holds what, and what follows from that by addition alone. No rules."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator

from agentjobs.scheduling.model import Holding, PoolSettings, Reservation, Run, TeamSettings
from agentjobs.scheduling.nodes import Nodes, total
from agentjobs.scheduling.resources import NOTHING, Amounts, Bounds, fits

_DEFAULT_TEAM = TeamSettings()


class Line:
    """The waiting runs of one team and class, the oldest first."""

    __slots__ = ("_ages", "_runs")

    def __init__(self) -> None:
        self._ages: list[tuple[int, int, str]] = []
        self._runs: dict[str, Run] = {}

    def __len__(self) -> int:
        return len(self._ages)

    def __iter__(self) -> Iterator[Run]:
        return (self._runs[age[2]] for age in self._ages)

    @property
    def head(self) -> Run:
        return self._runs[self._ages[0][2]]

    def add(self, run: Run) -> None:
        insort(self._ages, run.age)
        self._runs[run.uid] = run

    def remove(self, run: Run) -> None:
        del self._ages[bisect_left(self._ages, run.age)]
        del self._runs[run.uid]

    def place(self, run: Run) -> int:
        """Return how many runs stand before this one."""
        return bisect_left(self._ages, run.age)


class Team:
    """What one team has in one pool."""

    __slots__ = ("held", "held_critical", "id", "last_end", "last_served", "lines", "live", "settings")

    def __init__(self, team: str) -> None:
        self.id = team
        self.settings = _DEFAULT_TEAM
        self.lines: dict[int, Line] = {}  # by class weight; never an empty line
        self.held = NOTHING
        self.held_critical = NOTHING
        self.live = 0  # how many runs hold
        self.last_served = 0
        self.last_end = 0

    @property
    def classes(self) -> list[int]:
        """The class weights in which it has runs waiting, the most urgent first."""
        return sorted(self.lines)

    @property
    def busy(self) -> bool:
        """Whether any of its runs waits or holds."""
        return bool(self.lines or self.live)


class Books:
    """Waiting runs by team, class and age; holdings; sums.

    The pool writes them. A policy reads, takes `changed` and `stretched` down, and owns two fields.

    Attributes:
        weights: of the classes in which a run has waited.
        asked: how many lines' heads ask for it, by request.
        capacity: C of the rules; None for a resource that is not limited.
        held: what all decided runs hold.
        free: what is not held; None where there is no limit.
        changed: teams whose heads, holdings or demand for what they are guaranteed changed since a policy
            last took them.
        moved: teams with another number of runs, or holding something else, since somebody took them down.
        stretched: capacity, nodes or settings changed: everything must be looked at anew.
        reservation: who holds the pool's one reservation; the policy's own.
        look_again: when time alone may change what the policy proposes; the policy's own.
    """

    def __init__(self) -> None:
        self.settings = PoolSettings()
        self.capacity = Bounds()
        self.nodes: Nodes | None = None
        self.teams: dict[str, Team] = {}
        self.weights: set[int] = set()
        self.waiting: dict[str, Run] = {}
        self.asked: Counter[Amounts] = Counter()
        self.holdings: dict[str, Holding] = {}
        self.held = NOTHING
        self.free = Bounds()
        self.ends: list[tuple[int, str]] = []  # (latest end, uid) of what holds, where it is known
        self.changed: set[str] = set()
        self.moved: set[str] = set()
        self.stretched = True
        self.last_scheduled = 0  # the newest start: the next one is at least a microsecond later
        self.version = 0  # counts the changes of what is held and of what there is
        self.reservation: Reservation | None = None
        self.look_again: int | None = None

    # -- reading ---------------------------------------------------------------------------------

    def team(self, team: str) -> Team:
        """Return a team's books, opened at its first run."""
        if team not in self.teams:
            books = self.teams[team] = Team(team)
            books.settings = self.settings.teams.get(team, _DEFAULT_TEAM)
        return self.teams[team]

    def has_room(self, request: Amounts) -> bool:
        """Whether a request fits what is free, and one of the nodes."""
        return fits(self.free, request) and (self.nodes is None or self.nodes.fits(request))

    def possible(self, request: Amounts) -> bool:
        """Whether a node could hold a request if nothing else were there."""
        return self.nodes is None or self.nodes.possible(request)

    # -- writing: the pool alone -----------------------------------------------------------------

    def configure(self, settings: PoolSettings) -> None:
        """Take new settings; what is held stays held, whatever they say."""
        self.settings = settings
        for team in self.teams.values():
            team.settings = settings.teams.get(team.id, _DEFAULT_TEAM)
        unknown = self.nodes is None
        self.capacity, self.nodes = settings.capacity, None
        if settings.nodes is not None:
            sums = total(settings.nodes)
            self.capacity = Bounds(
                settings.capacity.slots, sums.cpu_millicores, sums.memory_mb, sums.gpu_count
            )
            self.nodes = Nodes(settings.nodes)
            for holding in self.holdings.values():
                if holding.node is not None:
                    self.nodes.take(holding.node, holding.request)
            if unknown:
                self._guess(self.nodes)
        self.free = self.capacity.less(self.held)
        self.stretched = True
        self.version += 1

    def _guess(self, nodes: Nodes) -> None:
        """Count what holds since before nodes were known, and is not bound, where it is likely to land."""
        for uid, holding in sorted(self.holdings.items()):
            likely = nodes.roomiest(holding.request) if holding.node is None else None
            if likely is not None:
                self.holdings[uid] = holding._replace(node=likely)
                nodes.take(likely, holding.request)

    def wait(self, run: Run) -> None:
        """Add a run to its team's line."""
        self.waiting[run.uid] = run
        team = self.team(run.team)
        line = team.lines.get(run.weight)
        if line is None:
            line = team.lines[run.weight] = Line()
            self.weights.add(run.weight)
        else:
            self._ask(line.head, -1)
        line.add(run)
        self._ask(line.head, 1)
        if line.head is run or team.settings.guaranteed != NOTHING:
            self.changed.add(run.team)
        self.moved.add(run.team)

    def withdraw(self, uid: str) -> Run | None:
        """Take a run out of its line; None when it was not in one."""
        run = self.waiting.pop(uid, None)
        if run is not None:
            lines = self.teams[run.team].lines
            line = lines[run.weight]
            self._ask(line.head, -1)
            line.remove(run)
            if line:
                self._ask(line.head, 1)
            else:
                del lines[run.weight]
            self.changed.add(run.team)
            self.moved.add(run.team)
        return run

    def _ask(self, head: Run, count: int) -> None:
        """Count what the head of a line asks for."""
        self.asked[head.request] += count
        if not self.asked[head.request]:
            del self.asked[head.request]

    def hold(self, holding: Holding) -> None:
        """Count a holding; one with the same uid is replaced."""
        if holding.uid in self.holdings:
            self.drop(holding.uid)
        self.holdings[holding.uid] = holding
        team = self.team(holding.team)
        self._count(team, holding, holding.request)
        team.live += 1
        if holding.until is not None:
            insort(self.ends, (holding.until, holding.uid))
        if self.nodes is not None and holding.node is not None:
            self.nodes.take(holding.node, holding.request)

    def drop(self, uid: str) -> Holding | None:
        """Take a holding away; None when there was none."""
        holding = self.holdings.pop(uid, None)
        if holding is not None:
            team = self.teams[holding.team]
            self._count(team, holding, NOTHING.minus(holding.request))
            team.live -= 1
            if holding.until is not None:
                del self.ends[bisect_left(self.ends, (holding.until, uid))]
            if self.nodes is not None and holding.node is not None:
                self.nodes.give(holding.node, holding.request)
        return holding

    def _count(self, team: Team, holding: Holding, amounts: Amounts) -> None:
        team.held = team.held.plus(amounts)
        if holding.critical:
            team.held_critical = team.held_critical.plus(amounts)
        self.held = self.held.plus(amounts)
        self.free = self.capacity.less(self.held)
        self.version += 1
        self.changed.add(team.id)
        self.moved.add(team.id)

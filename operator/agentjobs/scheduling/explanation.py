"""Everything a person asks of a run that waits, from the books and the policy that decide."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from agentjobs.scheduling.books import Books, Team
from agentjobs.scheduling.model import Run, Wait, WaitReason

_REMEMBERED = 256  # starts
_HELP = {
    WaitReason.POOL_MISSING: "an administrator creates the AgentPool",
    WaitReason.POOL_ON_HOLD: "an administrator releases the pool",
    WaitReason.TEAM_MISSING: "an administrator creates the AgentTeam",
    WaitReason.QUOTA_EXCEEDED: "a Job of the namespace ends, or its quota is raised",
    WaitReason.RETRY_BACKOFF: "time",
    WaitReason.NEVER_FITS: "a smaller run, or a larger limit",
    WaitReason.TEAM_LIMIT: "a run of the team ends, or its limit is raised",
    WaitReason.CRITICAL_LIMIT: "a critical run of the team ends, or its criticalLimit is raised",
    WaitReason.GUARANTEED_TO_OTHERS: "any run ends, or the team gets a larger guarantee",
    WaitReason.TEAM_SHARE: "a run of the team ends, or more becomes free",
    WaitReason.BEHIND_OWN: "the runs of the team that go before it start",
    WaitReason.NO_FREE_SLOT: "any run ends",
    WaitReason.INSUFFICIENT_CPU: "any run that holds CPU ends",
    WaitReason.INSUFFICIENT_MEMORY: "any run that holds memory ends",
    WaitReason.INSUFFICIENT_GPU: "a run that holds GPUs ends",
    WaitReason.NO_NODE_FITS: "runs end on one node, or a node is added",
    WaitReason.BEHIND_RESERVATION: "the holder of the reservation starts",
    WaitReason.HELD_BACK: "what the policy waits for comes; if the policy failed, its author mends it",
}

_OF_NODES = frozenset(
    {
        WaitReason.INSUFFICIENT_CPU,
        WaitReason.INSUFFICIENT_MEMORY,
        WaitReason.INSUFFICIENT_GPU,
        WaitReason.NO_NODE_FITS,
    }
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a run waits and what comes next.

    Attributes:
        place_in_team: 1 for the next of its team and class; None where it is in no line.
        place: 1 for the next of all, if every run takes one slot; a count, no promise. None where it is in no
            line, or teams do not take turns by this policy.
        wait: the rule that stops it; None when it would start at the next look.
        unblocks: what would let it start.
        went_ahead: the last less urgent or younger run that started while this one waited; "" for none.
        starts_before: the promise, microseconds since the epoch; None is "none yet".
        hole_seconds: it would start now with a timeout of at most this; None where no hole is on offer.
    """

    place_in_team: int | None
    place: int | None
    wait: Wait | None
    unblocks: str
    went_ahead: str
    starts_before: int | None
    hole_seconds: int | None


class Started:
    """The last starts, to name who went ahead of a run that waits."""

    def __init__(self) -> None:
        self._last: deque[tuple[int, Run]] = deque(maxlen=_REMEMBERED)

    def add(self, scheduled: int, run: Run) -> None:
        """Note a start, after those before it."""
        self._last.append((scheduled, run))

    def ahead_of(self, run: Run) -> str:
        """Return the last less urgent or younger run of another team that started while this one waited."""
        for scheduled, other in reversed(self._last):
            if scheduled <= run.created:
                return ""
            if other.team != run.team and (other.weight, other.age) > (run.weight, run.age):
                return other.name or other.uid
        return ""


def unblocks(books: Books, run: Run, wait: Wait | None) -> str:
    """Return what lets a run start that waits for this reason."""
    if wait is None:
        return "nothing: it starts at the next look"
    if wait.reason in _OF_NODES and not books.possible(run.request):
        return "a larger node, or a smaller run"
    return _HELP[wait.reason] + (", or a shorter timeout" if wait.hole_seconds is not None else "")


def place_in_team(books: Books, run: Run) -> int:
    """Return a place in the line of a team and class, 1 for the next."""
    return 1 + books.teams[run.team].lines[run.weight].place(run)


def place(books: Books, run: Run) -> int:
    """Return a run's place among all, counting that within a class teams take turns by their weight."""
    mine = books.teams[run.team]
    turn = mine.live + place_in_team(books, run) - 1
    ahead = 0
    for team in books.teams.values():
        for weight, line in team.lines.items():
            if weight < run.weight:
                ahead += len(line)
            elif weight == run.weight and team is not mine:
                ahead += _turns_before(team, mine, turn, len(line))
    return ahead + place_in_team(books, run)


def _turns_before(team: Team, mine: Team, turn: int, waiting: int) -> int:
    """Return how many runs of another team have their turn before the `turn`-th of mine."""
    before = -(-turn * team.settings.weight // mine.settings.weight) - team.live
    tie = turn * team.settings.weight % mine.settings.weight == 0
    if tie and (team.last_served, team.id) < (mine.last_served, mine.id):
        before += 1
    return min(max(before, 0), waiting)

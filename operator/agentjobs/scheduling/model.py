"""What the policy is told and what it answers. Times are microseconds since the epoch, durations seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from agentjobs.scheduling.resources import NO_BOUNDS, NOTHING, Amounts, Bounds

SECOND = 1_000_000
GRACE_SECONDS = 30  # between SIGTERM and SIGKILL: how much longer than its time a run may hold its slot
LEAST_TIMEOUT_SECONDS = 30  # that an AgentJob may have
LEAST_START_SECONDS = 20  # the least start time of a run that fills a hole


class WaitReason(StrEnum):
    """Why a run waits: the closed set of `status.reason` of a PENDING run."""

    # Of the pool, the team or the run itself: no capacity would help.
    POOL_MISSING = "PoolMissing"
    POOL_ON_HOLD = "PoolOnHold"
    TEAM_MISSING = "TeamMissing"
    QUOTA_EXCEEDED = "QuotaExceeded"
    RETRY_BACKOFF = "RetryBackoff"
    NEVER_FITS = "NeverFits"
    # Rules 3 to 6: the run is parked.
    TEAM_LIMIT = "TeamLimit"
    CRITICAL_LIMIT = "CriticalLimit"
    GUARANTEED_TO_OTHERS = "GuaranteedToOthers"
    TEAM_SHARE = "TeamShare"
    BEHIND_OWN = "BehindOwn"
    # Capacity, and the order of those who wait for it.
    NO_FREE_SLOT = "NoFreeSlot"
    INSUFFICIENT_CPU = "InsufficientCPU"
    INSUFFICIENT_MEMORY = "InsufficientMemory"
    INSUFFICIENT_GPU = "InsufficientGPU"
    NO_NODE_FITS = "NoNodeFits"
    BEHIND_RESERVATION = "BehindReservation"
    # A policy that is not ours says nothing more.
    HELD_BACK = "HeldBack"

    @property
    def parks(self) -> bool:
        """Whether a run that waits for this also stops its team's later and lower runs (rule 6)."""
        return self in _PARKING


_PARKING = frozenset({WaitReason.TEAM_LIMIT, WaitReason.GUARANTEED_TO_OTHERS, WaitReason.TEAM_SHARE})


class Wait(NamedTuple):
    """Why a run waits.

    Attributes:
        reason: for machines.
        message: a sentence with numbers, for people.
        hole_seconds: with a timeout of at most this it would start now; None where no hole is on offer.
    """

    reason: WaitReason
    message: str
    hole_seconds: int | None = None


class Run(NamedTuple):
    """One attempt of a run that waits.

    Attributes:
        uid: the AgentJob's uid: the last word of every order.
        namespace: where its Job would be created.
        team: the team id.
        weight: of its priority class; lower goes first.
        critical: whether it is of the class that `criticalLimit` bounds.
        created: when it was first seen.
        version: breaks ties of `created` after a failover: the resourceVersion.
        request: what it holds from the decision to its end.
        timeout_seconds: the run's own time.
        name: how people are told of it.
    """

    uid: str
    namespace: str
    team: str
    weight: int
    critical: bool
    created: int
    version: int
    request: Amounts
    timeout_seconds: int
    name: str = ""

    @property
    def age(self) -> tuple[int, int, str]:
        """Its place in its team's line: the smallest is the oldest."""
        return (self.created, self.version, self.uid)


class Holding(NamedTuple):
    """What a decided run holds, until its pod is terminal or gone.

    Attributes:
        uid, team, critical, request: as of the run, at admission.
        until: the latest end: start, or admission and the time it may take to start, then its timeout
            and the grace; None when nobody knows.
        node: where its pod is; None while it is not bound.
    """

    uid: str
    team: str
    critical: bool
    request: Amounts
    until: int | None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class TeamSettings:
    """What an AgentTeam says of one pool."""

    weight: int = 1
    guaranteed: Amounts = NOTHING
    limit: Bounds = NO_BOUNDS
    critical_limit: Bounds = NO_BOUNDS


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """What an AgentPool says.

    Attributes:
        capacity: what there is in all, where it is not the sum of nodes.
        nodes: what each node offers this pool (slots are left out); None when the pool is not bound to nodes.
        share_percent, headroom_percent, share_window_seconds: of rule 4.
        start_timeout_seconds: from the decision to the start of the container.
        teams: of those that have settings, by team id.
        admitted: the only teams that may start runs; None means any.
    """

    capacity: Bounds = NO_BOUNDS
    nodes: Mapping[str, Amounts] | None = None
    share_percent: int = 25
    headroom_percent: int = 10
    share_window_seconds: int = 3600
    start_timeout_seconds: int = 300
    on_hold: bool = False
    teams: Mapping[str, TeamSettings] = field(default_factory=dict)
    admitted: frozenset[str] | None = None


class Reservation(NamedTuple):
    """Who holds the pool's one reservation, and the promise: it starts at `before` at the latest."""

    uid: str
    weight: int
    before: int
    node: str | None = None


class Start(NamedTuple):
    """A run that starts now.

    Attributes:
        start_seconds: how long its container may take to start; less than the pool's where it fills a hole.
        avoid_node: a node that its pod must not be placed on: the reservation's.
        backfill: whether it fills a hole before a reservation.
        guaranteed: whether it goes before a reservation because it stays within its own team's guarantee.
        scheduled: the moment of the decision, strictly increasing in a pool; the pool sets it.
    """

    run: Run
    start_seconds: int
    avoid_node: str | None = None
    backfill: bool = False
    guaranteed: bool = False
    scheduled: int = 0


class Plan(NamedTuple):
    """What one look at a pool decided.

    Attributes:
        starts: what starts, in this order; the pool counts each as held from now on.
        reservation: who holds it after this look.
        look_again: when time alone may change something.
    """

    starts: tuple[Start, ...] = ()
    reservation: Reservation | None = None
    look_again: int | None = None

"""What the policy is told and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from agentjobs.scheduling.resources import Amounts


class WaitReason(StrEnum):
    """Why a run waits: the closed set of `status.reason` of a PENDING run."""

    NO_FREE_SLOT = "NoFreeSlot"
    INSUFFICIENT_CPU = "InsufficientCPU"
    INSUFFICIENT_MEMORY = "InsufficientMemory"
    INSUFFICIENT_GPU = "InsufficientGPU"
    BEHIND_OTHERS = "BehindOthers"
    POOL_MISSING = "PoolMissing"
    POOL_ON_HOLD = "PoolOnHold"
    TEAM_MISSING = "TeamMissing"
    QUOTA_EXCEEDED = "QuotaExceeded"


class Run(NamedTuple):
    """One attempt of a run, as the policy sees it.

    Attributes:
        uid: the AgentJob's uid: the last word of every order.
        namespace: where its Job would be created.
        team: the team id.
        weight: of its priority class; lower goes first.
        created: microseconds since the epoch.
        request: what it holds from the decision to its end.
    """

    uid: str
    namespace: str
    team: str
    weight: int
    created: int
    request: Amounts


class Wait(NamedTuple):
    """Why a run waits: a reason for machines, a sentence with numbers for people."""

    reason: WaitReason
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What one look at a pool decided.

    Attributes:
        starts: runs to start, in this order; the pool counts them as held from now on.
        look_again: when something waits for nothing but time: microseconds since the epoch.
    """

    starts: tuple[Run, ...] = ()
    look_again: int | None = None


class Policy(Protocol):
    """The order of a pool's waiting runs."""

    def key(self, run: Run) -> tuple[int | str, ...]:
        """Return the run's place: a total order, the smallest goes first, O(1), the same at every call."""
        ...


class ClassThenAge:
    """Priority classes first, within a class the oldest first."""

    def key(self, run: Run) -> tuple[int | str, ...]:
        """Order by class weight, creation, uid."""
        return (run.weight, run.created, run.uid)

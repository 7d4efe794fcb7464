"""The facts that the oracle decides on: who waits, who holds, what teams are owed, and the one promise.

Amounts are tuples of slots, CPU, memory and GPUs, a bound of None is no bound. Times are microseconds,
durations seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

Four = tuple[int, int, int, int]
Bound = tuple[int | None, int | None, int | None, int | None]
NONE: Bound = (None, None, None, None)
ZERO: Four = (0, 0, 0, 0)
SECOND = 1_000_000
GRACE = 30


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

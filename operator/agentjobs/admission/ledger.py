"""What the leader counts: runs stored as PENDING, creates that were allowed and not seen yet, and keys.

The count is exact under any concurrency because one process answers every question, and because an allowed
create is counted from the answer on: it is *reserved* until the watch shows it, or until a consistent read
finds that it was never stored. Times are seconds of a monotonic clock, given by the caller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from agentjobs.apis.records import AgentJobRecord
from agentjobs.apis.runstatus import Phase

UNSEEN_SECONDS = 5.0  # after which a create that nobody has seen is looked for

Name = tuple[str, str]
"""Namespace and name."""

Key = tuple[str, str]
"""Team and idempotency key."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A create that was allowed and has not been seen stored.

    Attributes:
        limit: how many pending runs the team was allowed then.
        due: when it is looked for.
    """

    uid: str
    team: str
    key: str
    fingerprint: int
    limit: int
    due: float


@dataclass(frozen=True, slots=True)
class Taken:
    """The run that has an idempotency key."""

    name: Name
    uid: str
    fingerprint: int
    phase: str


class Ledger:
    """Counts of what is stored and reserved.

    Args:
        limit: returns how many runs of a team may wait, for one that is stored in a pool.
        over: called with the team whenever one more is stored than its limit allowed: a create that was
            allowed and committed so late that it had been given up, or was allowed by a former leader.
    """

    def __init__(self, limit: Callable[[str, str], int], over: Callable[[str], None]) -> None:
        self._limit = limit
        self._over = over
        self._stored: dict[Name, str] = {}
        self._pending: Counter[str] = Counter()
        self._keys: dict[Key, list[AgentJobRecord]] = {}
        self._reserved: dict[Name, Reservation] = {}
        self._reserved_of: Counter[str] = Counter()
        self._reserved_keys: dict[Key, Name] = {}
        self.live = False  # what is seen from now on is new, and counted when it is one too many

    # -- asked -----------------------------------------------------------------------------------

    def pending(self, team: str, name: Name) -> int:
        """Return how many runs of a team wait or are about to, not counting what `name` has reserved."""
        own = self._reserved.get(name)
        return self._pending[team] + self._reserved_of[team] - (own is not None and own.team == team)

    def holder(self, team: str, key: str, name: Name) -> Taken | None:
        """Return the run that has a key, stored or about to be; None for no key and for one that is free."""
        stored = self._keys.get((team, key)) if key else None
        if stored:
            first = min(stored, key=lambda record: (record.created, record.version))
            phase = first.status.phase
            return Taken((first.namespace, first.name), first.uid, first.fingerprint, phase)
        reserved = self._reserved_keys.get((team, key)) if key else None
        if reserved is None or reserved == name:
            return None
        create = self._reserved[reserved]
        return Taken(reserved, create.uid, create.fingerprint, Phase.PENDING)

    def stored(self, name: Name) -> bool:
        """Whether an AgentJob of this name is there, so that a create of it can only fail."""
        return name in self._stored

    @property
    def reservations(self) -> int:
        """How many creates were allowed and not seen yet."""
        return len(self._reserved)

    def reserved(self, team: str) -> int:
        """Return how many of them are a team's."""
        return self._reserved_of[team]

    def due(self, now: float) -> list[tuple[Name, Reservation]]:
        """Return the reservations that should be looked for."""
        return [(name, each) for name, each in self._reserved.items() if each.due <= now]

    # -- told ------------------------------------------------------------------------------------

    def reserve(self, name: Name, create: Reservation) -> None:
        """Count a create that is allowed; of several under one name the latest counts."""
        self.release(name)
        self._reserved[name] = create
        self._reserved_of[create.team] += 1
        if create.key:
            self._reserved_keys[create.team, create.key] = name

    def release(self, name: Name, uid: str | None = None) -> Reservation | None:
        """End a reservation and return it; with a `uid`, only that of this very create."""
        known = self._reserved.get(name)
        if known is None or uid not in (None, known.uid):
            return None
        del self._reserved[name]
        _count(self._reserved_of, known.team, -1)
        if self._reserved_keys.get((known.team, known.key)) == name:
            del self._reserved_keys[known.team, known.key]
        return known

    def changed(self, old: AgentJobRecord | None, new: AgentJobRecord | None) -> None:
        """An AgentJob was seen, changed or deleted."""
        if old is not None:
            self._forget(old)
        if new is None:
            return
        name = (new.namespace, new.name)
        reserved = self.release(name)
        self._stored[name] = new.uid
        if new.key:
            self._keys.setdefault((new.team, new.key), []).append(new)
        if not _waits(new):
            return
        _count(self._pending, new.team, 1)
        if old is None and self.live:
            limit = reserved.limit if reserved is not None else self._limit(new.team, new.pool)
            if self._pending[new.team] > limit:
                self._over(new.team)

    def _forget(self, record: AgentJobRecord) -> None:
        name = (record.namespace, record.name)
        if self._stored.get(name) == record.uid:
            del self._stored[name]
        if record.key:
            others = [each for each in self._keys[record.team, record.key] if each.uid != record.uid]
            if others:
                self._keys[record.team, record.key] = others
            else:
                del self._keys[record.team, record.key]
        if _waits(record):
            _count(self._pending, record.team, -1)


def _waits(record: AgentJobRecord) -> bool:
    return record.status.phase == Phase.PENDING and not record.cancel  # a run that is canceled leaves at once


def _count(counter: Counter[str], team: str, step: int) -> None:
    """Count up or down; a team with nothing left takes no room."""
    counter[team] += step
    if not counter[team]:
        del counter[team]

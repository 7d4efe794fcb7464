"""What the leader counts: runs stored as PENDING, creates that were allowed and not seen yet, and keys.

The count is exact under any concurrency because one process answers every question, and because an allowed
create is counted from the answer on: it is *reserved* until the watch shows it, or until a consistent read
finds that it was never stored. Times are seconds of a monotonic clock, given by the caller.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from agentjobs.apis.records import AgentJobRecord
from agentjobs.apis.runstatus import Phase

UNSEEN_SECONDS = 5.0  # after which a create that nobody has seen is looked for

Name = tuple[str, str]
"""Namespace and name."""

Key = tuple[str, str]
"""Team and idempotency key."""

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Reservation:
    """A create that was allowed and has not been seen stored.

    Attributes:
        uid: of the object that would be stored.
        limit: how many pending runs the team was allowed then.
        due: when it is looked for.
        until: when it is given up unless it is found; before that it may be on its way.
    """

    uid: str
    name: Name
    team: str
    key: str
    fingerprint: int
    limit: int
    due: float
    until: float


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
        # Of several creates under one name one at most is stored, so they count as one for a team; but which
        # of them it will be is the API server's to say, so each is remembered, with its own team and key.
        self._reserved: dict[str, Reservation] = {}
        self._by_name: defaultdict[Name, set[str]] = defaultdict(set)
        self._by_team: defaultdict[str, Counter[Name]] = defaultdict(Counter)
        self._by_key: defaultdict[Key, set[str]] = defaultdict(set)
        self.live = False  # what is seen from now on is new, and counted when it is one too many

    # -- asked -----------------------------------------------------------------------------------

    def pending(self, team: str, name: Name) -> int:
        """Return how many runs of a team wait or are about to, not counting what `name` has reserved."""
        reserved = self._by_team.get(team, ())
        return self._pending[team] + len(reserved) - (name in reserved)

    def holder(self, team: str, key: str, name: Name) -> Taken | None:
        """Return the run that has a key, stored or about to be; None for no key and for one that is free.

        What is about to be stored under `name` itself does not count: one of them at most will be.
        """
        if not key:
            return None
        if stored := self._keys.get((team, key)):
            first = min(stored, key=lambda record: (record.created, record.version))
            phase = first.status.phase
            return Taken((first.namespace, first.name), first.uid, first.fingerprint, phase)
        creates = (self._reserved[uid] for uid in self._by_key.get((team, key), ()))
        first_create = next((create for create in creates if create.name != name), None)
        if first_create is None:
            return None
        return Taken(first_create.name, first_create.uid, first_create.fingerprint, Phase.PENDING)

    def stored(self, name: Name) -> bool:
        """Whether an AgentJob of this name is there, so that a create of it is likely to fail."""
        return name in self._stored

    @property
    def reservations(self) -> int:
        """How many creates were allowed and not seen yet."""
        return len(self._reserved)

    def reserved(self, team: str) -> int:
        """Return how many runs of a team they make at most."""
        return len(self._by_team.get(team, ()))

    def due(self, now: float) -> list[Reservation]:
        """Return the reservations that should be looked for."""
        return [create for create in self._reserved.values() if create.due <= now]

    # -- told ------------------------------------------------------------------------------------

    def reserve(self, create: Reservation) -> None:
        """Count a create that is allowed."""
        self.release(create.uid)
        self._reserved[create.uid] = create
        self._by_name[create.name].add(create.uid)
        self._by_team[create.team][create.name] += 1
        if create.key:
            self._by_key[create.team, create.key].add(create.uid)

    def postpone(self, uid: str) -> None:
        """Look for a create again when it is to be given up: it may still be on its way."""
        if (known := self._reserved.get(uid)) is not None:
            self._reserved[uid] = replace(known, due=known.until)

    def release(self, uid: str) -> Reservation | None:
        """End a reservation and return it; None where there is none of this object."""
        known = self._reserved.pop(uid, None)
        if known is not None:
            _discard(self._by_name, known.name, uid)
            _discard(self._by_key, (known.team, known.key), uid)
            of_team = self._by_team[known.team]
            _count(of_team, known.name, -1)
            if not of_team:
                del self._by_team[known.team]
        return known

    def changed(self, old: AgentJobRecord | None, new: AgentJobRecord | None) -> None:
        """An AgentJob was seen, changed or deleted."""
        if old is not None:
            self._forget(old)
        if new is None:
            return
        name = (new.namespace, new.name)
        reserved = self.release(new.uid)
        for uid in self._by_name.get(name, ()):
            # It has lost to this one, or follows it after a deletion: a look will tell.
            self._reserved[uid] = replace(self._reserved[uid], due=0.0)
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


def _count(counter: Counter[K], what: K, step: int) -> None:
    """Count up or down; what has nothing left takes no room."""
    counter[what] += step
    if not counter[what]:
        del counter[what]


def _discard(sets: defaultdict[K, set[str]], where: K, uid: str) -> None:
    sets[where].discard(uid)
    if not sets[where]:
        del sets[where]

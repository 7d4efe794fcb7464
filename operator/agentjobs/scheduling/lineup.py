"""The heads of the teams' lines, grouped so that what stops one of a group stops all of it.

A head's place among others depends on its team; whether it may start depends, but for the order, on its
group alone: its shape (request and timeout), in which resources it goes beyond its share, and whose
guarantee it may use. So a look at a full pool costs the number of groups, not of teams.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from agentjobs.scheduling.model import Run
from agentjobs.scheduling.resources import Amounts


class Kind(NamedTuple):
    """What the heads of a group have in common.

    Attributes:
        beyond: bit mask of the resources in which rule 4 asks for headroom.
        exempt: within its own team's guarantee: rule 5 does not ask.
        keeper: the team itself, where part of what is kept for guarantees is its own; else None.
    """

    request: Amounts
    timeout_seconds: int
    beyond: int
    exempt: bool
    keeper: str | None


class Entry(NamedTuple):
    """A head in its group; the smallest goes first (rule 2)."""

    share: int
    last_served: int
    age: tuple[int, int, str]
    stamp: int
    run: Run


class Group:
    """The heads of one class and kind."""

    __slots__ = ("below", "entries", "kind")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.entries: list[Entry] = []
        self.below: set[str] = set()  # teams with a less urgent head that is not in the line-up yet


class Lineup:
    """Groups by class. An entry is dropped when its team was lined up anew: stamps tell."""

    def __init__(self) -> None:
        self.classes: dict[int, dict[Kind, Group]] = {}
        self._stamps: dict[str, int] = {}

    def renew(self, team: str) -> None:
        """Take all heads of a team out."""
        self._stamps[team] = self._stamps.get(team, 0) + 1

    def add(self, run: Run, kind: Kind, share: int, last_served: int, *, more: bool) -> None:
        """Put a head in; `more` says that its team has a less urgent one behind it."""
        groups = self.classes.setdefault(run.weight, {})
        group = groups.get(kind)
        if group is None:
            group = groups[kind] = Group(kind)
        stamp = self._stamps[run.team]
        heapq.heappush(group.entries, Entry(share, last_served, run.age, stamp, run))
        if more:
            group.below.add(run.team)

    def heads(self, weight: int) -> list[tuple[Group, Entry]]:
        """Return each group of a class with its first head; empty groups are dropped."""
        groups = self.classes.get(weight, {})
        found: list[tuple[Group, Entry]] = []
        empty: list[Kind] = []
        stamps = self._stamps
        for kind, group in groups.items():
            entries = group.entries
            while entries and entries[0].stamp != stamps[entries[0].run.team]:
                heapq.heappop(entries)
            if entries:
                found.append((group, entries[0]))
            else:
                empty.append(kind)
        for kind in empty:
            del groups[kind]
        if not groups:
            self.classes.pop(weight, None)
        return found

    def take(self, group: Group) -> Entry:
        """Remove and return the first head of a group that has one."""
        return heapq.heappop(group.entries)

    def put_back(self, group: Group, entry: Entry) -> None:
        """Undo `take`; the group may have been dropped as empty meanwhile."""
        home = self.classes.setdefault(entry.run.weight, {}).setdefault(group.kind, group)
        heapq.heappush(home.entries, entry)

    def wait_below(self, weight: int, kind: Kind, team: str) -> None:
        """Note that a team has a less urgent head behind a lined-up one that is not in the line-up."""
        self.classes[weight][kind].below.add(team)

    def next_class(self, after: int) -> int | None:
        """Return the next less urgent class that has heads; None when there is none."""
        return min((weight for weight in self.classes if weight > after), default=None)

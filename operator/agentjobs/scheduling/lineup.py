"""The heads of the teams' lines, grouped so that what stops one of a group stops all of it.

A head's place among others depends on its team; whether it may start depends, but for the order, on its
group alone: its shape (request and timeout), in which resources it goes beyond its share, and whose
guarantee it may use. So a look at a full pool costs the number of groups, not of teams.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import NamedTuple

from agentjobs.scheduling.books import Team
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
    run: Run


class Group:
    """The heads of one class and kind.

    Attributes:
        entries: in order; never empty.
        behind: by class and team, heads that were taken out because one of this group parks them.
    """

    __slots__ = ("behind", "entries", "kind")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.entries: list[Entry] = []
        self.behind: set[tuple[int, str]] = set()

    def after(self, entry: Entry) -> Entry | None:
        """Return the entry that follows one, which may have been taken out; None at the end."""
        position = bisect_right(self.entries, entry)
        return self.entries[position] if position < len(self.entries) else None


class Heads:
    """The heads of one class.

    Attributes:
        groups: by what their heads have in common.
        placed: by team, its head and in which group it is.
        outdated: teams that changed since they were lined up; they are lined up anew when it matters.
        parking: groups that have something behind them.
    """

    __slots__ = ("groups", "outdated", "parking", "placed")

    def __init__(self) -> None:
        self.groups: dict[Kind, Group] = {}
        self.placed: dict[str, tuple[Entry, Group]] = {}
        self.outdated: set[str] = set()
        self.parking: set[Group] = set()

    def put(self, kind: Kind, entry: Entry) -> None:
        """Put a head in; its team must have none there."""
        group = self.groups.get(kind)
        if group is None:
            group = self.groups[kind] = Group(kind)
        insort(group.entries, entry)
        self.placed[entry.run.team] = (entry, group)

    def take(self, team: str) -> None:
        """Take a team's head out, where it has one."""
        placed = self.placed.pop(team, None)
        if placed is not None:
            entry, group = placed
            del group.entries[bisect_left(group.entries, entry)]
            if not group.entries:
                del self.groups[group.kind]
                self.parking.discard(group)


class Lineup:
    """The heads by class weight."""

    def __init__(self) -> None:
        self.classes: dict[int, Heads] = {}

    def outdate(self, team: Team) -> None:
        """Note that a team changed."""
        for weight in team.lines:
            if weight not in self.classes:
                self.classes[weight] = Heads()
        for heads in self.classes.values():
            heads.outdated.add(team.id)

    def park(self, run: Run, weight: int, group: Group) -> None:
        """Take a head out because one of a group, of a more urgent class, parks it (rule 6)."""
        self.classes[run.weight].take(run.team)
        self.classes[weight].parking.add(group)
        group.behind.add((run.weight, run.team))

    def release(self, weight: int, group: Group) -> None:
        """Line up anew what a group parked: it is not stopped any more."""
        for below, team in group.behind:
            self.classes[below].outdated.add(team)
        group.behind.clear()
        self.classes[weight].parking.discard(group)

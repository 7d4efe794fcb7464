"""The heads of the teams' lines, grouped so that what stops one of a group stops all of it.

A head's place among others depends on its team; whether it may start depends, but for the order, on its
group alone: its shape (request and timeout), in which resources it goes beyond its share, and whose
guarantee it may use. So a look at a full pool costs the number of groups, not of teams.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from agentjobs.scheduling.model import Run
from agentjobs.scheduling.reservation import Openings
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
    """

    __slots__ = ("entries", "kind")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.entries: list[Entry] = []

    def after(self, entry: Entry) -> Entry | None:
        """Return the entry that follows one, which may have been taken out; None at the end."""
        position = bisect_right(self.entries, entry)
        return self.entries[position] if position < len(self.entries) else None


_NO_GROUPS: Mapping[Kind, Group] = {}


class Heads:
    """The heads of one class. A team's head is lined up in a group, noted, parked, or not here at all.

    Attributes:
        groups: by request, and by what their heads have in common.
        noted: by request, teams that are lined up when a run that asks for this may start.
        parked: by kind, teams that wait until a more urgent run of their own, of this kind, is not parked.
        seen: up to which change of a team this class is in step.
    """

    __slots__ = ("_aside", "_placed", "groups", "noted", "parked", "seen")

    def __init__(self) -> None:
        self.groups: dict[Amounts, dict[Kind, Group]] = {}
        self.noted: dict[Amounts, set[str]] = {}
        self.parked: dict[Kind, set[str]] = {}
        self.seen = 0
        self._placed: dict[str, tuple[Entry, Group]] = {}
        self._aside: dict[str, tuple[dict[Any, set[str]], Amounts | Kind]] = {}

    def among(self, openings: Openings | None) -> list[Group]:
        """Return the groups that find an opening; None is the whole pool."""
        if openings is None:
            return [group for groups in self.groups.values() for group in groups.values()]
        return [
            group
            for request, longest in openings.items()
            for kind, group in self.groups.get(request, _NO_GROUPS).items()
            if longest is None or kind.timeout_seconds <= longest or kind.exempt
        ]

    def put(self, kind: Kind, entry: Entry) -> None:
        """Line a head up; its team must have none here."""
        groups = self.groups.setdefault(kind.request, {})
        group = groups.get(kind)
        if group is None:
            group = groups[kind] = Group(kind)
        insort(group.entries, entry)
        self._placed[entry.run.team] = (entry, group)

    def note(self, team: str, request: Amounts) -> None:
        """Only note what a team's head asks for."""
        known = self._aside.get(team)
        if known is None or known[0] is not self.noted or known[1] != request:
            self._set_aside(team, self.noted, request)

    def park(self, team: str, kind: Kind) -> None:
        """Take a team's head out because a more urgent run of its own, of this kind, parks it (rule 6)."""
        self._set_aside(team, self.parked, kind)

    def take(self, team: str) -> None:
        """Take a team's head out, wherever it is."""
        placed = self._placed.pop(team, None)
        if placed is not None:
            entry, group = placed
            del group.entries[bisect_left(group.entries, entry)]
            if not group.entries:
                self._close(group.kind)
        elif team in self._aside:
            where, key = self._aside.pop(team)
            where[key].discard(team)
            if not where[key]:
                del where[key]

    def _set_aside(self, team: str, where: dict[Any, set[str]], key: Amounts | Kind) -> None:
        self.take(team)
        where.setdefault(key, set()).add(team)
        self._aside[team] = (where, key)

    def _close(self, kind: Kind) -> None:
        groups = self.groups[kind.request]
        del groups[kind]
        if not groups:
            del self.groups[kind.request]


class Lineup:
    """The heads by class weight, and which teams changed."""

    def __init__(self) -> None:
        self.classes: defaultdict[int, Heads] = defaultdict(Heads)
        self._changes = 0
        self._changed: OrderedDict[str, int] = OrderedDict()  # by team, its last change; the newest last

    def outdate(self, team: str) -> None:
        """Note that a team changed."""
        self._changes += 1
        self._changed[team] = self._changes
        self._changed.move_to_end(team)

    def news(self, heads: Heads) -> list[str]:
        """Return the teams that changed since a class asked last."""
        teams = []
        for team, change in reversed(self._changed.items()):
            if change <= heads.seen:
                break
            teams.append(team)
        heads.seen = self._changes
        return teams

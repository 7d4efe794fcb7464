"""The default policy, in the words of docs/scheduling.md.

Classes first; within a class the team that holds least for its weight. A team may always use its share of
the pool, and more while some stays free for others. What is guaranteed is kept for those who ask for it.
The first run that does not fit gets a promise that is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from heapq import heapify, heappop, heappush
from typing import ClassVar

from agentjobs.scheduling import explain, rules
from agentjobs.scheduling.books import Books, Team
from agentjobs.scheduling.lineup import Entry, Group, Heads, Lineup
from agentjobs.scheduling.model import Run, Start, Wait
from agentjobs.scheduling.resources import NOTHING, Amounts
from agentjobs.scheduling.rulebook import Rulebook


class FairShare:
    """Proposes starts in the order of the rules; keeps what it derives from the books in step with them."""

    name: ClassVar[str] = "fair-share"
    takes_turns: ClassVar[bool] = True

    _lineup: Lineup  # made anew when settings or capacity changed, the first time at the first look

    def __init__(self) -> None:
        self._rulebook = Rulebook()
        self._shares: dict[str, int] = {}  # by team: its place among teams (rule 2)

    # -- the pass --------------------------------------------------------------------------------

    def propose(self, books: Books, now: int) -> Iterator[Start]:
        """Yield what starts now, in order; the pool has counted each as held before the next is asked for."""
        told = books.reservation
        self.refresh(books, now)
        while (yield from self._pass(books, now)):
            pass
        self._rulebook.booking.tell(books, told, now)

    def _pass(self, books: Books, now: int) -> Generator[Start, None, bool]:
        """Go through the classes once; return whether a start may let one start that was looked at before.

        It may where less is kept for guarantees now, or where it delayed the reservation's holder.
        """
        for weight in sorted(books.weights):
            while (start := self._first(books, weight, now)) is not None:
                kept = self._rulebook.kept_total
                yield start
                self.refresh(books, now)
                if start.guaranteed or self._rulebook.kept_total != kept:
                    return True
            if self._closed(books, weight, now):
                break
        return False

    def _first(self, books: Books, weight: int, now: int) -> Start | None:
        """Return the first start of a class; a head before it that lacks room takes the reservation."""
        holder = self._rulebook.booking.holder
        if holder is not None and holder.weight == weight and self._rulebook.holder_fits(books, holder):
            return Start(holder, books.settings.start_timeout_seconds)
        heads = self._heads(books, weight, now)
        while heads:
            entry, group = heappop(heads)
            parked_by = self._rulebook.parked_by(books, entry.run)
            if parked_by is not None:
                # It comes into play again when the run above it is not stopped any more.
                team = books.teams[entry.run.team]
                self._lineup.classes[weight].park(team.id, self._rulebook.kind(books, team, parked_by[0]))
            elif not books.has_room(entry.run.request):
                if self._rulebook.booking.take(books, entry.run, now):
                    heads = self._heads(books, weight, now)
                continue  # the rest of its group has no room either
            else:
                start = self._rulebook.how(books, entry.run, group.kind, now)
                if start is not None:
                    return start
            following = group.after(entry)
            if following is not None:
                heappush(heads, (following, group))
        return None

    def _heads(self, books: Books, weight: int, now: int) -> list[tuple[Entry, Group]]:
        """Return, as a heap, the first heads of those groups that may start or take the reservation."""
        rulebook, lined = self._rulebook, self._lineup.classes[weight]
        openings = None if self._reservation_open(books, weight) else rulebook.booking.openings(books, now)
        if openings is not None and not openings:
            return []
        kept = rulebook.kept_total != NOTHING
        self._catch_up(books, lined, weight, openings)
        heads = [
            (group.entries[0], group)
            for group in lined.among(openings)
            if not (kept or group.kind.beyond) or not rulebook.parked(group.kind, books.free)
        ]
        heapify(heads)
        return heads

    def _closed(self, books: Books, weight: int, now: int) -> bool:
        """Whether there is nothing to be had for a class: no run finds room, and the reservation is taken."""
        return not self._reservation_open(books, weight) and not self._rulebook.booking.openings(books, now)

    def _reservation_open(self, books: Books, weight: int) -> bool:
        return books.reservation is None or books.reservation.weight > weight

    def why(self, books: Books, run: Run, now: int) -> Wait | None:
        """Return which rule stops a run now; None when it would start at the next look."""
        self.refresh(books, now)
        return explain.why(self._rulebook, books, run, now)

    # -- keeping in step -------------------------------------------------------------------------

    def refresh(self, books: Books, now: int) -> None:
        """Take in what changed in the books, and what time alone changed."""
        if books.stretched:
            self._rulebook.renew(books)
            self._lineup = Lineup()
            books.changed.update(books.teams)
            books.stretched = False
        changed, books.changed = books.changed, set()
        changed |= self._rulebook.known.renew(books, changed, now)
        for name in changed:
            team = books.teams[name]
            self._lineup.outdate(name)
            self._shares[name] = self._rulebook.standing.dominant_share(team)
            self._rulebook.keep(books, team)
        self._rulebook.booking.renew(books)
        books.look_again = self._rulebook.known.look_again

    def _catch_up(self, books: Books, lined: Heads, weight: int, wanted: Collection[Amounts] | None) -> None:
        """Line up the teams that changed, if what their heads ask for is wanted (None: whatever it is).

        The others are noted: they are lined up when it is.
        """
        changed, holder = self._lineup.news(lined), self._rulebook.booking.holder
        for kind, teams in lined.parked.items():
            if not self._rulebook.parked(kind, books.free):
                changed += teams
            elif holder is not None and holder.team in teams:
                changed.append(holder.team)  # the share of the reservation's holder is waived
        for name in changed:
            line = books.teams[name].lines.get(weight)
            if line is None or wanted is None or line.head.request in wanted:
                self._line_up(books, lined, books.teams[name], weight)
            else:
                lined.note(name, line.head.request)
        for request in list(lined.noted) if wanted is None else wanted:
            for name in list(lined.noted.get(request, ())):
                self._line_up(books, lined, books.teams[name], weight)

    def _line_up(self, books: Books, lined: Heads, team: Team, weight: int) -> None:
        """Put a team's head of a class in, by what the team holds now, where no limit stops it."""
        lined.take(team.id)
        if weight in team.lines and not rules.limited(team, weight):
            run = team.lines[weight].head
            entry = Entry(self._shares[team.id], team.last_served, run.age, run)
            lined.put(self._rulebook.kind(books, team, run), entry)

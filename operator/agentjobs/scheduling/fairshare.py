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
from agentjobs.scheduling.known import Known
from agentjobs.scheduling.lineup import Entry, Group, Heads, Kind, Lineup
from agentjobs.scheduling.model import Run, Start, Wait, WaitReason
from agentjobs.scheduling.reservation import Booking
from agentjobs.scheduling.resources import NOTHING, Amounts, Bounds
from agentjobs.scheduling.rules import Standing


class FairShare:
    """Proposes starts in the order of the rules; keeps what it derives from the books in step with them."""

    name: ClassVar[str] = "fair-share"

    # Made anew when settings or capacity changed, the first time at the first look.
    standing: Standing
    _lineup: Lineup
    _kept: dict[str, Amounts]  # by team: what rule 5 keeps for it
    _kept_total: Amounts

    def __init__(self) -> None:
        self.booking = Booking()
        self.known = Known()
        self._shares: dict[str, int] = {}  # by team: its place among teams (rule 2)

    # -- the pass --------------------------------------------------------------------------------

    def propose(self, books: Books, now: int) -> Iterator[Start]:
        """Yield what starts now, in order; the pool has counted each as held before the next is asked for."""
        told = books.reservation
        self.refresh(books, now)
        while (yield from self._pass(books, now)):
            pass
        self.booking.tell(books, told, now)

    def _pass(self, books: Books, now: int) -> Generator[Start, None, bool]:
        """Go through the classes once; return whether a start may let one start that was looked at before.

        It may where less is kept for guarantees now, or where it delayed the reservation's holder.
        """
        for weight in sorted(books.weights):
            while (start := self._first(books, weight, now)) is not None:
                kept = self._kept_total
                yield start
                self.refresh(books, now)
                if start.guaranteed or self._kept_total != kept:
                    return True
            if self._closed(books, weight, now):
                break
        return False

    def _first(self, books: Books, weight: int, now: int) -> Start | None:
        """Return the first start of a class; a head before it that lacks room takes the reservation."""
        holder = self.booking.holder
        if holder is not None and holder.weight == weight and self._holder_fits(books, holder):
            return Start(holder, books.settings.start_timeout_seconds)
        heads = self._heads(books, weight, now)
        while heads:
            entry, group = heappop(heads)
            parked_by = self.parked_by(books, entry.run)
            if parked_by is not None:
                # It comes into play again when the run above it is not stopped any more.
                team = books.teams[entry.run.team]
                self._lineup.classes[weight].park(team.id, self.kind(books, team, parked_by[0]))
            elif not books.has_room(entry.run.request):
                if self.booking.take(books, entry.run, now):
                    heads = self._heads(books, weight, now)
                continue  # the rest of its group has no room either
            else:
                start = self.how(books, entry.run, group.kind, now)
                if start is not None:
                    return start
            following = group.after(entry)
            if following is not None:
                heappush(heads, (following, group))
        return None

    def _heads(self, books: Books, weight: int, now: int) -> list[tuple[Entry, Group]]:
        """Return, as a heap, the first heads of those groups that may start or take the reservation."""
        openings = None if self._reservation_open(books, weight) else self.booking.openings(books, now)
        if openings is not None and not openings:
            return []
        lined, free, kept = self._lineup.classes[weight], books.free, self._kept_total != NOTHING
        self._catch_up(books, lined, weight, openings)
        heads = [
            (group.entries[0], group)
            for group in lined.among(openings)
            if not (kept or group.kind.beyond) or not self.parked(group.kind, free)
        ]
        heapify(heads)
        return heads

    def _holder_fits(self, books: Books, holder: Run) -> bool:
        """Whether the holder starts: it has room and leaves what is guaranteed; its share is waived."""
        if not books.has_room(holder.request):
            return False
        return self._kept_total == NOTHING or self._guarantee_allows(
            self.kind(books, books.teams[holder.team], holder), books.free
        )

    def _closed(self, books: Books, weight: int, now: int) -> bool:
        """Whether there is nothing to be had for a class: no run finds room, and the reservation is taken."""
        return not self._reservation_open(books, weight) and not self.booking.openings(books, now)

    def _reservation_open(self, books: Books, weight: int) -> bool:
        return books.reservation is None or books.reservation.weight > weight

    # -- the rules, for a kind -------------------------------------------------------------------

    def stopped(self, books: Books, team: Team, head: Run) -> WaitReason | None:
        """Return which of rules 3, 5 and 4 stops a head; its share does not stop the reservation's holder."""
        stop = rules.limit_stop(team, head) or self.parked(self.kind(books, team, head), books.free)
        holds = books.reservation is not None and books.reservation.uid == head.uid
        return None if holds and stop is WaitReason.TEAM_SHARE else stop

    def parked_by(self, books: Books, run: Run) -> tuple[Run, WaitReason] | None:
        """Return the more urgent run of its own team that parks a run (rule 6), and what stops that one."""
        team = books.teams[run.team]
        for weight in team.classes:
            if weight >= run.weight:
                break
            head = team.lines[weight].head
            stop = self.stopped(books, team, head)
            if stop is not None and stop.parks:
                return head, stop
        return None

    def parked(self, kind: Kind, free: Bounds) -> WaitReason | None:
        """Return which of rules 5 and 4 stops every head of a kind."""
        if self._kept_total != NOTHING and not self._guarantee_allows(kind, free):
            return WaitReason.GUARANTEED_TO_OTHERS
        if kind.beyond and not rules.headroom_left(self.standing, free, kind.request, kind.beyond):
            return WaitReason.TEAM_SHARE
        return None

    def _guarantee_allows(self, kind: Kind, free: Bounds) -> bool:
        return kind.exempt or rules.leaves_guaranteed(free, kind.request, self.kept_for_others(kind))

    def kept_for_others(self, kind: Kind) -> Amounts:
        """Return what rule 5 keeps for other teams than a kind's own."""
        return self._kept_total.minus(self._kept.get(kind.keeper or "", NOTHING))

    def how(self, books: Books, run: Run, kind: Kind, now: int) -> Start | None:
        """Return how a run starts that has room and passes rules 3 to 6; None behind the reservation."""
        if kind.exempt and self.booking.binds_others(run):
            return Start(run, books.settings.start_timeout_seconds, guaranteed=True)
        alone = self.known.alone == run.team
        return self.booking.start(books, self.standing, run, now, alone=alone)

    def kind(self, books: Books, team: Team, run: Run) -> Kind:
        """Return the kind of a head, by what its team holds now."""
        standing = self.standing
        beyond = 0
        if self.known.alone != team.id:
            beyond = rules.beyond_share(standing.top(team.id), team.held, run.request)
        owed = standing.guaranteed.get(team.id)
        if owed is None:
            return Kind(run.request, run.timeout_seconds, beyond, False, None)
        exempt = rules.within_guarantee(owed, team.held, run.request, books.capacity)
        keeper = team.id if not exempt and team.id in self._kept else None
        return Kind(run.request, run.timeout_seconds, beyond, exempt, keeper)

    def why(self, books: Books, run: Run, now: int) -> Wait | None:
        """Return which rule stops a run now; None when it would start at the next look."""
        self.refresh(books, now)
        return explain.why(self, books, run, now)

    # -- keeping in step -------------------------------------------------------------------------

    def refresh(self, books: Books, now: int) -> None:
        """Take in what changed in the books, and what time alone changed."""
        if books.stretched:
            self.standing = Standing(books.settings, books.capacity)
            self._lineup = Lineup()
            self._kept, self._kept_total = {}, NOTHING
            books.changed.update(books.teams)
            books.stretched = False
        changed, books.changed = books.changed, set()
        changed |= self.known.renew(books, changed, now)
        for name in changed:
            team = books.teams[name]
            self._lineup.outdate(name)
            self._shares[name] = self.standing.dominant_share(team)
            if name in self.standing.guaranteed:
                self._keep(books, team)
        self.booking.renew(books)
        books.look_again = self.known.look_again

    def _keep(self, books: Books, team: Team) -> None:
        """Work out anew what is kept for a team."""
        before = self._kept.pop(team.id, NOTHING)
        kept = rules.demand(books, self.standing, team)
        if kept != NOTHING:
            self._kept[team.id] = kept
        self._kept_total = self._kept_total.minus(before).plus(kept)

    def _catch_up(self, books: Books, lined: Heads, weight: int, wanted: Collection[Amounts] | None) -> None:
        """Line up the teams that changed, if what their heads ask for is wanted (None: whatever it is).

        The others are noted: they are lined up when it is.
        """
        changed, holder = self._lineup.news(lined), self.booking.holder
        for kind, teams in lined.parked.items():
            if not self.parked(kind, books.free):
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
            lined.put(self.kind(books, team, run), entry)

"""The default policy, in the words of docs/scheduling.md.

Classes first; within a class the team that holds least for its weight. A team may always use its share of
the pool, and more while some stays free for others. What is guaranteed is kept for those who ask for it.
The first run that does not fit gets a promise that is kept.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from heapq import heapify, heappop, heappush
from typing import ClassVar

from agentjobs.scheduling import explain, rules
from agentjobs.scheduling.books import Books, Team
from agentjobs.scheduling.known import Known
from agentjobs.scheduling.lineup import Entry, Group, Kind, Lineup
from agentjobs.scheduling.model import Run, Start, Wait, WaitReason
from agentjobs.scheduling.reservation import Booking, beside, has_room
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
        for weight in sorted(self._lineup.classes):
            while (start := self._first(books, weight, now)) is not None:
                kept = self._kept_total
                yield start
                self.refresh(books, now)
                if start.guaranteed or self._kept_total != kept:
                    return True
            if self._closed(books, weight):
                break
        return False

    def _first(self, books: Books, weight: int, now: int) -> Start | None:
        """Return the first start of a class; a head before it that lacks room takes the reservation."""
        holder = self.booking.holder
        if holder is not None and holder.weight == weight and self._holder_fits(books, holder):
            return Start(holder, books.settings.start_timeout_seconds)
        if self._closed(books, weight):
            return None
        self._line_up_to(books, weight)
        heads = self._heads(books, weight, now)
        while heads:
            entry, group = heappop(heads)
            if not self._parked_above(books, entry.run):
                if not has_room(books, entry.run.request):
                    if self.booking.take(books, entry.run, now):
                        heads = [] if self._closed(books, weight) else self._heads(books, weight, now)
                    continue  # the rest of its group has no room either
                start = self.how(books, entry.run, group.kind, now)
                if start is not None:
                    return start
            following = group.after(entry)
            if following is not None:
                heappush(heads, (following, group))
        return None

    def _heads(self, books: Books, weight: int, now: int) -> list[tuple[Entry, Group]]:
        """Return, as a heap, the first heads of those groups that may start or take the reservation."""
        lined, free = self._lineup.classes[weight], books.free
        for group in [group for group in lined.parking if not self.parked(group.kind, free)]:
            self._lineup.release(weight, group)
        groups = list(lined.groups.values())
        if not self._reservation_open(books, weight):
            groups = self._with_room(books, groups, now)
        kept = self._kept_total != NOTHING
        heads = [
            (group.entries[0], group)
            for group in groups
            if not (group.kind.beyond or kept) or not self.parked(group.kind, free)
        ]
        heapify(heads)
        return heads

    def _with_room(self, books: Books, groups: list[Group], now: int) -> list[Group]:
        """Return the groups that find room which the reservation's holder does not need."""
        fitting = {
            request for request in {group.kind.request for group in groups} if has_room(books, request)
        }
        groups = [group for group in groups if group.kind.request in fitting]
        seen = self.booking.outlook(books, now)
        assert seen is not None
        longest = self.booking.longest(books, now) or 0
        return [
            group
            for group in groups
            if group.kind.exempt
            or group.kind.timeout_seconds <= longest
            or beside(books, group.kind.request, seen)
        ]

    def _parked_above(self, books: Books, run: Run) -> bool:
        """Whether a more urgent run of its own team parks a head (rule 6); then it is taken out.

        It comes into play again when the run above it finds itself short of room alone.
        """
        for weight in books.teams[run.team].classes:
            if weight >= run.weight:
                break
            placed = self._lineup.classes[weight].placed.get(run.team)
            if placed is not None and self.stopped(books, placed[0].run, placed[1].kind):
                self._lineup.park(run, weight, placed[1])
                return True
        return False

    def _holder_fits(self, books: Books, holder: Run) -> bool:
        """Whether the holder starts: it has room and leaves what is guaranteed; its share is waived."""
        if not has_room(books, holder.request):
            return False
        return self._kept_total == NOTHING or self._guarantee_allows(
            self.kind(books, books.teams[holder.team], holder), books.free
        )

    def _closed(self, books: Books, weight: int) -> bool:
        """Whether there is nothing to be had for a class: every slot is taken, and the reservation too."""
        slots = books.free.slots
        return slots is not None and slots <= 0 and not self._reservation_open(books, weight)

    def _reservation_open(self, books: Books, weight: int) -> bool:
        return books.reservation is None or books.reservation.weight > weight

    # -- the rules, for a kind -------------------------------------------------------------------

    def stopped(self, books: Books, head: Run, kind: Kind) -> WaitReason | None:
        """Return which of rules 5 and 4 stops a head; its share does not stop the reservation's holder."""
        stop = self.parked(kind, books.free)
        holds = books.reservation is not None and books.reservation.uid == head.uid
        return None if holds and stop is WaitReason.TEAM_SHARE else stop

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
            self._lineup.outdate(team)
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

    def _line_up_to(self, books: Books, weight: int) -> None:
        """Line up the teams that changed, in the classes down to one."""
        for above, heads in self._lineup.classes.items():
            if above <= weight and heads.outdated:
                for team in heads.outdated:
                    heads.take(team)
                    self._line_up(books, books.teams[team], above)
                heads.outdated.clear()

    def _line_up(self, books: Books, team: Team, weight: int) -> None:
        """Put a team's head of a class in, by what the team holds now, where no limit stops it."""
        if weight not in team.lines:
            return
        for above in team.classes:
            run = team.lines[above].head
            stop = rules.limit_stop(team, run)
            if above == weight and stop is None:
                entry = Entry(self._shares[team.id], team.last_served, run.age, run)
                self._lineup.classes[weight].put(self.kind(books, team, run), entry)
            if above == weight or stop is WaitReason.TEAM_LIMIT:
                return  # a team's limit parks what is below it; a criticalLimit parks critical runs alone

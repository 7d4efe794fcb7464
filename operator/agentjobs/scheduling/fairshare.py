"""The default policy, in the words of docs/scheduling.md.

Classes first; within a class the team that holds least for its weight. A team may always use its share of
the pool, and more while some stays free for others. What is guaranteed is kept for those who ask for it.
The first run that does not fit gets a promise that is kept.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import ClassVar

from agentjobs.scheduling import explain, rules
from agentjobs.scheduling.books import Books, Team
from agentjobs.scheduling.known import Known
from agentjobs.scheduling.lineup import Entry, Group, Kind, Lineup
from agentjobs.scheduling.model import Run, Start, Wait, WaitReason
from agentjobs.scheduling.reservation import Booking, has_room
from agentjobs.scheduling.resources import NOTHING, Amounts, Bounds
from agentjobs.scheduling.rules import Standing


class FairShare:
    """Proposes starts in the order of the rules; keeps what it derives from the books in step with them."""

    name: ClassVar[str] = "fair-share"

    def __init__(self) -> None:
        self.booking = Booking()
        self.known = Known()
        self.standing = Standing(Books().settings, Bounds())
        self._lineup = Lineup()
        self._lined: dict[
            str, dict[int, Kind]
        ] = {}  # by team and class, the most urgent first: what is lined up
        self._shares: dict[str, int] = {}  # by team: its place among teams (rule 2)
        self._kept: dict[str, Amounts] = {}  # by team: what rule 5 keeps for it
        self._kept_total = NOTHING

    # -- the pass --------------------------------------------------------------------------------

    def propose(self, books: Books, now: int) -> Iterator[Start]:
        """Yield what starts now, in order; the pool has counted each as held before the next is asked for."""
        self.refresh(books, now)
        told = books.reservation
        while (yield from self._pass(books, now)):
            pass
        self.booking.tell(books, told, now)

    def _pass(self, books: Books, now: int) -> Generator[Start, None, bool]:
        """Go through the classes once; return whether a start may let one start that was looked at before.

        It may where less is kept for guarantees now, or where it delayed the reservation's holder.
        """
        seen = -1
        while (weight := self._next_class(books, seen)) is not None:
            slots = books.free.slots
            if slots is not None and slots <= 0 and not self._reservation_open(books, weight):
                break  # nothing finds room, and the reservation is a more urgent run's
            if (yield from self._class(books, weight, now)):
                return True
            seen = weight
        return False

    def _next_class(self, books: Books, seen: int) -> int | None:
        """Return the next less urgent class with a head in the line-up, or with the reservation's holder."""
        weight = self._lineup.next_class(seen)
        holder = self.booking.holder(books)
        if holder is None or holder.weight <= seen:
            return weight
        return holder.weight if weight is None else min(weight, holder.weight)

    def _class(self, books: Books, weight: int, now: int) -> Generator[Start, None, bool]:
        """Start what may start of one class, and find the reservation's holder among what may not.

        Returns whether the pass must begin anew.
        """
        aside: list[tuple[Entry, Group]] = []
        again = False
        while not again:
            start, unfit = self._first(books, weight, now, aside)
            if start is None:
                break
            kept = self._kept_total
            yield start
            self.refresh(books, now)
            self._line_up_to(books, books.teams[start.run.team], weight)
            again = start.guaranteed or self._kept_total != kept
        for entry, group in aside:
            self._lineup.put_back(group, entry)
        for _, group in (*unfit, *aside):
            below, group.below = group.below, set()
            for team in below:
                self._line_up_next(books, books.teams[team])
        self._line_up_behind_holder(books, weight)
        return again

    def _line_up_behind_holder(self, books: Books, weight: int) -> None:
        """Put in the next head of the holder's team: its share, which stops all others of its group, does not
        stop it, and so does not park what is behind it."""
        holder = self.booking.holder(books)
        if holder is None or holder.weight != weight or not self._lined[holder.team]:
            return
        team, kind = books.teams[holder.team], self._lined[holder.team].get(weight)
        if kind is None or team.lines[weight].head is not holder or max(self._lined[holder.team]) != weight:
            return
        if self.parked(kind, books.free) and self.stopped(books, holder, kind) is None:
            self._line_up_next(books, team)

    def _first(
        self, books: Books, weight: int, now: int, aside: list[tuple[Entry, Group]]
    ) -> tuple[Start | None, list[tuple[Entry, Group]]]:
        """Return the first start of a class, and the heads that only lack room, the first one first."""
        while True:
            holder = self.booking.holder(books)
            if holder is not None and holder.weight == weight and self._holder_fits(books, holder):
                books.reservation = None
                return Start(holder, books.settings.start_timeout_seconds), []
            ready, unfit = self._sort(books, weight, now)
            if ready is not None and self._parked_above(books, *ready):
                continue
            if self._reserve(books, weight, ready, unfit, now):
                continue
            if ready is None:
                return None, unfit
            entry, group = ready
            start = self.how(books, entry.run, group.kind, now)
            if start is not None:
                return start, unfit
            aside.append((self._lineup.take(group), group))

    def _sort(
        self, books: Books, weight: int, now: int
    ) -> tuple[tuple[Entry, Group] | None, list[tuple[Entry, Group]]]:
        """Return the first head that may start, and those that only lack room, where that matters."""
        ready: tuple[Entry, Group] | None = None
        unfit: list[tuple[Entry, Group]] = []
        free, wanted = books.free, self._reservation_open(books, weight)
        for group, entry in self._lineup.heads(weight):
            request, timeout = group.kind.request, group.kind.timeout_seconds
            stuck = not has_room(books, request) or (
                not group.kind.exempt and self.booking.delayed_by(books, request, timeout, weight, now)
            )
            if (stuck and not wanted and not group.below) or self.parked(group.kind, free):
                continue
            if stuck:
                unfit.append((entry, group))
            elif ready is None or entry < ready[0]:
                ready = (entry, group)
        unfit.sort(key=lambda pair: pair[0])
        return ready, unfit

    def _parked_above(self, books: Books, entry: Entry, group: Group) -> bool:
        """Whether a more urgent run of its own team parks a head (rule 6); then it is taken out.

        It comes into play again when the run above it finds itself short of room alone.
        """
        team = entry.run.team
        lined = self._lined[team]
        for above, kind in lined.items():
            if above >= entry.run.weight:
                return False
            head = books.teams[team].lines[above].head
            if self.stopped(books, head, kind):
                self._lineup.take(group)
                for weight in [weight for weight in lined if weight >= entry.run.weight]:
                    del lined[weight]
                self._lineup.wait_below(above, kind, team)
                return True
        return False

    def _holder_fits(self, books: Books, holder: Run) -> bool:
        """Whether the holder starts: it has room and leaves what is guaranteed; its share is waived."""
        kind, free = self.kind(books, books.teams[holder.team], holder), books.free
        return self._guarantee_allows(kind, free) and has_room(books, holder.request)

    def _reserve(
        self,
        books: Books,
        weight: int,
        ready: tuple[Entry, Group] | None,
        unfit: list[tuple[Entry, Group]],
        now: int,
    ) -> bool:
        """Give the reservation to the first head that lacks room, unless one as urgent has it already.

        Returns whether anything changed, so that the class is to be looked at again.
        """
        if not self._reservation_open(books, weight):
            return False
        for entry, group in unfit:
            if ready is not None and ready[0] < entry:
                return False
            if self._parked_above(books, entry, group) or self.booking.take(books, entry.run, now):
                return True
        return False

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
        if not self._guarantee_allows(kind, free):
            return WaitReason.GUARANTEED_TO_OTHERS
        if kind.beyond and not rules.headroom_left(self.standing, free, kind.request, kind.beyond):
            return WaitReason.TEAM_SHARE
        return None

    def _guarantee_allows(self, kind: Kind, free: Bounds) -> bool:
        if kind.exempt or self._kept_total == NOTHING:
            return True
        return rules.leaves_guaranteed(free, kind.request, self.kept_for_others(kind))

    def kept_for_others(self, kind: Kind) -> Amounts:
        """Return what rule 5 keeps for other teams than a kind's own."""
        return self._kept_total.minus(self._kept.get(kind.keeper or "", NOTHING))

    def how(self, books: Books, run: Run, kind: Kind, now: int) -> Start | None:
        """Return how a run starts that has room and passes rules 3 to 6; None behind the reservation."""
        if kind.exempt and self.booking.binds_others(books, run):
            return Start(run, books.settings.start_timeout_seconds, guaranteed=True)
        alone = self.known.alone == run.team
        return self.booking.start(books, self.standing, run, now, alone=alone)

    def kind(self, books: Books, team: Team, run: Run) -> Kind:
        """Return the kind of a head, by what its team holds now."""
        alone = self.known.alone == team.id
        beyond = (
            0
            if alone
            else rules.beyond_share(self.standing, self.standing.top(team.id), team.held, run.request)
        )
        owed = self.standing.guaranteed.get(team.id)
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
            self._lineup, self._lined = Lineup(), {}
            self._kept, self._kept_total = {}, NOTHING
            books.changed.update(books.teams)
            books.stretched = False
        changed, books.changed = books.changed, set()
        changed |= self.known.renew(books, changed, now)
        for name in sorted(changed):
            self._line_up(books, books.teams[name])
        books.look_again = self.known.look_again

    def _line_up(self, books: Books, team: Team) -> None:
        """Put a team's most urgent head in the line-up, by what the team holds now."""
        self._lineup.renew(team.id)
        self._lined[team.id] = {}
        self._shares[team.id] = self.standing.dominant_share(team)
        before = self._kept.pop(team.id, NOTHING)
        kept = rules.demand(books, self.standing, team)
        if kept != NOTHING:
            self._kept[team.id] = kept
        if kept != before:
            self._kept_total = self._kept_total.minus(before).plus(kept)
        self._line_up_next(books, team)

    def _line_up_to(self, books: Books, team: Team, weight: int) -> None:
        """Put a team's heads in down to a class: it was lined up anew in the middle of that class."""
        while self._lined[team.id] and max(self._lined[team.id]) < weight and self._line_up_next(books, team):
            pass

    def _line_up_next(self, books: Books, team: Team) -> bool:
        """Put in the next less urgent head of a team that no limit stops; False when there is none."""
        lined = self._lined[team.id]
        last = max(lined) if lined else -1
        classes = [weight for weight in team.classes if weight > last]
        for weight in classes:
            run = team.lines[weight].head
            stop = rules.limit_stop(team, run)
            if stop is WaitReason.TEAM_LIMIT:
                return False  # it parks what is below it; a criticalLimit parks critical runs alone
            if stop is None:
                kind = lined[weight] = self.kind(books, team, run)
                more = weight != classes[-1]
                self._lineup.add(run, kind, self._shares[team.id], team.last_served, more=more)
                return True
        return False

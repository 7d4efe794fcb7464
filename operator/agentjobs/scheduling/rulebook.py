"""The rules as they apply to the books now: of which kind a head is, what stops it, how it starts."""

from __future__ import annotations

from agentjobs.scheduling import rules
from agentjobs.scheduling.books import Books, Team
from agentjobs.scheduling.known import Known
from agentjobs.scheduling.lineup import Kind
from agentjobs.scheduling.model import Run, Start, WaitReason
from agentjobs.scheduling.reservation import Booking
from agentjobs.scheduling.resources import NOTHING, Amounts, Bounds
from agentjobs.scheduling.rules import Standing


class Rulebook:
    """Judges heads; keeps what rule 5 keeps for each team.

    Attributes:
        standing: what settings and capacity mean in numbers.
        kept_total: what rule 5 keeps for all teams together.
        booking: the reservation (rule 7).
        known: whether a team has the pool to itself (rule 4).
    """

    # Made anew when settings or capacity changed, the first time at the first look.
    standing: Standing
    kept_total: Amounts
    _kept: dict[str, Amounts]  # by team

    def __init__(self) -> None:
        self.booking = Booking()
        self.known = Known()

    # -- keeping in step -------------------------------------------------------------------------

    def renew(self, books: Books) -> None:
        """Take in other settings or another capacity; what is kept is then worked out by `keep`."""
        self.standing = Standing(books.settings, books.capacity)
        self._kept, self.kept_total = {}, NOTHING

    def keep(self, books: Books, team: Team) -> None:
        """Work out anew what is kept for a team."""
        if team.id not in self.standing.guaranteed:
            return
        before = self._kept.pop(team.id, NOTHING)
        kept = rules.demand(books, self.standing, team)
        if kept != NOTHING:
            self._kept[team.id] = kept
        self.kept_total = self.kept_total.minus(before).plus(kept)

    # -- asking ----------------------------------------------------------------------------------

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

    def parked(self, kind: Kind, free: Bounds) -> WaitReason | None:
        """Return which of rules 5 and 4 stops every head of a kind."""
        if not self.guarantee_allows(kind, free):
            return WaitReason.GUARANTEED_TO_OTHERS
        if kind.beyond and not rules.headroom_left(self.standing, free, kind.request, kind.beyond):
            return WaitReason.TEAM_SHARE
        return None

    def guarantee_allows(self, kind: Kind, free: Bounds) -> bool:
        """Whether a head of a kind leaves what rule 5 keeps for other teams, or need not."""
        if kind.exempt or self.kept_total == NOTHING:
            return True
        return rules.leaves_guaranteed(free, kind.request, self.kept_for_others(kind))

    def kept_for_others(self, kind: Kind) -> Amounts:
        """Return what rule 5 keeps for other teams than a kind's own."""
        return self.kept_total.minus(self._kept.get(kind.keeper or "", NOTHING))

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

    def holder_fits(self, books: Books, holder: Run) -> bool:
        """Whether the holder starts: it has room and leaves what is guaranteed; its share is waived."""
        if not books.has_room(holder.request):
            return False
        return self.guarantee_allows(self.kind(books, books.teams[holder.team], holder), books.free)

    def how(self, books: Books, run: Run, kind: Kind, now: int) -> Start | None:
        """Return how a run starts that has room and passes rules 3 to 6; None behind the reservation."""
        if kind.exempt and self.booking.binds_others(run):
            return Start(run, books.settings.start_timeout_seconds, guaranteed=True)
        alone = self.known.alone == run.team
        return self.booking.start(books, self.standing, run, now, alone=alone)

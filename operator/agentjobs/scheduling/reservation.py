"""The one reservation of a pool (rule 7): when its holder starts at the latest, and who may go before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

from agentjobs.scheduling import rules
from agentjobs.scheduling.books import Books, Team
from agentjobs.scheduling.model import GRACE_SECONDS, LEAST_START_SECONDS, SECOND, Reservation, Run, Start
from agentjobs.scheduling.resources import NOTHING, Amounts, Bounds, fits, short
from agentjobs.scheduling.rules import Standing


class Outlook(NamedTuple):
    """The state of the pool at the moment the holder starts at the latest.

    Attributes:
        at: S, microseconds since the epoch.
        node: where the holder fits then; None in a pool without nodes.
        left: what is free at S beside the holder.
    """

    at: int
    node: str | None
    left: Bounds


# By request, the longest timeout in seconds with which it does not delay the holder; None: whatever it is.
Openings = Mapping[Amounts, int | None]


def _first_end(books: Books, now: int) -> int:
    """Return the position among the ends of the first one to come."""
    return bisect_left(books.ends, (now + 1,))


def outlook(books: Books, request: Amounts, position: int) -> Outlook | None:
    """Return when a request fits at the latest, from the latest ends of what holds; None when nobody can say.

    A holding that is overdue, or whose end nobody knows, is taken to hold for ever. Cost: the number of
    ends up to S.

    Args:
        position: of the first end to come.
    """
    free, ends, nodes = books.free, books.ends, books.nodes
    rooms: dict[str, Amounts] = {}  # of the nodes on which something ends by then
    fitting = nodes is None or nodes.fits(request)
    while position < len(ends):
        until, uid = ends[position]
        holding = books.holdings[uid]
        free = free.more(holding.request)
        if nodes is not None and holding.node is not None:
            fitting |= nodes.freed(holding.node, holding.request, rooms, request)
        position += 1
        if position < len(ends) and ends[position][0] == until:
            continue  # what ends together counts together
        if fitting and fits(free, request):
            node = None if nodes is None else nodes.roomiest(request, rooms=rooms)
            return Outlook(until, node, free.less(request))
    return None


def hole_seconds(at: int, now: int, timeout_seconds: int, start_timeout_seconds: int) -> int | None:
    """Return how long a run may take to start so that it surely ends by `at`; None when that is too short."""
    seconds = (at - now) // SECOND - timeout_seconds - GRACE_SECONDS
    return min(seconds, start_timeout_seconds) if seconds >= LEAST_START_SECONDS else None


def latest_end(since: int, start_seconds: int, timeout_seconds: int) -> int:
    """Return when a run decided at `since` has surely ended, microseconds since the epoch."""
    return since + (start_seconds + timeout_seconds + GRACE_SECONDS) * SECOND


class Booking:
    """What the reservation in the books means for everybody else; its promise is only ever moved forward."""

    def __init__(self) -> None:
        self.holder: Run | None = None
        self._outlook: Outlook | None = None
        self._openings: Openings | None = None
        self._worked_out: tuple[str, int] = ("", 0)  # for which holder and version of the books
        self._good = (0, 0)  # from when until when: as ends pass, S may be another

    def renew(self, books: Books) -> None:
        """Find the holder in changed books; it loses the reservation with its wait, by a change of class, at
        a limit, or when the pool has become too small for it."""
        self.holder, held = None, books.reservation
        self._openings = None
        if held is None:
            return
        run = books.waiting.get(held.uid)
        if run is None or run.weight != held.weight or _is_stopped(books, run):
            books.reservation = None
        else:
            self.holder = run

    def take(self, books: Books, run: Run, now: int) -> bool:
        """Give the reservation to a run that lacks room; False when nobody can say when it would start."""
        position = _first_end(books, now)
        seen = outlook(books, run.request, position)
        if seen is None:
            return False
        books.reservation, self.holder = Reservation(run.uid, run.weight, seen.at, seen.node), run
        self._keep(books, run, seen, now, position)
        self._openings = None
        return True

    def tell(self, books: Books, told: Reservation | None, now: int) -> None:
        """Move the promise to S as it is after a look, but never later than the holder was told before."""
        seen, held = self.outlook(books, now), books.reservation
        if seen is None or held is None:
            return
        known = told is not None and told.uid == held.uid and told.weight == held.weight
        if seen.at < held.before or not known:
            books.reservation = held._replace(before=seen.at, node=seen.node)

    def outlook(self, books: Books, now: int) -> Outlook | None:
        """Return S as it is now; None when nobody holds the reservation.

        Where nobody can say when the holder starts any more, or it has room and waits for what is guaranteed
        to others, the promise stands in for S, and what is free now for what is free then.
        """
        run, held = self.holder, books.reservation
        if run is None or held is None:
            return None
        if self._worked_out != (run.uid, books.version) or not self._good[0] <= now < self._good[1]:
            position = _first_end(books, now)
            seen = None if books.has_room(run.request) else outlook(books, run.request, position)
            seen = seen or Outlook(held.before, held.node, books.free.less(run.request))
            self._keep(books, run, seen, now, position)
        return self._outlook

    def _keep(self, books: Books, run: Run, seen: Outlook, now: int, position: int) -> None:
        self._good = (now, books.ends[position][0] if position < len(books.ends) else now)
        self._worked_out = (run.uid, books.version)
        self._outlook = seen

    def _hole(self, books: Books, seen: Outlook, timeout_seconds: int, now: int) -> int | None:
        """Return how long a run that starts now may take to start before S."""
        decided = max(now, books.last_scheduled + 1)
        return hole_seconds(seen.at, decided, timeout_seconds, books.settings.start_timeout_seconds)

    def _binding(self, books: Books, weight: int, now: int) -> Outlook | None:
        """Return the outlook that a class must respect; None when it is more urgent than the holder."""
        if books.reservation is None or weight < books.reservation.weight:
            return None
        return self.outlook(books, now)

    def binds_others(self, run: Run) -> bool:
        """Whether the reservation is held against a run, and by another team."""
        holder = self.holder
        return holder is not None and holder.team != run.team and holder.weight <= run.weight

    def takes_from_holder(self, books: Books, run: Run) -> bool:
        """Whether a run would leave the holder, of its own team, too little of the team's limits."""
        holder = self.holder
        if holder is None or holder.team != run.team:
            return False
        return not _leaves_limits(books.teams[run.team], run, holder)

    def start(self, books: Books, standing: Standing, run: Run, now: int, *, alone: bool) -> Start | None:
        """Return how a run starts that has room; None where it would delay the holder."""
        whole = books.settings.start_timeout_seconds
        seen = self._binding(books, run.weight, now)
        if seen is None:
            return Start(run, whole)
        assert books.reservation is not None
        holder = books.waiting[books.reservation.uid]
        if self.takes_from_holder(books, run):
            return None
        if beside(books, run.request, seen) and (
            alone or holder.team != run.team or _leaves_share(books, standing, run, holder, seen, now)
        ):
            return Start(run, whole, avoid_node=seen.node)
        hole = self._hole(books, seen, run.timeout_seconds, now)
        return None if hole is None else Start(run, hole, backfill=True)

    def openings(self, books: Books, now: int) -> Openings:
        """Return which requests of heads have room while the reservation is held against them."""
        if self._openings is None:
            full = books.free.slots is not None and books.free.slots <= 0  # the common case
            fitting = [] if full else [request for request in books.asked if books.has_room(request)]
            self._openings = {}
            if fitting:
                seen, longest = self.outlook(books, now), self.longest(books, now)
                assert seen is not None
                self._openings = {
                    request: None if beside(books, request, seen) else longest for request in fitting
                }
        return self._openings

    def longest(self, books: Books, now: int) -> int:
        """Return the longest timeout, in seconds, with which a run would start now in the hole before S.

        Where there is no hole, nothing is as short.
        """
        seen = self.outlook(books, now)
        if seen is None:
            return 0
        decided = max(now, books.last_scheduled + 1)
        return (seen.at - decided) // SECOND - GRACE_SECONDS - LEAST_START_SECONDS


def _is_stopped(books: Books, run: Run) -> bool:
    """Whether a limit stops a run, or no node could hold it; one larger than the pool is not in line."""
    return rules.limit_stop(books.teams[run.team], run) is not None or not books.possible(run.request)


def beside(books: Books, request: Amounts, seen: Outlook) -> bool:
    """Whether a request fits what is left at S, on a node that is not the holder's."""
    return fits(seen.left, request) and (books.nodes is None or books.nodes.fits(request, seen.node))


def _leaves_limits(team: Team, run: Run, holder: Run) -> bool:
    """Whether a run leaves the holder, of its own team, within the team's limits."""
    if short(team.settings.limit.less(team.held.plus(run.request)), holder.request):
        return False
    if not (run.critical and holder.critical):
        return True
    critical = team.held_critical.plus(run.request)
    return not short(team.settings.critical_limit.less(critical), holder.request)


def _leaves_share(books: Books, standing: Standing, run: Run, holder: Run, seen: Outlook, now: int) -> bool:
    """Whether a run leaves the holder, of its own team, within its share at S."""
    held = run.request
    for holding in books.holdings.values():
        over = holding.until is not None and now < holding.until <= seen.at
        if holding.team == run.team and not over:
            held = held.plus(holding.request)
    beyond = rules.beyond_share(standing.top(run.team), held, holder.request)
    return rules.headroom_left(standing, seen.left.less(run.request), NOTHING, beyond)

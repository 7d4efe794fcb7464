"""The one reservation of a pool (rule 7): when its holder starts at the latest, and what may start before it."""

from __future__ import annotations

from typing import NamedTuple

from agentjobs.scheduling import rules
from agentjobs.scheduling.books import Books
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


def outlook(books: Books, request: Amounts, now: int) -> Outlook | None:
    """Return when a request fits at the latest, from the latest ends of what holds; None when nobody can say.

    A holding that is overdue, or whose end nobody knows, is taken to hold for ever. Cost: the number of
    ends up to S.
    """
    freed = Amounts()
    by_node: dict[str, Amounts] = {}
    for position, (until, uid) in enumerate(books.ends):
        if until <= now:
            continue
        holding = books.holdings[uid]
        freed = freed.plus(holding.request)
        if holding.node is not None:
            by_node[holding.node] = by_node.get(holding.node, Amounts()).plus(holding.request)
        following = books.ends[position + 1][0] if position + 1 < len(books.ends) else None
        if following == until:
            continue  # all that end at the same moment count together
        free = Bounds(*(None if f is None else f + back for f, back in zip(books.free, freed, strict=True)))
        if fits(free, request):
            node = _node(books, request, by_node)
            if node is not None or books.nodes is None:
                return Outlook(until, node, free.less(request))
    return None


def _node(books: Books, request: Amounts, freed: dict[str, Amounts]) -> str | None:
    if books.nodes is None:
        return None
    roomy = books.nodes.roomiest(request)
    if roomy is not None:
        return roomy
    for node in sorted(freed):
        if node in books.nodes and fits(
            Bounds(*books.nodes.free(node).plus(freed[node])), request._replace(slots=0)
        ):
            return node
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
        self._outlook: Outlook | None = None

    def holder(self, books: Books) -> Run | None:
        """Return the holder's run; the reservation ends with its wait, a change of class, or at a limit."""
        if books.reservation is None:
            return None
        run = books.waiting.get(books.reservation.uid)
        if (
            run is None
            or run.weight != books.reservation.weight
            or rules.limit_stop(books.teams[run.team], run)
        ):
            self.release(books)
            return None
        return run

    def take(self, books: Books, run: Run, now: int) -> bool:
        """Give the reservation to a run that lacks room; False when nobody can say when it would start."""
        seen = outlook(books, run.request, now)
        if seen is not None:
            books.reservation = Reservation(run.uid, run.weight, seen.at, seen.node)
            self._outlook = seen
        return seen is not None

    def release(self, books: Books) -> None:
        """The holder starts, or loses the reservation."""
        books.reservation = self._outlook = None

    def renew(self, books: Books, now: int) -> None:
        """Work out S anew from what holds now; where nobody can say, the promise stands in."""
        run = self.holder(books)
        if run is None or books.reservation is None:
            return
        seen = outlook(books, run.request, now)
        if seen is None:
            seen = Outlook(books.reservation.before, books.reservation.node, books.free.less(run.request))
        elif seen.at < books.reservation.before:
            books.reservation = books.reservation._replace(before=seen.at, node=seen.node)
        self._outlook = seen

    def delayed_by(self, books: Books, request: Amounts, timeout_seconds: int, weight: int, now: int) -> bool:
        """Whether a run of this class and shape might delay the holder: it neither surely ends by S nor fits
        what is left at S beside it. A more urgent one may delay it."""
        if self._outlook is None or books.reservation is None or weight < books.reservation.weight:
            return False
        whole = books.settings.start_timeout_seconds
        if hole_seconds(self._outlook.at, now, timeout_seconds, whole) is not None:
            return False
        return not self._beside(books, request)

    def start(self, books: Books, standing: Standing, run: Run, now: int, *, alone: bool) -> Start | None:
        """Return how a run starts that its group lets start; None where it would delay a holder of its own team."""
        whole = books.settings.start_timeout_seconds
        if self._outlook is None or books.reservation is None or run.weight < books.reservation.weight:
            return Start(run, whole)
        if self._beside(books, run.request) and self._within_at(books, standing, run, alone=alone):
            return Start(run, whole, avoid_node=self._outlook.node)
        hole = hole_seconds(self._outlook.at, now, run.timeout_seconds, whole)
        return None if hole is None else Start(run, hole, backfill=True)

    def _beside(self, books: Books, request: Amounts) -> bool:
        """Whether a request fits what is left at S, on a node that is not the holder's."""
        assert self._outlook is not None
        return fits(self._outlook.left, request) and (
            books.nodes is None or any(node != self._outlook.node for node in books.nodes.fitting(request))
        )

    def _within_at(self, books: Books, standing: Standing, run: Run, *, alone: bool) -> bool:
        """Whether a run of the holder's own team leaves the holder within limit and share at S."""
        assert books.reservation is not None
        assert self._outlook is not None
        holder = books.waiting[books.reservation.uid]
        if holder.team != run.team:
            return True
        team, still = books.teams[run.team], NOTHING
        for holding in books.holdings.values():
            if holding.team == run.team and (holding.until is None or holding.until > self._outlook.at):
                still = still.plus(holding.request)
        both = run.request.plus(holder.request)
        if short(team.settings.limit.less(still), both):
            return False
        if alone or not short(standing.top(team).less(still), both):
            return True
        left = self._outlook.left.less(run.request)
        return not short(left, standing.headroom)

    def longest(self, now: int) -> int | None:
        """Return the longest timeout, in seconds, with which a run would start now in the hole before S."""
        if self._outlook is None:
            return None
        seconds = (self._outlook.at - now) // SECOND - GRACE_SECONDS - LEAST_START_SECONDS
        return seconds if seconds > 0 else None

"""The port: what a policy is, and the two simple ones that the default is compared with."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import ClassVar, Protocol

from agentjobs.scheduling import explain, rules
from agentjobs.scheduling.books import Books
from agentjobs.scheduling.model import Run, Start, Wait, WaitReason

Place = Callable[[Run], tuple[int, ...]]


class Policy(Protocol):
    """Says what starts next. The pool keeps the bounds, whatever it says.

    One instance serves one pool. It must be pure: no I/O, no clock, no logging.
    """

    name: ClassVar[str]

    def propose(self, books: Books, now: int, /) -> Iterator[Start]:
        """Yield waiting runs to start, in order.

        Each is checked and counted in the books before the next is asked for. One that does not fit,
        exceeds a limit or does not wait ends the look with an error; so does an exception. It may set
        `reservation` and `look_again` of the books.

        Args:
            books: everything known of the pool; nothing else of it is to be changed.
            now: microseconds since the epoch.
        """
        ...

    def why(self, books: Books, run: Run, now: int, /) -> Wait | None:
        """Return why a waiting run waits; None when nothing stops it: it would start at the next look.

        Where None is not true, the pool says what it can: the limit or the room that is lacking, or that
        the policy gives no reason.
        """
        ...


class Fifo:
    """The oldest first, whatever its class and team; the first that does not fit blocks the rest."""

    name: ClassVar[str] = "fifo"

    def propose(self, books: Books, _now: int) -> Iterator[Start]:
        """Yield runs by age until one does not fit."""
        return _in_order(books, _by_age)

    def why(self, books: Books, run: Run, _now: int) -> Wait | None:
        """Return what the run lacks, or that another goes first."""
        return _lack(books, run, _by_age)


class PriorityOnly:
    """The most urgent class first, then the oldest, whatever its team; the first that does not fit blocks."""

    name: ClassVar[str] = "priority-only"

    def propose(self, books: Books, _now: int) -> Iterator[Start]:
        """Yield runs by class and age until one does not fit."""
        return _in_order(books, _by_class)

    def why(self, books: Books, run: Run, _now: int) -> Wait | None:
        """Return what the run lacks, or that another goes first."""
        return _lack(books, run, _by_class)


def _by_age(run: Run) -> tuple[int, ...]:
    return (run.created, run.version)


def _by_class(run: Run) -> tuple[int, ...]:
    return (run.weight, run.created, run.version)


def _in_order(books: Books, place: Place) -> Iterator[Start]:
    """Merge the teams' lines by `place`; a line whose head a limit of its team stops is passed over."""
    heads = [
        (place(line.head), team.id, weight)
        for team in books.teams.values()
        for weight, line in team.lines.items()
    ]
    heapq.heapify(heads)
    while heads:
        _, name, weight = heapq.heappop(heads)
        team = books.teams[name]
        run = team.lines[weight].head
        if rules.limit_stop(team, run) is not None:
            continue
        if not books.has_room(run.request):
            return
        yield Start(run, books.settings.start_timeout_seconds)
        if weight in team.lines:
            heapq.heappush(heads, (place(team.lines[weight].head), name, weight))


def _lack(books: Books, run: Run, place: Place) -> Wait | None:
    """Return what a run lacks, or that one before it blocks; None when it would start at the next look."""
    wait = explain.lack(books, run)
    if wait is not None:
        return wait
    first = books.teams[run.team].lines[run.weight].head is run
    if first and not _is_behind(books, place(run), place):
        return None
    return Wait(WaitReason.HELD_BACK, "a run that goes before it does not fit")


def _is_behind(books: Books, mine: tuple[int, ...], place: Place) -> bool:
    """Whether the head of a line goes before a place, and no limit of its team passes it over."""
    return any(
        place(line.head) < mine and rules.limit_stop(team, line.head) is None
        for team in books.teams.values()
        for line in team.lines.values()
    )

"""Why a run waits, in words, by asking the rules that decide: never a second opinion."""

from __future__ import annotations

from agentjobs.scheduling import rules
from agentjobs.scheduling.books import Books, Team
from agentjobs.scheduling.lineup import Kind
from agentjobs.scheduling.model import LEAST_TIMEOUT_SECONDS, Run, Wait, WaitReason
from agentjobs.scheduling.resources import short
from agentjobs.scheduling.rulebook import Rulebook
from agentjobs.scheduling.rules import UNITS


def why(rulebook: Rulebook, books: Books, run: Run, now: int) -> Wait | None:
    """Return the first rule that stops a waiting run; None when none does.

    In the order of docs/scheduling.md: its own team's line, limit, guarantee, share, room, reservation.
    """
    team = books.teams[run.team]
    return (
        _line(rulebook, books, team, run)
        or _limit(team, run)
        or _parked(rulebook, books, team, run)
        or room(books, run)
        or _reservation(rulebook, books, run, now)
    )


def _line(rulebook: Rulebook, books: Books, team: Team, run: Run) -> Wait | None:
    """Its own team's older runs of the class go first, and a parked run of a more urgent class."""
    if books.reservation is not None and books.reservation.uid == run.uid:
        return None
    line = team.lines[run.weight]
    if line.head is not run:
        before = line.place(run)
        runs = "run goes" if before == 1 else "runs go"
        return Wait(WaitReason.BEHIND_OWN, f"{before} older {runs} first, of its own team and class")
    parked_by = rulebook.parked_by(books, run)
    if parked_by is None:
        return None
    head, stop = parked_by
    return Wait(
        WaitReason.BEHIND_OWN, f"{_named(head)}, a more urgent run of its own team, waits: {stop.value}"
    )


def _limit(team: Team, run: Run) -> Wait | None:
    stop = rules.limit_stop(team, run)
    return None if stop is None else rules.limit_words(stop, team, run)


def _parked(rulebook: Rulebook, books: Books, team: Team, run: Run) -> Wait | None:
    stop = rulebook.stopped(books, team, run)
    if stop is None:
        return None
    kind = rulebook.kind(books, team, run)
    if stop is WaitReason.GUARANTEED_TO_OTHERS:
        return _guaranteed(rulebook, books, kind)
    return _share(rulebook, books, team, kind)


def _guaranteed(rulebook: Rulebook, books: Books, kind: Kind) -> Wait:
    kept = rulebook.kept_for_others(kind)
    name = next(
        name
        for name, asked, k, there in zip(UNITS, kind.request, kept, books.free, strict=True)
        if asked and k and there is not None and there - asked < k
    )
    asked, free, k = (getattr(part, name) for part in (kind.request, books.free, kept))
    return Wait(
        WaitReason.GUARANTEED_TO_OTHERS,
        f"needs {rules.counted(asked, name)}; {max(0, free)} are free, "
        f"{k} are kept for what others are guaranteed",
    )


def _share(rulebook: Rulebook, books: Books, team: Team, kind: Kind) -> Wait:
    standing, free = rulebook.standing, books.free
    name = next(
        name
        for index, (name, asked, keep, there) in enumerate(
            zip(UNITS, kind.request, standing.headroom, free, strict=True)
        )
        if kind.beyond >> index & 1 and keep and there is not None and there - asked < keep
    )
    held, top, kept, there = (
        getattr(part, name) for part in (team.held, standing.top(team.id), standing.headroom, free)
    )
    return Wait(
        WaitReason.TEAM_SHARE,
        f"the team holds {rules.counted(held, name)}, its share is {top}; "
        f"more only while {kept} stay free for others, and {max(0, there)} are free",
    )


def lack(books: Books, run: Run) -> Wait | None:
    """Return what no policy can pass: a limit of the run's team, or too little room; None for neither."""
    return _limit(books.teams[run.team], run) or room(books, run)


def room(books: Books, run: Run) -> Wait | None:
    """Return what the pool, or every node of it, has too little of for a run; None where it fits."""
    if books.has_room(run.request):
        return None
    name = short(books.free, run.request)
    wait = Wait(WaitReason.NO_NODE_FITS, "")
    if name is not None:
        wait = rules.shortage(name, run.request, books.held, books.capacity)
        if name == "slots" or books.possible(run.request):
            return wait
    asked = ", ".join(
        rules.counted(amount, name)
        for name, amount in zip(UNITS, run.request, strict=True)
        if amount and name != "slots"  # which nodes do not have
    )
    how = "free together" if books.possible(run.request) else "together, not even an empty one"
    return wait._replace(message=f"no node has {asked or 'room'} {how}")


def _reservation(rulebook: Rulebook, books: Books, run: Run, now: int) -> Wait | None:
    held = books.reservation
    if held is None or held.uid == run.uid:
        return None
    kind = rulebook.kind(books, books.teams[run.team], run)
    if rulebook.how(books, run, kind, now) is not None:
        return None
    holder = _named(books.waiting[held.uid])
    if rulebook.booking.takes_from_holder(books, run):
        message = f"would leave too little of the team's limit to {holder}, which holds the reservation"
        return Wait(WaitReason.BEHIND_RESERVATION, message)
    message = f"would delay {holder}, which holds the reservation"
    longest = rulebook.booking.longest(books, now)
    if longest < LEAST_TIMEOUT_SECONDS:
        return Wait(WaitReason.BEHIND_RESERVATION, message)
    message += f"; would start now with timeoutSeconds ≤ {longest}"
    return Wait(WaitReason.BEHIND_RESERVATION, message, longest)


def _named(run: Run) -> str:
    return run.name or run.uid

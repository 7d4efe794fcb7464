"""What holds whatever a policy says: what it proposes, answers and sets is looked at before it counts.

A policy may be anybody's. What breaks a rule is dropped, and one sentence says which policy it was, what it
said, and the rule. Nothing that a policy raises leaves here but what is to end the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from agentjobs.scheduling import rules
from agentjobs.scheduling.books import Books
from agentjobs.scheduling.model import SECOND, Reservation, Run, Start, Wait, WaitReason
from agentjobs.scheduling.policies import Policy
from agentjobs.scheduling.resources import fits

HORIZON = 1_000 * 365 * 86_400 * SECOND  # what is further ahead of now is no time, and could not be written
_SHOWN = 200  # characters of what a policy said


class _Asked(Protocol):
    """A policy, as far as it is trusted: it answers something."""

    def propose(self, books: Books, now: int, /) -> object: ...

    def why(self, books: Books, run: Run, now: int, /) -> object: ...


class Guard:
    """Asks the policy of one pool.

    Attributes:
        fault: what the policy did wrong at the last look; "" for nothing.
        misspoke: what was wrong with an answer since, when it was asked why; likewise.
        takes_turns: whether it says of itself that teams take turns, as they do by fair-share.
    """

    def __init__(self, policy: Policy, books: Books) -> None:
        self.fault = self.misspoke = ""
        self._policy: _Asked = policy
        self._books = books
        self._who = f"policy {_name(policy)}"
        self.takes_turns = getattr(policy, "takes_turns", False) is True

    def starts(self, now: int) -> Iterator[Start]:
        """Yield what the policy proposes, as long as it may be; each must be admitted before the next."""
        books = self._books
        told = books.reservation
        if books.look_again is not None and books.look_again <= now:
            books.look_again = None  # that look is this one
        try:
            proposed = self._policy.propose(books, now)
            if not isinstance(proposed, Iterable):
                self.fault = f"{self._who} proposed {shown(proposed)}, which is no iterator of Starts"
                proposed = ()
            for start in proposed:
                if not isinstance(start, Start):
                    self.fault = f"{self._who} proposed {shown(start)}, which is no Start"
                else:
                    self.fault = self._refusal(start)
                if self.fault:
                    break
                yield start
        except (Exception, SystemExit) as error:
            self.fault = self._failed(error)
        unkept, no_time = self._check_reservation(told, now), self._check_look_again(now)
        self.fault = self.fault or unkept or no_time

    def why(self, run: Run, now: int) -> Wait | None:
        """Return the policy's answer, or that it gave none that counts; being asked, it sets nothing."""
        books = self._books
        told, look_again = books.reservation, books.look_again
        try:
            said = self._policy.why(books, run, now)
            if said is None or (isinstance(said, Wait) and _is_sound(said)):
                return said
            self.misspoke = f"{self._who} said {shown(said)}, which is no Wait"
        except (Exception, SystemExit) as error:
            self.misspoke = self._failed(error)
        finally:
            books.reservation, books.look_again = told, look_again
        return Wait(WaitReason.HELD_BACK, self.misspoke)

    def forget(self) -> None:
        """Forget what was wrong: it is looked at anew."""
        self.fault = self.misspoke = ""

    @property
    def silence(self) -> Wait:
        """Why a run waits where the policy says nothing."""
        return Wait(WaitReason.HELD_BACK, f"{self._who} gives no reason")

    def _failed(self, error: BaseException) -> str:
        return f"{self._who} failed: {told_by(error)}"

    # -- proposals -------------------------------------------------------------------------------

    def _refusal(self, start: Start) -> str:
        """Return why a proposed start must not be; "" when it may."""
        fields: tuple[object, ...] = start
        run, start_seconds, avoid_node, backfill, guaranteed, _ = fields
        if not isinstance(run, Run):
            return f"{self._who} proposed {shown(run)}, which is no Run"
        books, longest = self._books, self._books.settings.start_timeout_seconds
        if books.waiting.get(run.uid) is not run:
            fault = ", which does not wait"
        elif not _is_whole(start_seconds, 1, longest):
            fault = f" with a start time of {shown(start_seconds)} s; it must be 1 to {longest}"
        elif avoid_node is not None and not _is_text(avoid_node):
            fault = f" with {shown(avoid_node)} as the node to avoid, which is no name"
        elif not (isinstance(backfill, bool) and isinstance(guaranteed, bool)):
            fault = "; backfill and guaranteed must be True or False"
        elif not fits(books.free, run.request):
            fault = ", which does not fit what is free"
        elif books.nodes is not None and not books.nodes.fits(run.request, start.avoid_node):
            fault = ", which does not fit any node that it may be on"
        elif (stop := rules.limit_stop(books.teams[run.team], run)) is not None:
            fault = f", which its team's limit stops: {stop.value}"
        else:
            return ""
        return f"{self._who} proposed {plain(run.name or run.uid)}{fault}"

    # -- what a policy sets ----------------------------------------------------------------------

    def _check_reservation(self, told: Reservation | None, now: int) -> str:
        """Drop a reservation that was made at this look and is none; return what is wrong with it."""
        held: object = self._books.reservation
        if held is None or held is told:
            return ""
        if not isinstance(held, Reservation):
            fault = f"reserved {shown(held)}, which is no Reservation"
        elif not _is_promise(held, now):
            fault = (
                f"reserved {shown(held)}; uid and node must be text, weight and before whole numbers, "
                "before at most 1,000 years ahead"
            )
        elif (holder := self._books.waiting.get(held.uid)) is None or holder.weight != held.weight:
            fault = f"reserved for {plain(held.uid)} of class weight {held.weight}, which does not wait"
        else:
            return ""
        self._books.reservation = None
        return f"{self._who} {fault}"

    def _check_look_again(self, now: int) -> str:
        """Drop a time of the next look that is none; return what is wrong with it."""
        look: object = self._books.look_again
        if look is None or _is_whole(look, now + 1, now + HORIZON):
            return ""
        self._books.look_again = None
        return f"{self._who} asked to look again at {shown(look)}; it must be whole microseconds after {now}"


# -- what is believed ----------------------------------------------------------------------------------


def _is_sound(wait: Wait) -> bool:
    fields: tuple[object, ...] = wait
    reason, message, hole = fields
    return (
        isinstance(reason, WaitReason)
        and _is_text(message)
        and (hole is None or (isinstance(hole, int) and not isinstance(hole, bool)))
    )


def _is_promise(held: Reservation, now: int) -> bool:
    fields: tuple[object, ...] = held
    uid, weight, before, node = fields
    return (
        isinstance(uid, str)
        and isinstance(weight, int)
        and _is_whole(before, 0, now + HORIZON)
        and (node is None or _is_text(node))
    )


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_text(value: object) -> bool:
    """Whether a value is text that can be stored: half of a surrogate pair cannot."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


# -- words ---------------------------------------------------------------------------------------------


def _name(policy: object) -> str:
    """Return how people know a policy; by its class where it has no name."""
    try:
        name = getattr(policy, "name", None)
    except Exception:
        name = None
    return plain(name) if isinstance(name, str) and name else type(policy).__name__


def told_by(error: BaseException) -> str:
    """Return an error in words, whatever its own are."""
    try:
        words = str(error)
    except Exception:
        words = "it cannot say what"
    return f"{type(error).__name__}: {plain(words)}" if words else type(error).__name__


def shown(value: object) -> str:
    """Return what a policy said, for people."""
    try:
        return plain(repr(value))
    except Exception:
        return f"a {type(value).__name__}"


def plain(text: str) -> str:
    """Return text on one line, that can be printed and stored, cut to a bearable length."""
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in cut)

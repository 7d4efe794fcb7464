"""Promises made, kept and broken: a run that held the reservation was told when it starts at the latest."""

from __future__ import annotations

from collections import Counter

from agentjobs.scheduling.model import Reservation, Run


class Promises:
    """Counts promises by outcome.

    Attributes:
        outcomes: "Kept", or the cause of a broken one: MoreUrgentClass, GuaranteeDemand, LostCapacity, Edit.
            "Unexplained" would be a fault of the policy.
    """

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self._open: dict[str, tuple[int, str]] = {}  # by uid: the promise, and what disturbed it first

    def made(self, held: Reservation) -> None:
        """Note a promise; it may only come earlier."""
        before, cause = self._open.get(held.uid, (held.before, ""))
        self._open[held.uid] = (min(before, held.before), cause)

    def note(self, cause: str) -> None:
        """Something happened that may break what was promised so far."""
        for uid, (before, known) in self._open.items():
            self._open[uid] = (before, known or cause)

    def started(self, run: Run, scheduled: int, held: Reservation | None) -> None:
        """Settle a run's promise at its start, or note that it went before a less urgent holder."""
        if run.uid in self._open:
            before, cause = self._open.pop(run.uid)
            self.outcomes["Kept" if scheduled <= before else cause or "Unexplained"] += 1
        if held is not None and held.uid != run.uid and run.weight < held.weight:
            self.note("MoreUrgentClass")

    def dropped(self, uid: str) -> None:
        """A run was withdrawn: nothing was owed to it any more."""
        self._open.pop(uid, None)

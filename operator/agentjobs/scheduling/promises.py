"""Promises made, kept and broken: a run that held the reservation was told when it starts at the latest."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from agentjobs.scheduling.model import Holding, Reservation, Start


class _Promise(NamedTuple):
    """A promise that is not settled yet; `cause`: what disturbed it first."""

    before: int
    weight: int
    cause: str = ""


class Promises:
    """Counts promises by outcome.

    Attributes:
        outcomes: "Kept", or the cause of a broken one: MoreUrgentClass, GuaranteeDemand, LostCapacity (a run
            that held on beyond its latest end among it), Placement (a pod on another node than was likely),
            Quota, Edit, Outage (of the operator). "Unexplained" would be a fault of the policy.
    """

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self._open: dict[str, _Promise] = {}  # by uid

    def made(self, held: Reservation) -> None:
        """Note a promise; it may only come earlier. Those of less urgent runs that it displaced may break."""
        known = self._open.get(held.uid)
        if known is None:
            self._open[held.uid] = _Promise(held.before, held.weight)
        elif held.before < known.before:
            self._open[held.uid] = known._replace(before=held.before)
        self._disturb("MoreUrgentClass", above=held.weight)

    def note(self, cause: str, uid: str | None = None) -> None:
        """Something happened that may break what was promised so far, to all or to one run."""
        if uid is None:
            self._disturb(cause)
        elif uid in self._open and not self._open[uid].cause:
            self._open[uid] = self._open[uid]._replace(cause=cause)

    def moved(self, known: Holding, holding: Holding) -> None:
        """Note that a pod is not where it was likely, or ends later than was known."""
        if known.node is not None and holding.node != known.node:
            self.note("Placement")
        if known.until is not None and (holding.until is None or holding.until > known.until):
            self.note("LostCapacity")

    def started(self, start: Start, now: int, held: Reservation | None) -> None:
        """Settle a run's promise at its start, or note that it went before the holder and why it could."""
        run = start.run
        promise = self._open.pop(run.uid, None)
        if promise is not None:
            self.outcomes["Kept" if now <= promise.before else promise.cause or "Unexplained"] += 1
        if held is not None and held.uid != run.uid and run.weight < held.weight:
            self._disturb("MoreUrgentClass", above=run.weight)
        if start.guaranteed:
            self._disturb("GuaranteeDemand")

    def dropped(self, uid: str) -> None:
        """A run was withdrawn: nothing was owed to it any more."""
        self._open.pop(uid, None)

    def _disturb(self, cause: str, above: int = -1) -> None:
        """Note a cause with every promise, or with those of classes less urgent than one."""
        for uid, promise in self._open.items():
            if promise.weight > above and not promise.cause:
                self._open[uid] = promise._replace(cause=cause)

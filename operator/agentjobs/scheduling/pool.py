"""One pool: who holds what, who waits, and which of them start now."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from agentjobs.scheduling.model import Plan, Policy, Run, Wait, WaitReason
from agentjobs.scheduling.resources import Amounts, Capacity

_SHORTAGES = {
    "slots": (WaitReason.NO_FREE_SLOT, "slots"),
    "cpu_millicores": (WaitReason.INSUFFICIENT_CPU, "CPU millicores"),
    "memory_mb": (WaitReason.INSUFFICIENT_MEMORY, "MiB of memory"),
    "gpu_count": (WaitReason.INSUFFICIENT_GPU, "GPUs"),
}


class Pool:
    """Bookkeeping and decisions of one pool; every method is pure of I/O and the time is an argument.

    A run is known as waiting or as holding, never as both. The line stops at the first run that does
    not fit: nothing that comes later may start before it. A run whose team or namespace is shut out
    does not stop the line; it is set aside and returns to its old place.

    Cost: O(log n) for a run that arrives, starts or ends; a look at a full pool is O(1).
    """

    def __init__(self, name: str, policy: Policy) -> None:
        self.name = name
        self.exists = False
        self.on_hold = False
        self.capacity = Capacity()
        self.held = Amounts()
        self._policy = policy
        self._holding: dict[str, Amounts] = {}
        self._waiting: dict[str, Run] = {}
        self._line: list[tuple[tuple[int | str, ...], Run]] = []
        self._aside: dict[str, Wait] = {}
        self._teams: frozenset[str] | None = None
        self._backed_off: dict[str, int] = {}

    # -- what is true now ------------------------------------------------------------------------

    def configure(self, capacity: Capacity, *, on_hold: bool, teams: frozenset[str] | None) -> None:
        """Take the pool's own settings; `teams` are those that may start runs, None for any."""
        self.exists, self.capacity, self.on_hold, self._teams = True, capacity, on_hold, teams
        self._recall()

    def retire(self) -> None:
        """The AgentPool is gone: what runs goes on, what waits waits."""
        self.exists = False

    def wait(self, run: Run) -> None:
        """Put a run in line, or move it when its place has changed; one that held gives its slot up."""
        self._release(run.uid)
        if self._waiting.get(run.uid) != run:
            self._waiting[run.uid] = run
            heapq.heappush(self._line, (self._policy.key(run), run))

    def hold(self, uid: str, request: Amounts) -> None:
        """Count a run as holding; doing so again changes nothing."""
        self._forget_waiting(uid)
        if uid not in self._holding:
            self._holding[uid] = request
            self.held = self.held.plus(request)

    def leave(self, uid: str) -> None:
        """A run neither waits nor holds any more; unknown runs are no error."""
        self._forget_waiting(uid)
        self._release(uid)

    def back_off(self, namespace: str, until: int) -> None:
        """Start nothing in a namespace whose quota is full before `until`, microseconds since the epoch."""
        self._backed_off[namespace] = until

    # -- what follows ----------------------------------------------------------------------------

    def decide(self, now: int) -> Plan:
        """Return what starts now; those runs hold from this moment on.

        Args:
            now: microseconds since the epoch.
        """
        self._end_back_offs(now)
        starts: list[Run] = []
        if self.exists and not self.on_hold:
            while (run := self._head()) is not None and self._stop(run) is None:
                self.hold(run.uid, run.request)
                starts.append(run)
        return Plan(tuple(starts), min(self._backed_off.values(), default=None))

    def why(self, uid: str) -> Wait | None:
        """Return why a run waits, from the same rules that decide; None when it does not wait here."""
        run = self._waiting.get(uid)
        if run is None:
            return None
        if not self.exists:
            return Wait(WaitReason.POOL_MISSING, f"there is no AgentPool named {self.name}")
        if self.on_hold:
            return Wait(WaitReason.POOL_ON_HOLD, f"pool {self.name} is on hold: nothing new starts in it")
        if uid in self._aside:
            return self._aside[uid]
        head = self._head()
        if head is not None and head.uid != uid and self._shut_out(run) is None:
            return Wait(
                WaitReason.BEHIND_OTHERS,
                f"runs of a more urgent class or older than this one wait in pool {self.name}",
            )
        return self._shut_out(run) or self._stop(run)

    @property
    def waiting(self) -> int:
        """How many runs wait, those set aside among them."""
        return len(self._waiting)

    # -- the rules -------------------------------------------------------------------------------

    def _head(self) -> Run | None:
        """Return the first run in line that may start at all, setting aside those that may not."""
        while self._line:
            run = self._line[0][1]
            if self._waiting.get(run.uid) == run and run.uid not in self._aside:
                wait = self._shut_out(run)
                if wait is None:
                    return run
                self._aside[run.uid] = wait
            heapq.heappop(self._line)
        return None

    def _shut_out(self, run: Run) -> Wait | None:
        if self._teams is not None and run.team not in self._teams:
            return Wait(
                WaitReason.TEAM_MISSING, f"pool {self.name} requires an AgentTeam with teamId {run.team!r}"
            )
        if run.namespace in self._backed_off:
            return Wait(
                WaitReason.QUOTA_EXCEEDED, f"the quota of namespace {run.namespace} allows no further Job now"
            )
        return None

    def _stop(self, run: Run) -> Wait | None:
        short = self.capacity.shortage(self.held, run.request)
        if short is None:
            return None
        reason, unit = _SHORTAGES[short]
        asked, held, total = (getattr(part, short) for part in (run.request, self.held, self.capacity))
        return Wait(reason, f"needs {asked} {unit}; {held} of {total} are held in pool {self.name}")

    # -- bookkeeping -----------------------------------------------------------------------------

    def _forget_waiting(self, uid: str) -> None:
        # The entry in the line stays behind and is dropped when it comes to the front.
        self._waiting.pop(uid, None)
        self._aside.pop(uid, None)

    def _release(self, uid: str) -> None:
        request = self._holding.pop(uid, None)
        if request is not None:
            self.held = self.held.minus(request)

    def _end_back_offs(self, now: int) -> None:
        over = [namespace for namespace, until in self._backed_off.items() if until <= now]
        for namespace in over:
            del self._backed_off[namespace]
        if over:
            self._recall()

    def _recall(self) -> None:
        aside, self._aside = self._aside, {}
        self._return_to_line(self._waiting[uid] for uid in aside)

    def _return_to_line(self, runs: Iterable[Run]) -> None:
        for run in runs:
            heapq.heappush(self._line, (self._policy.key(run), run))

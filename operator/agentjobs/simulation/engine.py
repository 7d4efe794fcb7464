"""Replays a trace in virtual time: events drive the production pool and policy, and nothing else decides.

A run's container starts at the moment of the decision and ends after its time, or its timeout where that is
less; attempts do not fail, and what was refused is not sent again. The same trace and setup give the same
result, to the microsecond.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agentjobs.errors import PolicyError
from agentjobs.scheduling.model import GRACE_SECONDS, SECOND, Holding, Run
from agentjobs.scheduling.policies import Policy
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts
from agentjobs.scheduling.rules import never_fits
from agentjobs.simulation.setup import Setup
from agentjobs.simulation.tally import Result, Tally
from agentjobs.simulation.trace import TraceRun


class _Waiting(NamedTuple):
    said: TraceRun
    within_share: bool


def simulate(runs: Iterable[TraceRun], setup: Setup, policy: Policy, pool_name: str = "default") -> Result:
    """Replay runs to the end of the last one.

    Raises:
        PolicyError: when the policy fails, proposes what must not start, or says what cannot be.
    """
    return Engine(setup, policy, pool_name).replay(iter(runs))


class Engine:
    """One replay."""

    def __init__(self, setup: Setup, policy: Policy, pool_name: str) -> None:
        self._setup = setup
        self._pool = Pool(pool_name, policy)
        self._pool.configure(setup.settings)
        self._tally = Tally(setup, self._pool.books)
        self._ends: list[tuple[int, str]] = []
        self._waiting: dict[str, _Waiting] = {}
        self._backlog: dict[str, int] = {}  # by team: how many wait
        self._verdicts: dict[tuple[str, Amounts, bool], str | None] = {}  # what never fits
        self._number = 0

    def replay(self, runs: Iterator[TraceRun]) -> Result:
        """Go from event to event: ends before submissions, then one look at the pool."""
        coming = next(runs, None)
        look: int | None = None
        now = 0
        while True:
            moments = [look] if look is not None and self._waiting else []
            if self._ends:
                moments.append(self._ends[0][0])
            if coming is not None:
                moments.append(coming.submitted)
            if not moments:
                break
            now = max(now, min(moments))
            self._tally.pass_time(now)
            while self._ends and self._ends[0][0] <= now:
                self._end(now)
            while coming is not None and coming.submitted <= now:
                self._submit(coming, now)
                coming = next(runs, None)
            look = self._decide(now)
        for uid, waiting in self._waiting.items():
            wait = self._pool.why(uid, now)
            self._stop_at_fault()
            assert wait is not None  # nothing has changed since the last look left it in line
            self._tally.left_waiting(waiting.said, wait.reason.value)
        return self._tally.result(self._pool.promises.outcomes)

    def _end(self, now: int) -> None:
        _, uid = heapq.heappop(self._ends)
        team = self._pool.books.holdings[uid].team
        self._pool.leave(uid, ended=now)
        self._tally.ended(team)

    def _submit(self, said: TraceRun, now: int) -> None:
        backlog = self._backlog.get(said.team, 0)
        most = self._setup.max_pending_of.get(said.team, self._setup.max_pending)
        critical = said.priority == "critical"
        if self._never_fits(said, critical=critical):
            self._tally.never_fits(said)
            return
        if most is not None and backlog >= most:
            self._tally.refused(said)
            return
        self._number += 1
        uid = str(self._number)
        run = Run(
            uid,
            "",
            said.team,
            self._setup.weights[said.priority],
            critical,
            now,
            self._number,
            said.request,
            said.timeout_seconds,
            said.name,
        )
        self._pool.wait(run)
        self._waiting[uid] = _Waiting(said, self._tally.submitted(said))
        self._backlog[said.team] = backlog + 1

    def _never_fits(self, said: TraceRun, *, critical: bool) -> str | None:
        """Return why a run can never start: such ones are refused when they are submitted."""
        key = (said.team, said.request, critical)
        if key not in self._verdicts:
            settings = self._setup.settings
            self._verdicts[key] = never_fits(settings, said.team, said.request, critical=critical)
        return self._verdicts[key]

    def _decide(self, now: int) -> int | None:
        """Start what the pool starts; return when time alone may change something."""
        plan = self._pool.decide(now)
        self._stop_at_fault()
        for start in plan.starts:
            run = start.run
            said, within_share = self._waiting.pop(run.uid)
            self._backlog[run.team] -= 1
            end = now + min(said.seconds, said.timeout_seconds) * SECOND
            heapq.heappush(self._ends, (end, run.uid))
            # The container runs from now on, so the latest end is nearer than at the decision.
            until = now + (run.timeout_seconds + GRACE_SECONDS) * SECOND
            self._pool.hold(Holding(run.uid, run.team, run.critical, run.request, until))
            self._tally.started(said, now, within_share=within_share, backfill=start.backfill)
        self._tally.looked([start.run.weight for start in plan.starts])
        return plan.look_again

    def _stop_at_fault(self) -> None:
        if self._pool.fault:
            raise PolicyError(self._pool.fault)

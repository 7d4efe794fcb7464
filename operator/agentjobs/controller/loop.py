"""The scheduling loop: look at what changed, decide, hand over the writes, sleep until something happens."""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

from agentjobs import metrics
from agentjobs.apis import names, times
from agentjobs.apis.jobrecords import JobRecord, PodRecord
from agentjobs.apis.records import AgentJobRecord, SettingsRecord
from agentjobs.apis.runstatus import Phase
from agentjobs.cluster import paths
from agentjobs.cluster.lease import Term
from agentjobs.cluster.reflector import Reflector
from agentjobs.cluster.session import Session
from agentjobs.cluster.writer import Writer
from agentjobs.controller.actions import Actions, Need
from agentjobs.controller.boundary import Boundary
from agentjobs.controller.listing import Listing
from agentjobs.controller.nodes import Nodes
from agentjobs.controller.run import Run
from agentjobs.controller.state import State
from agentjobs.controller.statuses import Statuses
from agentjobs.controller.telling import QUIET, next_word
from agentjobs.scheduling.policies import Policy
from agentjobs.scheduling.pool import Pool

_log = logging.getLogger(__name__)


def now_micros() -> int:
    """Return the time in microseconds since the epoch."""
    return time.time_ns() // 1000


class Leadership(Protocol):
    """What the loop needs of the Lease."""

    def clock(self) -> float: ...

    async def acquired(self) -> Term: ...


class Loop:
    """Owns the reflectors, the state and the writer; everything of the hot path hangs on it.

    Attributes:
        reflectors: what must be known before anything is decided.
        started: set once every task of it that is to outlive kopf was created.
        synced: set once everything was listed: from then on it can lead.
        elected: set once it may lead, and takes over.
        leads: set once it has taken over, and decides.
        opened: set once it knows what a former leader let in, and so may answer admission.
        stopping: nothing is decided any more.
    """

    def __init__(self, session: Session, make_policy: Callable[[], Policy], leadership: Leadership) -> None:
        self.session = session
        self.nodes = Nodes(session, self._nodes_changed)
        self.state = state = State(now_micros, make_policy, self.nodes.offered)
        ours = names.LABEL_RUN_UID
        self.boundary = Boundary(session, state)
        self.agentjobs = Reflector(session, paths.AGENTJOBS, AgentJobRecord, self._agentjob_changed)
        state.find = self.agentjobs.objects.get
        self.jobs = Reflector(session, paths.JOBS, JobRecord, state.job_changed, selector=ours)
        self.pods = Reflector(session, paths.PODS, PodRecord, state.pod_changed, selector=ours)
        self.agentpools = self._settings(paths.AGENTPOOLS, state.catalogue.agentpools)
        self.agentteams = self._settings(paths.AGENTTEAMS, state.catalogue.agentteams)
        self.reflectors: tuple[Reflector[Any], ...] = (
            self.agentpools,
            self.agentteams,
            self.agentjobs,
            self.jobs,
            self.pods,
        )
        self.actions = Actions(session, state, self.agentjobs, self.jobs, self.pods, now_micros)
        self.writer = Writer(self.actions.write)
        self.statuses = Statuses(session, state, self.agentpools, self.agentteams, now_micros)
        self.started = asyncio.Event()
        self.synced = asyncio.Event()
        self.elected = asyncio.Event()
        self.leads = asyncio.Event()
        self.opened = asyncio.Event()
        self.stopping = False
        self._leadership = leadership
        self._capacity_dirty = False  # what nodes offer is worked out once a cycle, however many pods changed
        self._timers: list[tuple[int, str]] = []
        self._faults: dict[str, str] = {}  # by pool, the last one that was logged

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors:
                group.create_task(reflector.run())
            group.create_task(self.nodes.run())
            group.create_task(self.writer.run())
            group.create_task(self.boundary.run(self.agentjobs))
            group.create_task(self._lead())
            group.create_task(self.statuses.run(self.leads))
            await asyncio.sleep(0)  # the writer's workers are tasks of their own
            self.started.set()
            while not self.leads.is_set():
                self._take_in(now_micros())
                await self._rest(None)
            while True:
                wake_at = self._cycle(now_micros())
                await self._rest(wake_at)

    @property
    def role(self) -> str:
        """What this process does: `standby`, `opening` while a new leader takes over, `leader`."""
        if not self.elected.is_set():
            return "standby"
        return "leader" if self.opened.is_set() else "opening"

    async def _lead(self) -> None:
        """Wait until this process may lead, then take over what the former leader left."""
        for reflector in self.reflectors:
            await reflector.synced.wait()
        self.synced.set()
        term = await self._leadership.acquired()
        self.elected.set()
        metrics.LEADER.set(1)
        began = self._leadership.clock()
        # What the former leader wrote last, watches may not have told yet.
        await asyncio.gather(*(reflector.relist() for reflector in self.reflectors))
        self.state.take_edits()
        self.state.go_live(self.agentjobs.objects.values())
        self.state.touched.update(self.state.runs)
        self.leads.set()
        self.state.woken.set()
        _log.info(
            "leading: %d AgentJobs, %d runs that are not over or leave something behind",
            len(self.agentjobs.objects),
            len(self.state.runs),
        )
        if began < term.opens_at:
            await asyncio.sleep(term.opens_at - self._leadership.clock())
            await self.agentjobs.relist()
        self.boundary.open()
        self.opened.set()

    async def stop(self, seconds: float) -> None:
        """Decide nothing any more, and return when what was decided is written or the time is over."""
        self.stopping = True
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(self.boundary.close(), self.writer.drain())
        except TimeoutError:
            creates, writes = self.boundary.ledger.reservations, self.writer.depth
            _log.warning("%d writes are left for the next start, %d creates on their way", writes, creates)

    def _agentjob_changed(self, old: AgentJobRecord | None, new: AgentJobRecord | None) -> None:
        self.boundary.ledger.changed(old, new)
        self.state.agentjob_changed(old, new)

    def _settings(self, path: str, listing: Listing[Any]) -> Reflector[SettingsRecord]:
        """Return the reflector of a kind that administrators edit."""

        def changed(old: SettingsRecord | None, new: SettingsRecord | None) -> None:
            if listing.changed(old, new):
                self.state.catalogue_changed()

        return Reflector(self.session, path, SettingsRecord, changed)

    def _nodes_changed(self) -> None:
        self._capacity_dirty = True
        self.state.woken.set()

    # -- one cycle -------------------------------------------------------------------------------

    def _cycle(self, now: int) -> int | None:
        """Take in what changed, decide, and ask for the writes; return when to look again."""
        state = self.state
        looks = [state.drain(now)]
        touched = self._take_in(now)
        looks += [] if self.stopping else [self._decide(name, now, touched) for name in state.pools]
        for uid in touched:
            if (run := state.runs.get(uid)) is not None:
                self._ask(run, now)
        metrics.QUEUE_DEPTH.set(self.writer.depth)
        looks.append(self._timers[0][0] if self._timers else None)
        return min((look for look in looks if look is not None), default=None)

    def _take_in(self, now: int) -> set[str]:
        """Bring the books up to date with what was told; return the runs that want a look."""
        state = self.state
        while self._timers and self._timers[0][0] <= now:
            uid = heapq.heappop(self._timers)[1]
            if uid in state.runs:
                state.runs[uid].timer = None
                state.touched.add(uid)
        state.take_edits()
        touched, state.touched = state.touched, set()
        for uid in touched:
            if (run := state.runs.get(uid)) is not None:
                state.settle(run)
        if self._capacity_dirty or (touched and state.shares_nodes):
            self._capacity_dirty = False
            state.capacity_changed()
        return touched

    def _decide(self, name: str, now: int, touched: set[str]) -> int | None:
        pool = self.state.pools[name]
        self._note_fault(pool, looked=False)  # what it said since the last look, when it was asked why
        plan = pool.decide(now)
        for start in plan.starts:
            touched.add(self.state.decide(start).uid)
        self._note_fault(pool, looked=True)
        metrics.PENDING.labels(name).set(pool.waiting)
        metrics.HELD.labels(name).set(pool.books.held.slots)
        for outcome, count in pool.promises.outcomes.items():
            metrics.PROMISES.labels(name, outcome).set(count)
        return plan.look_again

    def _note_fault(self, pool: Pool, *, looked: bool) -> None:
        """Count what a policy did wrong, and log it unless that is the same as the last time."""
        new = pool.fault != self._faults.get(pool.name)
        if pool.fault and (looked or new):
            metrics.POLICY_FAULTS.labels(pool.name).inc()
        if pool.fault and new:
            _log.error("pool %s: %s", pool.name, pool.fault)
            self._faults[pool.name] = pool.fault

    def _ask(self, run: Run, now: int) -> None:
        """Ask the writer for what a run needs now, and set its clock for what it will need later."""
        need = self.actions.need(run, now)
        later = self._later(run, now)
        if need is Need.STATUS and now < run.shares_until and self.writer.loaded and not self.stopping:
            later = min(later or run.shares_until, run.shares_until)
        elif need is not None and not (self.stopping and need is Need.POST):
            self.writer.add(run.uid, need)
        if later is not None and (run.timer is None or later < run.timer):
            run.timer = later
            heapq.heappush(self._timers, (later, run.uid))

    def _later(self, run: Run, now: int) -> int | None:
        """Return when time alone will change what a run needs, microseconds since the epoch."""
        if run.over:
            return None
        moments = [moment for moment in (run.expiry, run.hole_until) if moment is not None]
        if run.waits:
            moments.append(next_word(run, Phase.PENDING))
        elif run.posted and run.started is None:
            moments.append(next_word(run, Phase.SCHEDULED))
        ahead = [moment for moment in moments if moment > now]
        # A reason may change without the run itself being touched: look from time to time.
        return min(ahead, default=now + QUIET if run.waits else None)

    async def _rest(self, wake_at: int | None) -> None:
        """Sleep until something was told or the moment has come; let a burst arrive as one."""
        state = self.state
        timer = None
        if wake_at is not None:
            pause = max(0.0, (wake_at - now_micros()) / times.SECOND)
            timer = asyncio.get_running_loop().call_later(pause, state.woken.set)
        await state.woken.wait()
        if timer is not None:
            timer.cancel()
        await asyncio.sleep(0)
        state.woken.clear()

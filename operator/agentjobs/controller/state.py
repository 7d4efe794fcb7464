"""What the operator knows, in memory: every run that is not over, and the books of every pool.

All of it follows from three lists (AgentJobs, Jobs, pods) and the catalogue, so it can be thrown away
and rebuilt at any moment. Nothing here does I/O.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agentjobs.apis import times
from agentjobs.apis.records import AgentJobRecord, JobRecord, PodRecord
from agentjobs.controller.catalogue import Catalogue
from agentjobs.controller.run import Run
from agentjobs.errors import InvalidRunError
from agentjobs.runs import decision as decisions
from agentjobs.runs import spec as specs
from agentjobs.runs.decision import Decision
from agentjobs.scheduling import model
from agentjobs.scheduling.model import ClassThenAge, Wait
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts

_ONE_SLOT = Amounts(slots=1)


class State:
    """Takes what the reflectors tell, keeps the pools' books, and remembers which runs want a look.

    Args:
        clock: returns the time in microseconds since the epoch.

    Attributes:
        find: returns the stored AgentJob with a uid, or None; the reflector's, once there is one.
        touched: uids of the runs that want a look; `woken` is set with it.
        live: the first lists are complete; what is seen from now on is new.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self.runs: dict[str, Run] = {}
        self.pools: dict[str, Pool] = {}
        self.catalogue = Catalogue()
        self.touched: set[str] = set()
        self.woken = asyncio.Event()
        self.live = False
        self.find: Callable[[str], AgentJobRecord | None] = lambda _: None
        self._clock = clock
        self._last_scheduled: dict[str, int] = {}

    # -- what is told ----------------------------------------------------------------------------

    def agentjob_changed(self, old: AgentJobRecord | None, new: AgentJobRecord | None) -> None:
        """An AgentJob was seen, changed or deleted."""
        record = new or old
        assert record is not None
        run = self.runs.get(record.uid)
        if run is None:
            if new is None or (new.status.terminal and new.told):
                return  # it is over and nothing of it is left: no reason to remember it here
            run = self._run(record.uid)
        if new is not None and run.record is None:
            run.created = self._first_seen(new, run.decision)
        if new is not None and run.record is not None and new.spec != run.record.spec:
            run.request = None  # to be worked out again
        run.record = new
        self._adopt_stored(run)
        self.touch(run.uid)

    def job_changed(self, old: JobRecord | None, new: JobRecord | None) -> None:
        """A Job of ours was seen, changed or deleted."""
        record = new or old
        assert record is not None
        run = self._run(record.run_uid)
        if run.job is not None and run.job.uid != record.uid:
            return  # whatever else carries the labels of this run: it goes by the Job it has
        run.job, run.posted, run.confirmed = new, True, False
        run.decision = decisions.read(record.annotation) or run.decision
        if run.decision is not None:
            run.created = run.decision.created
            self._note_scheduled(run.decision)
        self.touch(run.uid)

    def pod_changed(self, old: PodRecord | None, new: PodRecord | None) -> None:
        """A pod of ours was seen, changed or deleted."""
        record = new or old
        assert record is not None
        run = self._run(record.run_uid)
        run.confirmed = False
        if new is None:
            run.pods.pop(record.uid, None)
        else:
            run.pods[record.uid] = new
        self.touch(run.uid)

    def catalogue_changed(self) -> None:
        """Pools or teams were edited: every run that waits may have another place now."""
        for uid, run in self.runs.items():
            if run.waits:
                self.touched.add(uid)
        for name, pool in self.pools.items():
            if name not in self.catalogue.pools:
                pool.retire()
        for name, spec in self.catalogue.pools.items():
            self.pool(name).configure(
                self.catalogue.capacity(name), on_hold=spec.hold, teams=self.catalogue.admitted_teams(name)
            )
        self.woken.set()

    def touch(self, uid: str) -> None:
        """Ask for a look at a run in the next cycle."""
        self.touched.add(uid)
        self.woken.set()

    # -- the books -------------------------------------------------------------------------------

    def pool(self, name: str) -> Pool:
        """Return the books of a pool, whether its AgentPool exists or not."""
        if name not in self.pools:
            self.pools[name] = Pool(name, ClassThenAge())
        return self.pools[name]

    def settle(self, run: Run) -> None:
        """Put a run where it belongs in its pool's books, and forget it when nothing of it is left."""
        pool = self.pool_of(run)
        if run.booked not in (None, pool.name):
            self.pools[run.booked].leave(run.uid)
        run.booked = pool.name
        if run.holds:
            pool.hold(run.uid, run.decision.request if run.decision else _ONE_SLOT)
        elif run.waits and (waiting := self._as_waiting(run)) is not None:
            pool.wait(waiting)
        else:
            pool.leave(run.uid)
        if run.empty:
            del self.runs[run.uid]

    def pool_of(self, run: Run) -> Pool:
        """Return the books of the pool that a run waits or runs in; of a deleted one, those it was in."""
        if run.decision is not None:
            return self.pool(run.decision.pool)
        return self.pool(run.record.pool if run.record is not None else run.booked or "default")

    def why(self, run: Run) -> Wait | None:
        """Return why a run waits; None when it does not."""
        return self.pool_of(run).why(run.uid) if run.waits else None

    def decide(self, waiting: model.Run, now: int) -> Run:
        """Note that a waiting run starts now, and return it."""
        run = self.runs[waiting.uid]
        record = run.record
        assert record is not None
        resources = specs.read(record.spec).resources  # it was read before: nothing waits that cannot be
        run.decision = Decision(
            attempt=1,
            created=run.created,
            # Strictly increasing in a pool, so that the order of starts can be read from the stored runs.
            scheduled=max(now, run.created, self._last_scheduled.get(record.pool, 0) + 1),
            pool=record.pool,
            team=record.team,
            priority=record.priority,
            cpu_millicores=resources.cpu_millicores,
            memory_mb=resources.memory_mb,
            gpu_count=resources.gpu_count,
            timeout_seconds=resources.timeout_seconds,
        )
        self._note_scheduled(run.decision)
        return run

    def undecide(self, run: Run) -> None:
        """Take a decision back: no Job was stored for it, the run returns to its old place."""
        run.decision = None
        self.settle(run)

    # -- details ---------------------------------------------------------------------------------

    def _run(self, uid: str) -> Run:
        if uid not in self.runs:
            run = self.runs[uid] = Run(uid)
            run.record = self.find(uid)
            if run.record is not None:
                run.created = self._first_seen(run.record, None)
                self._adopt_stored(run)
        return self.runs[uid]

    def _first_seen(self, record: AgentJobRecord, decision: Decision | None) -> int:
        if decision is not None:
            return decision.created
        stored = times.parse(record.status.created_at)
        if stored is not None:
            return stored
        # What is found by a list may be old: only what a watch tells of was created just now.
        return times.within_second(self._clock(), record.created) if self.live else record.created

    def _adopt_stored(self, run: Run) -> None:
        """Take from the stored status what memory has not: a restart, or a write of a former leader."""
        if run.record is None:
            return
        status = run.record.status
        if status.phase in ("SCHEDULED", "RUNNING", "CANCELING"):
            run.posted = True
        run.started = run.started or times.parse(status.started_at)
        run.completed = run.completed or times.parse(status.completed_at)

    def _as_waiting(self, run: Run) -> model.Run | None:
        """Return the run as the policy sees it; a spec that cannot be read ends the run instead."""
        record = run.record
        assert record is not None
        if run.request is None:
            try:
                resources = specs.read(record.spec).resources
            except InvalidRunError as error:
                run.failure = (error.reason, str(error))
                return None
            run.request = Amounts(1, resources.cpu_millicores, resources.memory_mb, resources.gpu_count)
        pool = self.catalogue.pools.get(record.pool)
        weight = getattr(pool.priority_weights, record.priority, 0) if pool else 0
        return model.Run(record.uid, record.namespace, record.team, weight, run.created, run.request)

    def _note_scheduled(self, decision: Decision) -> None:
        last = self._last_scheduled.get(decision.pool, 0)
        self._last_scheduled[decision.pool] = max(last, decision.scheduled)

"""What the operator knows, in memory: every run that is not over, and the books of every pool.

All of it follows from three lists (AgentJobs, Jobs, pods) and the catalogue, so it can be thrown away
and rebuilt at any moment. Nothing here does I/O.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from agentjobs.apis import times
from agentjobs.apis.jobrecords import JobRecord, PodRecord
from agentjobs.apis.records import AgentJobRecord
from agentjobs.controller.booked import as_holding, as_waiting
from agentjobs.controller.catalogue import Catalogue
from agentjobs.controller.drains import Drains
from agentjobs.controller.run import Run
from agentjobs.runs import decision as decisions
from agentjobs.runs.decision import Decision
from agentjobs.scheduling.model import Holding, Start, Wait
from agentjobs.scheduling.policies import Policy
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts

Offered = Callable[[Mapping[str, str], Mapping[str, Holding]], dict[str, Amounts]]


class State:
    """Takes what the reflectors tell, keeps the pools' books, and remembers which runs want a look.

    Args:
        clock: returns the time in microseconds since the epoch.
        make_policy: makes the policy of one pool.
        offered: returns what the nodes of a selection offer, given what other pools' runs hold there.

    Attributes:
        find: returns the stored AgentJob with a uid, or None; the reflector's, once there is one.
        touched: uids of the runs that want a look; `woken` is set with it.
        live: the first lists are complete; what is seen from now on is new.
    """

    def __init__(self, clock: Callable[[], int], make_policy: Callable[[], Policy], offered: Offered) -> None:
        self.runs: dict[str, Run] = {}
        self.pools: dict[str, Pool] = {}
        self.catalogue = Catalogue()
        self.drains = Drains()
        self.touched: set[str] = set()
        self.woken = asyncio.Event()
        self.live = False
        self.find: Callable[[str], AgentJobRecord | None] = lambda _: None
        self._edited = False  # the catalogue, since the books took it in
        self._clock = clock
        self._make_policy = make_policy
        self._offered = offered

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
            run.created, run.version = self._first_seen(new, run.decision), new.version
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
        known = run.job
        if known is not None and known.uid != record.uid and known.attempt == record.attempt:
            return  # whatever else carries the labels of this run: it goes by the Job it has
        run.confirmed = False
        if new is None:
            run.jobs.pop(record.uid, None)
        else:
            run.jobs[record.uid] = new
        if record.attempt == str(run.attempt):
            self._adopt_job(run, record)
        self.touch(run.uid)

    def _adopt_job(self, run: Run, job: JobRecord) -> None:
        """Take from the Job of the present attempt what was decided for it."""
        run.posted = True
        run.decision = decisions.read(job.annotation) or run.decision
        if run.decision is not None:
            run.created = run.decision.created
            self.pool_of(run).remember(run.decision.team, served=run.decision.scheduled)

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
        """Pools or teams were edited; however many, the books take them in once."""
        self._edited = True
        self.woken.set()

    def take_edits(self) -> None:
        """Bring the books up to date with the catalogue: every run that waits may have another place now."""
        if not self._edited:
            return
        self._edited = False
        for uid, run in self.runs.items():
            if run.waits:
                self.touched.add(uid)
        for name, pool in self.pools.items():
            if name not in self.catalogue.pools:
                pool.retire()
        self.capacity_changed()

    def capacity_changed(self) -> None:
        """Pools were edited, or what nodes offer has changed."""
        for name, spec in self.catalogue.pools.items():
            nodes = None
            if spec.capacity is not None and spec.capacity.nodes is not None:
                nodes = self._offered(spec.capacity.nodes.match_labels, self._others(name))
            self.pool(name).configure(self.catalogue.settings(name, nodes))
        self.woken.set()

    def drain(self, now: int) -> int | None:
        """Ask for a look at the runs of pools whose drain has ended; return when the next one will."""
        over = self.drains.over
        changed, look_again = self.drains.look(self.catalogue, now)
        self.catalogue.agentpools.moved |= changed
        if ended := over ^ self.drains.over:
            self.touched |= {uid for uid, run in self.runs.items() if self.pool_of(run).name in ended}
        return look_again

    @property
    def shares_nodes(self) -> bool:
        """Whether what one pool's runs hold may be missing on the nodes of another."""
        specs = self.catalogue.pools.values()
        bound = any(spec.capacity is not None and spec.capacity.nodes is not None for spec in specs)
        return bound and len(self.pools) > 1

    def _others(self, name: str) -> dict[str, Holding]:
        """Return what runs of other pools hold."""
        pools = (pool for pool in self.pools.values() if pool.name != name)
        return {uid: holding for pool in pools for uid, holding in pool.books.holdings.items()}

    def touch(self, uid: str) -> None:
        """Ask for a look at a run in the next cycle."""
        self.touched.add(uid)
        self.woken.set()

    def go_live(self, stored: Iterable[AgentJobRecord]) -> None:
        """Everything was listed once: take from stored runs what the books remember of those that are over.

        That is who was served last, which teams are known, and what was promised.
        """
        self.live = True
        for record in stored:
            if record.served or record.ended:
                self.pool(record.pool).remember(record.team, served=record.served, ended=record.ended)
            before = times.parse(record.status.starts_before)
            if before is not None:
                self.pool(record.pool).resume(record.uid, before)

    # -- the books -------------------------------------------------------------------------------

    def pool(self, name: str) -> Pool:
        """Return the books of a pool, whether its AgentPool exists or not."""
        if name not in self.pools:
            self.pools[name] = Pool(name, self._make_policy())
        return self.pools[name]

    def settle(self, run: Run) -> None:
        """Put a run where it belongs in its pool's books, and forget it when nothing of it is left."""
        pool = self.pool_of(run)
        run.drained = pool.name in self.drains.over
        if run.booked not in (None, pool.name):
            self.pools[run.booked].leave(run.uid)
        run.booked = pool.name
        if run.holds:
            pool.hold(as_holding(run))
        elif run.waits and (waiting := as_waiting(run, self.catalogue)) is not None:
            pool.wait(waiting, run.not_before)
        else:
            # Its end counts from the moment it holds nothing, not from when that is stored: in between its
            # team would be forgotten, and another take what is to be left free.
            ended = (run.completed or self._clock()) if run.record is not None else None
            pool.leave(run.uid, ended)
        if run.empty:
            del self.runs[run.uid]

    def pool_of(self, run: Run) -> Pool:
        """Return the books of the pool that a run waits or runs in; of a deleted one, those it was in."""
        if run.decision is not None:
            return self.pool(run.decision.pool)
        return self.pool(run.record.pool if run.record is not None else run.booked or "default")

    def why(self, run: Run) -> Wait | None:
        """Return why a run waits; None when it does not."""
        return self.pool_of(run).why(run.uid, self._clock()) if run.waits else None

    def promise(self, run: Run) -> int | None:
        """Return when a waiting run starts at the latest; None where nothing was promised."""
        return self.pool_of(run).promise(run.uid) if run.waits else None

    def decide(self, start: Start) -> Run:
        """Note that a waiting run starts now, and return it."""
        run = self.runs[start.run.uid]
        record = run.record
        assert record is not None
        request = start.run.request
        run.decision = Decision(
            attempt=run.attempt,
            created=run.created,
            scheduled=start.scheduled,
            pool=record.pool,
            team=record.team,
            priority=record.priority,
            cpu_millicores=request.cpu_millicores,
            memory_mb=request.memory_mb,
            gpu_count=request.gpu_count,
            timeout_seconds=start.run.timeout_seconds,
            start_seconds=start.start_seconds,
            hole=start.backfill,
            avoid_node=start.avoid_node or "",
        )
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
                run.created, run.version = self._first_seen(run.record, None), run.record.version
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
        attempt = 1 + status.last_attempt.number
        if not status.terminal and attempt > run.attempt:
            run.turn_to(attempt)
            if run.job is not None:
                self._adopt_job(run, run.job)
        if status.phase in ("SCHEDULED", "RUNNING", "CANCELING"):
            run.posted = True
        run.started = run.started or times.parse(status.started_at)
        run.completed = run.completed or times.parse(status.completed_at)

"""The writes of a run: which one it needs now, and how each is done. Every one of them may be repeated.

A run needs at most one write at a time, worked out from what is true when the writer takes it up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import IntEnum

import msgspec

from agentjobs import metrics
from agentjobs.apis import names, times
from agentjobs.apis.jobrecords import JobRecord, PodRecord
from agentjobs.apis.records import AgentJobRecord
from agentjobs.apis.runstatus import Phase
from agentjobs.cluster import paths
from agentjobs.cluster.network import NetworkPolicies
from agentjobs.cluster.reflector import Reflector
from agentjobs.cluster.session import MERGE_PATCH, Session
from agentjobs.controller import telling
from agentjobs.controller.reports import Reports
from agentjobs.controller.run import Run
from agentjobs.controller.state import State
from agentjobs.errors import ApiError, InvalidRunError
from agentjobs.runs import spec as specs
from agentjobs.runs.job import job_manifest
from agentjobs.runs.network import network_policy
from agentjobs.runs.status import status_of

_log = logging.getLogger(__name__)

QUOTA_PAUSE = 10 * times.SECOND
_AT_ONCE = 0.0
_STOPPED = 1  # activeDeadlineSeconds of a pod that we want to end: TERM, grace, KILL; logs and exit code stay


class Need(IntEnum):
    """What a run needs written, the most urgent first: an end frees a slot, a start uses one."""

    STOP = 0
    CANCEL = 1
    END = 2
    GIVE_UP = 3
    POST = 4
    STATUS = 5


class _ItemList(msgspec.Struct):
    items: list[msgspec.Raw] = []


class Actions:
    """Does the writes. What the API server answers is given to the reflectors, as if a watch had told it."""

    def __init__(
        self,
        session: Session,
        state: State,
        agentjobs: Reflector[AgentJobRecord],
        jobs: Reflector[JobRecord],
        pods: Reflector[PodRecord],
        clock: Callable[[], int],
    ) -> None:
        self._session = session
        self._state = state
        self._reports = Reports(session, agentjobs, clock)
        self._jobs = jobs
        self._pods = pods
        self._clock = clock
        self._policies = NetworkPolicies(session)

    # -- which one -------------------------------------------------------------------------------

    def need(self, run: Run, now: int) -> Need | None:
        """Return what the run needs written now, if anything."""
        if run.record is None:
            return None  # its Job goes with it: the owner reference sees to that
        if self._to_stop(run, now):
            return Need.STOP
        if run.over:
            return None if run.told else Need.STATUS
        if run.decision is not None and not run.posted and run.failure is None and run.cause is None:
            return None if run.record.deleting else Need.POST
        if run.hole_until is not None and now >= run.hole_until and self._unstarted(run):
            return Need.GIVE_UP
        facts = telling.news(run, self._state.why(run), self._state.promise(run), now)
        if facts is None:
            return None
        if facts.phase.terminal:
            return Need.END
        return Need.CANCEL if facts.phase is Phase.CANCELING else Need.STATUS

    def _to_stop(self, run: Run, now: int) -> bool:
        """Whether something runs that must not: its time is over, or the run is canceled or has ended."""
        if any(not job.deleting for job in run.old_jobs):
            return True
        alive = _unstopped(run)
        if run.over or run.stopping:
            unstarted = (
                run.job is not None and not run.job.deleting and run.job.finished is None and not run.pods
            )
            return bool(alive) or unstarted
        expiry = run.expiry
        return bool(alive) and expiry is not None and now >= expiry

    # -- how -------------------------------------------------------------------------------------

    async def write(self, uid: str) -> float | None:
        """Do what a run needs most; return how many seconds later to try again, None when it was done."""
        run = self._state.runs.get(uid)
        now = self._clock()
        need = self.need(run, now) if run is not None else None
        if run is None or need is None:
            return None
        try:
            match need:
                case Need.STOP:
                    await self._stop(run)
                case Need.GIVE_UP:
                    await self._give_up(run, now)
                case Need.POST:
                    await self._post(run)
                case Need.CANCEL | Need.END | Need.STATUS:
                    await self._tell(run, now)
        except ApiError as error:
            _log.warning("run %s: %s: %s", uid, need.name, error)
            return error.retry_after or _AT_ONCE
        self._state.touch(uid)
        return None

    async def _post(self, run: Run) -> None:
        record, decision = run.record, run.decision
        assert record is not None
        assert decision is not None
        pool = self._state.catalogue.pools.get(decision.pool)
        if pool is None:
            self._state.undecide(run)
            return
        try:
            manifest = job_manifest(
                name=record.name,
                namespace=record.namespace,
                uid=record.uid,
                created=record.created,
                spec=specs.read(record.spec),
                pool=pool,
                decision=decision,
                allowed_secrets=self._state.catalogue.allowed_secrets(record.team),
                annotations=record.simulation,
            )
            await self._policies.ensure(network_policy(record.namespace, decision.pool, pool.sandbox))
            if run.cause is not None:
                return  # canceled meanwhile
            path = paths.jobs(record.namespace)
            self._jobs.upsert(
                JobRecord(await self._session.write("create", "jobs", "POST", path, body=manifest))
            )
        except InvalidRunError as error:
            run.failure = (error.reason, str(error))
        except ApiError as error:
            await self._post_refused(run, manifest["metadata"]["name"], error)

    async def _post_refused(self, run: Run, name: str, error: ApiError) -> None:
        """Tell what may succeed later from what never will; only the first is tried again."""
        record = run.record
        assert record is not None
        if error.status == 409 and error.reason == "AlreadyExists":
            await self._adopt(run, name)
        elif error.quota:
            until = self._clock() + QUOTA_PAUSE
            self._state.pool_of(run).close_namespace(record.namespace, until)
            self._state.undecide(run)
        elif error.transient or error.status == 409:
            raise error
        else:
            run.failure = ("JobRefused", error.message)

    async def _adopt(self, run: Run, name: str) -> None:
        """A Job of this name is there: ours, from an answer that was lost, or somebody else's."""
        assert run.record is not None
        path = f"{paths.jobs(run.record.namespace)}/{name}"
        job = JobRecord(await self._session.request("GET", path))
        if job.run_uid == run.uid:
            self._jobs.upsert(job)
            return
        run.failure = ("NameConflict", f"a Job named {name} exists and is not this run's; it was left alone")

    def _unstarted(self, run: Run) -> bool:
        outcome = run.outcome()
        return outcome is not None and outcome.phase is Phase.SCHEDULED

    async def _give_up(self, run: Run, now: int) -> None:
        """A run did not start in the hole it was given: its slot is another's, it returns to its place.

        That is stored before the Job is deleted, so that a restart knows the Job as one that was given up.
        """
        assert run.record is not None
        await self._confirm(run)
        if self._unstarted(run):
            facts = telling.given_up(run, now)
            if await self._reports.store(run, run.record, status_of(facts)):
                run.spoke = now

    async def _stop(self, run: Run) -> None:
        for job in run.old_jobs:
            metrics.UNEXPECTED_JOBS.inc()
            await self._delete_job(job)
        # A pod without a node has no kubelet that could stop it, a Job without a pod may still make one.
        if run.job is not None and not any(pod.node for pod in run.live_pods()):
            if run.over:
                metrics.UNEXPECTED_JOBS.inc()
            await self._delete_job(run.job)
            return
        for pod in _unstopped(run):
            await self._stop_pod(pod)

    async def _stop_pod(self, pod: PodRecord) -> None:
        body = {"metadata": {"uid": pod.uid}, "spec": {"activeDeadlineSeconds": _STOPPED}}
        path = f"{paths.pods(pod.namespace)}/{pod.name}"
        try:
            content = await self._session.write(
                "patch", "pods", "PATCH", path, body=body, content_type=MERGE_PATCH
            )
        except ApiError as error:
            if error.status != 404:
                raise
            self._pods.remove(pod.uid)
        else:
            self._pods.upsert(PodRecord(content))

    async def _delete_job(self, job: JobRecord) -> None:
        body = {"preconditions": {"uid": job.uid}, "propagationPolicy": "Background"}
        path = f"{paths.jobs(job.namespace)}/{job.name}"
        try:
            await self._session.write("delete", "jobs", "DELETE", path, body=body)
        except ApiError as error:
            if error.status != 404:
                raise
        self._jobs.remove(job.uid)

    async def _tell(self, run: Run, now: int) -> None:
        record = run.record
        assert record is not None
        if record.status.terminal:
            # The end is told once; an edit after it only needs to be known as seen.
            await self._reports.store(run, record, {"observedGeneration": record.generation})
            return
        facts = telling.news(run, self._state.why(run), self._state.promise(run), now)
        if facts is None:
            return
        if run.unsure:
            await self._confirm(run)
            return
        if await self._reports.store(run, record, status_of(facts)):
            run.spoke = now
            await self._reports.told(record, facts)

    async def _confirm(self, run: Run) -> None:
        """Read what seems to be gone: a watch may be behind, and an end cannot be taken back."""
        record = run.record
        assert record is not None
        try:
            path = f"{paths.jobs(record.namespace)}/{run.job_name}"
            job = JobRecord(await self._session.request("GET", path))
            if job.run_uid == run.uid:
                self._jobs.upsert(job)
        except ApiError as error:
            if not error.absent:
                raise
            if (known := run.job) is not None:
                self._jobs.remove(known.uid)
        selector = {"labelSelector": f"{names.LABEL_RUN_UID}={run.uid}"}
        content = await self._session.request("GET", paths.pods(record.namespace), params=selector)
        found = [PodRecord(raw) for raw in msgspec.json.decode(content, type=_ItemList).items]
        for pod in found:
            self._pods.upsert(pod)
        for uid in run.pods.keys() - {pod.uid for pod in found}:
            self._pods.remove(uid)
        run.confirmed = True


def _unstopped(run: Run) -> list[PodRecord]:
    """Return the pods in which something may run that nobody has asked to end."""
    return [pod for pod in run.live_pods() if not pod.deleting and pod.deadline != _STOPPED]

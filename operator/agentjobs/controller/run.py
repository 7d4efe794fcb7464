"""One run as the operator knows it: what is stored, what was observed, what was decided; and what follows."""

from __future__ import annotations

from collections.abc import Iterable

from agentjobs.apis import times
from agentjobs.apis.agentjob import ResourceRequirements
from agentjobs.apis.jobrecords import JobRecord, PodRecord
from agentjobs.apis.records import AgentJobRecord, Attempted
from agentjobs.apis.runstatus import Phase
from agentjobs.runs import identity
from agentjobs.runs.cancel import Cause, canceled
from agentjobs.runs.decision import Decision
from agentjobs.runs.observe import Outcome, observe

SHARE = 2 * times.SECOND  # under load a transition waits this long at most for one to share a write with
BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 10, 300  # before another attempt


class Run:
    """Everything known of one run, by its AgentJob's uid.

    Only `decision`, `failure` and the moments of first sight live in memory alone; each of them can be
    worked out again from the stored objects, at most with whole seconds for microseconds.

    Attributes:
        record: the AgentJob; None once it is deleted, while its Job or pod is still there.
        jobs, pods: what Kubernetes has, by uid; of earlier attempts too.
        attempt: the present one, from 1: one more than the stored status tells of.
        given_up: what an attempt held that was given up and may still hold it.
        posted: the Job was stored at some time: from then on it is never created again.
        failure: (reason, message) of a schedule failure found here, not by Kubernetes.
        drained: its pool was drained and what was left of it is canceled.
        request: what it asks for; None when the spec was not read yet, or cannot be.
        booked: name of the pool in whose books it is; None while it is in none.
        expiry: when its own time is over, microseconds; None while it does not run.
    """

    __slots__ = (
        "attempt",
        "booked",
        "completed",
        "confirmed",
        "created",
        "decision",
        "drained",
        "failure",
        "given_up",
        "jobs",
        "pods",
        "posted",
        "record",
        "request",
        "spoke",
        "started",
        "timer",
        "uid",
        "version",
    )

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.record: AgentJobRecord | None = None
        self.jobs: dict[str, JobRecord] = {}
        self.pods: dict[str, PodRecord] = {}
        self.attempt = 1
        self.decision: Decision | None = None
        self.given_up: Decision | None = None
        self.posted = False
        self.failure: tuple[str, str] | None = None
        self.drained = False
        self.request: ResourceRequirements | None = None
        self.booked: str | None = None
        self.created = 0
        self.version = 0  # the resourceVersion at first sight
        self.started: int | None = None
        self.completed: int | None = None
        self.confirmed = False  # an absence that an outcome rests on was read from the server itself
        self.spoke = 0  # when its status was last written, microseconds since the epoch
        self.timer: int | None = None  # when the loop looks at it again by itself

    # -- what is known ---------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the stored phase is terminal, or there is no AgentJob any more."""
        return self.record is None or self.record.status.terminal

    @property
    def waits(self) -> bool:
        """Whether it needs a decision: nothing was decided, posted or found wrong with it."""
        if self.over or self.posted or self.decision or self.failure or self.record is None:
            return False
        if self.cause is not None:
            return False
        return not self.record.deleting and not self.holds and not self.old_jobs

    @property
    def holds(self) -> bool:
        """Whether it has its slot: from the decision until its pod is terminal or gone."""
        if any(not pod.terminal for pod in self.pods.values()):
            return True
        if any(job.finished is None and not self._pods_of(job.attempt) for job in self.jobs.values()):
            return True
        if self.jobs or self.record is None or self.record.deleting or self.failure or self.over:
            return False
        if self.posted:
            return not self.pods and not self.confirmed  # it only seems to be gone
        return self.decision is not None

    @property
    def cause(self) -> Cause | None:
        """Why it is canceled; None when it is not. What was begun is not taken back."""
        if self.record is None:
            return None
        if self.record.cancel:
            return Cause.REQUESTED
        if self.stopping:
            return Cause.POOL_DRAINED if self.record.status.reason == Cause.POOL_DRAINED else Cause.REQUESTED
        return Cause.POOL_DRAINED if self.drained else None

    @property
    def stopping(self) -> bool:
        """Whether CANCELING is stored: from then on what runs of it is stopped."""
        return self.record is not None and self.record.status.phase == Phase.CANCELING

    @property
    def unsure(self) -> bool:
        """Whether where it stands follows from something not being there, and that was not confirmed."""
        if self.confirmed:
            return False
        outcome = self.outcome()
        if outcome is not None:
            return outcome.absence
        # Its Job was decided, and may have been stored without an answer.
        return self.cause is not None and self.decision is not None

    @property
    def empty(self) -> bool:
        """Whether nothing is left that the operator must think about."""
        return self.over and self.told and not self.jobs and not self.pods

    @property
    def job(self) -> JobRecord | None:
        """The Job of the present attempt, where it is there."""
        return next((job for job in self.jobs.values() if job.attempt == str(self.attempt)), None)

    @property
    def old_jobs(self) -> list[JobRecord]:
        """The Jobs of attempts that were given up."""
        return [job for job in self.jobs.values() if job.attempt != str(self.attempt)]

    @property
    def leftovers(self) -> bool:
        """Whether something of an earlier attempt may still run."""
        return bool(self.old_jobs) or any(pod.attempt != str(self.attempt) for pod in self.live_pods())

    def _pods_of(self, attempt: str) -> list[PodRecord]:
        return [pod for pod in self.pods.values() if pod.attempt == attempt]

    @property
    def told(self) -> bool:
        """Whether the stored status was worked out from the present spec."""
        return self.record is None or self.record.told

    @property
    def job_name(self) -> str:
        """The name of the present attempt's Job."""
        if self.job is not None:
            return self.job.name
        assert self.record is not None
        stored = self.record.status.k8s_job_name
        return stored or identity.job_name(self.record.name, self.uid, self.attempt)

    @property
    def timeout_seconds(self) -> int:
        return self.decision.timeout_seconds if self.decision else 0

    @property
    def expiry(self) -> int | None:
        if self.started is None or self.decision is None:
            return None
        return self.started + self.decision.timeout_seconds * times.SECOND

    @property
    def shares_until(self) -> int:
        """Until when its last transition may wait for the next one, to share a write; microseconds."""
        since = self.started or (self.decision.scheduled if self.decision else 0)
        return since + SHARE

    def live_pods(self) -> Iterable[PodRecord]:
        """Return the pods in which something may run."""
        return (pod for pod in self.pods.values() if not pod.terminal)

    # -- what follows ----------------------------------------------------------------------------

    def outcome(self) -> Outcome | None:
        """Return where the run stands by its Job and pods; None when no Job was posted for it."""
        if not self.posted:
            return None
        # A deadline of 1 is never set at the start: the operator lowered it, before a restart or after.
        pods = self._pods_of(str(self.attempt))
        expired = any(pod.deadline == 1 for pod in pods)
        outcome = observe(self.job, pods, timeout_seconds=self.timeout_seconds, expired=expired)
        return outcome if self.cause is None else canceled(outcome, self.cause, leftovers=self.leftovers)

    @property
    def not_before(self) -> int:
        """When the next attempt may start: the longer after the last, the more there were (rule 8)."""
        last = self.record.status.last_attempt if self.record is not None else Attempted()
        ended = times.parse(last.completed_at)
        if ended is None:
            return 0
        pause = min(BACKOFF_SECONDS << min(last.number - 1, 10), LONGEST_BACKOFF_SECONDS)
        return ended + pause * times.SECOND

    @property
    def hole_until(self) -> int | None:
        """When an attempt that fills a hole is given up unless it started; None where it fills none."""
        if self.decision is None or not self.decision.hole or self.started is not None:
            return None
        return self.decision.scheduled + self.decision.start_seconds * times.SECOND

    def turn_to(self, attempt: int) -> None:
        """Begin another attempt: what was decided and seen of the last one is history."""
        self.attempt, self.given_up, self.decision = attempt, self.decision or self.given_up, None
        self.posted = self.confirmed = False
        self.started = self.completed = None

    def note_times(self, outcome: Outcome, now: int) -> None:
        """Remember when the start and the end were first seen, within the kubelet's own second."""
        if self.started is None and outcome.started is not None:
            self.started = times.within_second(now, outcome.started)
        # What only seems to be gone may turn out to run on.
        if self.completed is None and outcome.phase.terminal and (self.confirmed or not outcome.absence):
            ended = outcome.completed
            self.completed = now if ended is None else times.within_second(now, ended)

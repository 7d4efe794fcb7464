"""What a Job and its pod say of a run: one table from Kubernetes' signals to a phase and its reason.

The agent's container decides, not the pod: an injected sidecar that fails or never ends changes
nothing. What follows only from something being absent is marked, and confirmed by reading before it
is believed.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass, field

from agentjobs.apis import times
from agentjobs.apis.jobrecords import ContainerStatus, JobRecord, PodRecord, Terminated
from agentjobs.apis.names import AGENT_CONTAINER
from agentjobs.apis.runstatus import Phase
from agentjobs.runs import result
from agentjobs.runs.result import Returned

# Container waiting reasons that are a stage of every start, not news.
_ORDINARY_WAITS = frozenset({"", "ContainerCreating", "PodInitializing"})
# Images that no registry can ever be asked for.
_HOPELESS_WAITS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_DISRUPTIONS = {
    "PreemptionByScheduler": "Preempted",
    "DeletionByTaintManager": "NodeLost",
    "DeletionByPodGC": "NodeLost",
    "EvictionByEvictionAPI": "Drained",
    "TerminationByKubelet": "Evicted",
}
_MESSAGE_LIMIT = 1024
_KILLED = 128 + signal.SIGKILL


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a posted run stands.

    Attributes:
        phase: SCHEDULED, RUNNING or a terminal one.
        started: when the agent's container started, as the kubelet says: whole seconds in microseconds.
        completed: when it ended, likewise; None while it has not, or when nobody knows.
        exit_code: of the agent's container.
        absence: the outcome rests on something not being there.
    """

    phase: Phase
    reason: str
    message: str
    started: int | None = None
    completed: int | None = None
    pod: PodRecord | None = None
    exit_code: int | None = None
    returned: Returned = field(default_factory=Returned)
    absence: bool = False


def observe(
    job: JobRecord | None, pods: Iterable[PodRecord], *, timeout_seconds: int, expired: bool
) -> Outcome:
    """Return where a run stands whose Job was posted.

    Args:
        job: its Job; None when it has vanished.
        pods: all its pods of this attempt.
        timeout_seconds: the run's own time.
        expired: we have asked the kubelet to stop it because its time was over; it may have ended before.
    """
    pod = max(pods, key=lambda pod: (pod.created, pod.uid), default=None)
    lost = job is None or job.deleting
    if pod is None:
        return _without_pod(job)
    agent = next((c for c in pod.status.container_statuses if c.name == AGENT_CONTAINER), None)
    ended = agent.state.terminated if agent else None
    alone = len(pod.status.container_statuses) == 1
    if ended is not None and (pod.terminal or not alone):
        return _ended(ended, pod, timeout_seconds=timeout_seconds, expired=expired, lost=lost)
    if pod.terminal:
        return _pod_ended(pod, timeout_seconds=timeout_seconds, expired=expired, lost=lost)
    if lost:
        return _lost(pod)
    return _alive(agent, pod)


def _ended(ended: Terminated, pod: PodRecord, *, timeout_seconds: int, expired: bool, lost: bool) -> Outcome:
    """The agent's container has ended: its exit code, its last words and what stopped it decide."""
    # A container that could not be started has both times at the epoch.
    started, completed = times.parse(ended.started_at) or None, times.parse(ended.finished_at) or None
    returned = result.parse(ended.message, failed=ended.exit_code != 0)

    def outcome(phase: Phase, reason: str, message: str) -> Outcome:
        return Outcome(
            phase, reason, message[:_MESSAGE_LIMIT], started, completed, pod, ended.exit_code, returned
        )

    if ended.exit_code == 0 and returned.error is None:
        # A container can end with 0 and the reason OOMKilled, when only a child of it was killed.
        if returned.too_large:
            return outcome(
                Phase.SUCCEEDED,
                "ResultTooLarge",
                f"the result is larger than {result.MESSAGE_LIMIT} bytes and was lost",
            )
        return outcome(Phase.SUCCEEDED, "Completed", "the agent ended with exit code 0")
    if lost:
        return outcome(Phase.FAILED, "JobLost", "the Job was deleted while the agent ran")
    # The kubelet's times are whole seconds: what was stopped ran a second less at least.
    in_time = started and completed and completed - started < (timeout_seconds - 1) * times.SECOND
    if pod.status.reason == "DeadlineExceeded" or (expired and not in_time):
        return outcome(
            Phase.TIMED_OUT, "DeadlineExceeded", f"the agent ran longer than timeoutSeconds {timeout_seconds}"
        )
    if ended.reason == "OOMKilled":
        return outcome(Phase.FAILED, "OOMKilled", "the agent used more memory than resources.memoryMb")
    if (disruption := _disruption(pod)) is not None:
        return outcome(Phase.FAILED, disruption, pod.status.message or f"the pod was stopped: {disruption}")
    if pod.status.reason == "Evicted":
        # One that is evicted for the node's sake is marked as disrupted; this one broke its own limit.
        return outcome(Phase.FAILED, "EphemeralStorageExceeded", pod.status.message or "too much was written")
    if ended.exit_code == _KILLED:
        return outcome(
            Phase.FAILED,
            "PossiblyOOM",
            f"the agent was killed ({exit_words(_KILLED)}) and nothing tells why; "
            "some runtimes do so when it uses more memory than resources.memoryMb",
        )
    said = f": {returned.error}" if returned.error else ""
    return outcome(Phase.FAILED, "AgentFailed", f"the agent ended with {exit_words(ended.exit_code)}{said}")


def _pod_ended(pod: PodRecord, *, timeout_seconds: int, expired: bool, lost: bool) -> Outcome:
    """The pod has ended and nothing is known of the agent's container."""
    if pod.status.phase == "Succeeded":
        return Outcome(Phase.SUCCEEDED, "Completed", "the pod succeeded", pod=pod)
    if lost:
        return Outcome(Phase.FAILED, "JobLost", "the Job was deleted while the agent ran", pod=pod)
    if expired:
        return Outcome(
            Phase.TIMED_OUT,
            "DeadlineExceeded",
            f"the agent ran longer than timeoutSeconds {timeout_seconds}",
            pod=pod,
        )
    if pod.status.reason == "DeadlineExceeded":
        return Outcome(Phase.SCHEDULE_FAILED, "StartTimeout", "the agent did not start in time", pod=pod)
    reason = _disruption(pod) or pod.status.reason or "PodFailed"
    return Outcome(Phase.FAILED, reason, (pod.status.message or "the pod failed")[:_MESSAGE_LIMIT], pod=pod)


def _without_pod(job: JobRecord | None) -> Outcome:
    if job is None:
        return Outcome(Phase.FAILED, "JobLost", "the Job is gone and left no pod", absence=True)
    if job.deleting:
        return Outcome(Phase.FAILED, "JobLost", "the Job was deleted", absence=True)
    if job.finished is None:
        return Outcome(Phase.SCHEDULED, "JobCreated", f"Job {job.name} waits for its pod")
    if job.finished.reason == "DeadlineExceeded":
        return Outcome(
            Phase.SCHEDULE_FAILED, "StartTimeout", "no pod of the Job started in time", absence=True
        )
    return Outcome(
        Phase.FAILED,
        "PodLost",
        f"the pod is gone: {job.finished.message or job.finished.reason or 'its Job has ended'}"[
            :_MESSAGE_LIMIT
        ],
        absence=True,
    )


def _lost(pod: PodRecord) -> Outcome:
    return Outcome(Phase.FAILED, "JobLost", "the Job was deleted while the agent ran", pod=pod, absence=True)


def _alive(agent: ContainerStatus | None, pod: PodRecord) -> Outcome:
    state = agent.state if agent else None
    # A container may have ended before its pod says so: what stopped it comes with that.
    begun = (state.running or state.terminated) if state else None
    if begun is not None:
        started = times.parse(begun.started_at) or None
        return Outcome(Phase.RUNNING, "Started", f"the agent runs on node {pod.node}", started, pod=pod)
    waiting = state.waiting if state else None
    reason = (waiting.reason if waiting else None) or ""
    detail = ((waiting.message if waiting else None) or f"pod {pod.name} waits: {reason}")[:_MESSAGE_LIMIT]
    if reason in _HOPELESS_WAITS:
        return Outcome(Phase.SCHEDULE_FAILED, reason, detail, pod=pod)
    if reason not in _ORDINARY_WAITS:
        return Outcome(Phase.SCHEDULED, reason, detail, pod=pod)
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason:
            return Outcome(
                Phase.SCHEDULED, condition.reason, (condition.message or "")[:_MESSAGE_LIMIT], pod=pod
            )
    return Outcome(Phase.SCHEDULED, "JobCreated", f"pod {pod.name} is starting", pod=pod)


def _disruption(pod: PodRecord) -> str | None:
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return _DISRUPTIONS.get(condition.reason or "", "Disrupted")
    return None


def exit_words(code: int) -> str:
    """Return an exit code in words: a shell's 128 + n names the signal."""
    try:
        return f"exit code {code} ({signal.Signals(code - 128).name})" if code > 128 else f"exit code {code}"
    except ValueError:
        return f"exit code {code}"

"""The table from Kubernetes' signals to a phase and its reason, one sentence a row."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from agentjobs.apis import times
from agentjobs.apis.jobrecords import JobRecord, PodRecord
from agentjobs.runs.observe import observe
from tests.unit.runs.objects import (
    ENDED,
    JSON,
    STARTED,
    disrupted,
    ended,
    failed,
    job,
    pod,
    running,
    waiting,
)

JOB = job()
TIMEOUT = 5  # seconds; from STARTED to ENDED it is 4, as it may be told of 5
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}


@dataclass(frozen=True)
class Row:
    """What is seen and what follows."""

    story: str
    expected: str
    job: JobRecord | None = JOB
    pods: tuple[PodRecord, ...] = ()
    expired: bool = False
    absence: bool = False


def in_time(code: int) -> JSON:
    """A container that failed well before its time was over."""
    made = ended(code)
    made["state"]["terminated"]["startedAt"] = ENDED
    return made


def seen(story: str, expected: str, *pods: PodRecord, expired: bool = False) -> Row:
    return Row(story, expected, pods=pods, expired=expired)


def lost(story: str, expected: str, *pods: PodRecord, absence: bool = False) -> Row:
    return Row(story, expected, None, pods, absence=absence)


BEFORE_THE_START = [
    seen("a Job without a pod waits for it", "SCHEDULED JobCreated"),
    seen("a pod without a status is starting", "SCHEDULED JobCreated", pod(status={})),
    seen("a pod without a node says what the scheduler says", "SCHEDULED Unschedulable",
         pod(conditions=[UNSCHEDULABLE], node="")),
    seen("a pod whose container is made is starting", "SCHEDULED JobCreated",
         pod(waiting("ContainerCreating"))),
    seen("a pod that initialises is starting", "SCHEDULED JobCreated", pod(waiting("PodInitializing"))),
    seen("a pull that failed may be tried again", "SCHEDULED ErrImagePull", pod(waiting("ErrImagePull"))),
    seen("a pull that failed often may be tried again", "SCHEDULED ImagePullBackOff",
         pod(waiting("ImagePullBackOff"))),
    seen("a missing Secret may come", "SCHEDULED CreateContainerConfigError",
         pod(waiting("CreateContainerConfigError"))),
    seen("an image name that nobody can pull is hopeless", "SCHEDULE_FAILED InvalidImageName",
         pod(waiting("InvalidImageName"))),
    seen("an image that must not be pulled is hopeless", "SCHEDULE_FAILED ErrImageNeverPull",
         pod(waiting("ErrImageNeverPull"))),
    seen("a sidecar that runs before the agent is no start", "SCHEDULED JobCreated",
         pod(waiting("ContainerCreating"), running("sidecar"))),
    seen("the deadline of a pod that never started", "SCHEDULE_FAILED StartTimeout",
         pod(waiting("ContainerCreating"), phase="Failed", reason="DeadlineExceeded")),
    Row("the deadline of a Job without a pod", "SCHEDULE_FAILED StartTimeout",
        job(failed("DeadlineExceeded")), absence=True),
    Row("a Job that failed and left no pod", "FAILED PodLost",
        job(failed("BackoffLimitExceeded")), absence=True),
]  # fmt: skip

WHILE_IT_RUNS = [
    seen("an agent that runs", "RUNNING Started", pod(running(), phase="Running")),
    seen("an agent that runs beside a sidecar that failed", "RUNNING Started",
         pod(ended(1, name="sidecar"), running(), phase="Running")),
    seen("an agent that ended before its pod says so", "RUNNING Started", pod(ended(0), phase="Running")),
    seen("an agent that ended beside a sidecar that runs on", "SUCCEEDED Completed",
         pod(ended(0), running("sidecar"), phase="Running")),
    seen("an agent that failed beside a sidecar that runs on", "FAILED AgentFailed",
         pod(running("sidecar"), ended(2), phase="Running")),
    seen("an agent whose pod is being deleted runs until it has ended", "RUNNING Started",
         pod(running(), phase="Running", deleting=True)),
    seen("of two pods the newer one counts", "RUNNING Started",
         pod(ended(1), phase="Failed", uid="old", creationTimestamp="2026-03-02T11:00:00Z"),
         pod(running(), phase="Running")),
]  # fmt: skip

AT_THE_END = [
    seen("exit code 0", "SUCCEEDED Completed", pod(ended(0), phase="Succeeded")),
    seen("exit code 0 in a pod that a sidecar failed", "SUCCEEDED Completed",
         pod(ended(0), ended(9, name="sidecar"), phase="Failed")),
    seen("exit code 3 in a pod whose sidecar did well", "FAILED AgentFailed",
         pod(ended(0, name="sidecar"), ended(3), phase="Failed")),
    seen("exit code 0 of a container whose child had too much memory", "SUCCEEDED Completed",
         pod(ended(0, reason="OOMKilled"), phase="Succeeded")),
    seen("exit code 0 just before the deadline", "SUCCEEDED Completed",
         pod(ended(0), phase="Failed", reason="DeadlineExceeded"), expired=True),
    seen("exit code 0 with an error told", "FAILED AgentFailed",
         pod(ended(0, message='{"error": "ValueError: no"}'), phase="Succeeded")),
    seen("exit code 0 with a result that lost its head", "SUCCEEDED ResultTooLarge",
         pod(ended(0, message="x" * 4096), phase="Succeeded")),
    seen("exit code 1", "FAILED AgentFailed", pod(ended(1), phase="Failed")),
    seen("too much memory", "FAILED OOMKilled", pod(ended(137, reason="OOMKilled"), phase="Failed")),
    seen("killed, and nothing tells by whom", "FAILED PossiblyOOM", pod(ended(137), phase="Failed")),
    seen("the deadline after the start", "TIMED_OUT DeadlineExceeded",
         pod(ended(143), phase="Failed", reason="DeadlineExceeded")),
    seen("stopped by us because its time was over", "TIMED_OUT DeadlineExceeded",
         pod(ended(137), phase="Failed"), expired=True),
    seen("stopped by us after it had failed in time", "FAILED AgentFailed",
         pod(in_time(1), phase="Failed"), expired=True),
    seen("stopped by us, and nothing is known of its container", "TIMED_OUT DeadlineExceeded",
         pod(phase="Failed"), expired=True),
    seen("a container that could not be started", "FAILED AgentFailed",
         pod(ended(128, reason="StartError"), phase="Failed")),
    seen("a pod that succeeded and tells nothing of its container", "SUCCEEDED Completed",
         pod(phase="Succeeded")),
    seen("a pod that failed and tells nothing of its container", "FAILED PodFailed", pod(phase="Failed")),
    seen("a pod that the node refused", "FAILED OutOfcpu", pod(phase="Failed", reason="OutOfcpu")),
]  # fmt: skip

TAKEN_AWAY = [
    seen("evicted for what it wrote", "FAILED EphemeralStorageExceeded",
         pod(ended(137), phase="Failed", reason="Evicted")),
    seen("evicted because the node was short", "FAILED Evicted",
         pod(ended(137), phase="Failed", reason="Evicted", conditions=[disrupted("TerminationByKubelet")])),
    seen("refused by a node that is short", "FAILED Evicted", pod(phase="Failed", reason="Evicted")),
    seen("preempted", "FAILED Preempted",
         pod(ended(143), phase="Failed", conditions=[disrupted("PreemptionByScheduler")])),
    seen("drained", "FAILED Drained",
         pod(ended(143), phase="Failed", conditions=[disrupted("EvictionByEvictionAPI")])),
    seen("its node is gone", "FAILED NodeLost",
         pod(running(), phase="Failed", conditions=[disrupted("DeletionByTaintManager")])),
    seen("its node is gone and the pod was collected", "FAILED NodeLost",
         pod(phase="Failed", conditions=[disrupted("DeletionByPodGC")])),
    seen("disrupted in a way not known yet", "FAILED Disrupted",
         pod(ended(143), phase="Failed", conditions=[disrupted("SomethingNew")])),
    seen("disrupted after it was done", "SUCCEEDED Completed",
         pod(ended(0), phase="Succeeded", conditions=[disrupted("EvictionByEvictionAPI")])),
    lost("the Job is gone and left nothing", "FAILED JobLost", absence=True),
    lost("the Job is gone while the agent runs", "FAILED JobLost",
         pod(running(), phase="Running"), absence=True),
    lost("the Job is gone, the agent was stopped for it", "FAILED JobLost", pod(ended(143), phase="Failed")),
    lost("the Job is gone, the agent was done before", "SUCCEEDED Completed",
         pod(ended(0), phase="Succeeded")),
    lost("the Job is gone, its pod failed and tells nothing", "FAILED JobLost", pod(phase="Failed")),
    Row("the Job is being deleted and has no pod", "FAILED JobLost", job(deleting=True), absence=True),
    Row("the Job is being deleted while the agent runs", "FAILED JobLost", job(deleting=True),
        (pod(running(), phase="Running"),), absence=True),
]  # fmt: skip

ROWS = [*BEFORE_THE_START, *WHILE_IT_RUNS, *AT_THE_END, *TAKEN_AWAY]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.story)
def test_what_is_seen_decides(row: Row) -> None:
    outcome = observe(row.job, row.pods, timeout_seconds=TIMEOUT, expired=row.expired)
    assert f"{outcome.phase} {outcome.reason}" == row.expected
    assert outcome.absence == row.absence
    assert outcome.message


def test_the_kubelet_tells_the_times() -> None:
    outcome = observe(JOB, [pod(ended(3), phase="Failed")], timeout_seconds=600, expired=False)
    assert (outcome.started, outcome.completed) == (times.parse(STARTED), times.parse(ENDED))
    assert outcome.exit_code == 3


def test_an_end_nobody_has_told_of_yet_tells_the_start_already() -> None:
    outcome = observe(JOB, [pod(ended(0), phase="Running")], timeout_seconds=600, expired=False)
    assert (outcome.started, outcome.completed) == (times.parse(STARTED), None)


def test_a_container_that_never_started_has_no_times() -> None:
    state = {"exitCode": 128, "startedAt": "1970-01-01T00:00:00Z", "finishedAt": "1970-01-01T00:00:00Z"}
    dead = pod({"name": "agent", "state": {"terminated": state}}, phase="Failed")
    outcome = observe(JOB, [dead], timeout_seconds=600, expired=False)
    assert (outcome.started, outcome.completed) == (None, None)


@pytest.mark.parametrize(
    ("code", "words"),
    [(1, "exit code 1"), (143, "exit code 143 (SIGTERM)"), (255, "exit code 255"), (-1, "exit code -1")],
)
def test_exit_codes_are_put_in_words(code: int, words: str) -> None:
    outcome = observe(JOB, [pod(ended(code), phase="Failed")], timeout_seconds=600, expired=False)
    assert outcome.message == f"the agent ended with {words}"


def test_the_message_of_a_failure_names_the_error_and_stays_short() -> None:
    said = '{"error": "ValueError: ' + "x" * 3000 + '"}'
    dead = pod(ended(1, message=said), phase="Failed")
    outcome = observe(JOB, [dead], timeout_seconds=600, expired=False)
    assert outcome.message.startswith("the agent ended with exit code 1: ValueError: xxx")
    assert len(outcome.message) <= 1024

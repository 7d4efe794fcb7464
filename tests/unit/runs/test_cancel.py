"""What a cancel makes of every sight of a Job and its pods, one sentence a row."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from agentjobs.apis.jobrecords import JobRecord, PodRecord
from agentjobs.runs.cancel import Cause, canceled
from agentjobs.runs.observe import observe
from tests.unit.runs.objects import JSON, ended, failed, job, pod, running, waiting

JOB = job()
STOPPED: JSON = {"phase": "Failed", "reason": "DeadlineExceeded", "deadline": 1}
RESULT = '{"result": 42}'


@dataclass(frozen=True)
class Row:
    """What is seen and what follows."""

    story: str
    expected: str
    pods: tuple[PodRecord, ...] = ()
    job: JobRecord | None = JOB
    absence: bool = False


def seen(story: str, expected: str, *pods: PodRecord) -> Row:
    return Row(story, expected, pods)


GOING_ON = [
    seen("no pod yet", "CANCELING"),
    seen("a pod without a node", "CANCELING", pod(node="")),
    seen("a pod that is being made", "CANCELING", pod(waiting("ContainerCreating"))),
    seen("a pod whose image can never be pulled", "CANCELING", pod(waiting("InvalidImageName"))),
    seen("an agent that runs", "CANCELING", pod(running(), phase="Running")),
    seen("an agent that was told to stop", "CANCELING", pod(running(), phase="Running", deadline=1)),
    seen("an agent that ended before its pod says so", "CANCELING", pod(ended(143), phase="Running")),
    Row("an agent whose Job is gone", "CANCELING", (pod(running(), phase="Running"),), None, absence=True),
    Row("a pod without a node whose Job is gone", "CANCELING", (pod(node=""),), None, absence=True),
]

CANCELED = [
    seen("stopped by SIGTERM", "CANCELED", pod(ended(143), **STOPPED)),
    seen("stopped by SIGKILL", "CANCELED", pod(ended(137), **STOPPED)),
    seen("stopped before it started", "CANCELED", pod(waiting("ContainerCreating"), **STOPPED)),
    seen("stopped, and left with exit code 0", "CANCELED", pod(ended(0), **STOPPED)),
    seen("stopped, and left with exit code 0 and an error", "CANCELED",
         pod(ended(0, message='{"error": "Stopped: by request"}'), **STOPPED)),
    seen("deleted, and left with exit code 0", "CANCELED", pod(ended(0), phase="Succeeded", deleting=True)),
    seen("failed by itself", "CANCELED", pod(ended(1), phase="Failed")),
    seen("failed by itself beside a sidecar that runs on", "CANCELED",
         pod(ended(1), running("sidecar"), phase="Running")),
    seen("too much memory", "CANCELED", pod(ended(137, reason="OOMKilled"), phase="Failed")),
    seen("evicted", "CANCELED", pod(phase="Failed", reason="Evicted")),
    Row("no Job and no pod", "CANCELED", (), None, absence=True),
    Row("a Job that is being deleted and has no pod", "CANCELED", (), job(deleting=True), absence=True),
    Row("a Job that failed and left no pod", "CANCELED", (), job(failed("PodLost")), absence=True),
    Row("a pod that ended after its Job was deleted", "CANCELED", (pod(ended(143), phase="Failed"),), None),
]  # fmt: skip

SUCCEEDED = [
    seen("ended well by itself", "SUCCEEDED", pod(ended(0), phase="Succeeded")),
    seen("ended well with a result", "SUCCEEDED", pod(ended(0, message=RESULT), phase="Succeeded")),
    seen("ended with a result as it was stopped", "SUCCEEDED", pod(ended(0, message=RESULT), **STOPPED)),
    seen("ended with a result as it was deleted", "SUCCEEDED",
         pod(ended(0, message=RESULT), phase="Succeeded", deleting=True)),
    seen("ended well beside a sidecar that runs on", "SUCCEEDED",
         pod(ended(0), running("sidecar"), phase="Running")),
    Row("ended with a result, its Job is gone", "SUCCEEDED",
        (pod(ended(0, message=RESULT), phase="Succeeded"),), None),
    seen("nothing is known of its container", "SUCCEEDED", pod(phase="Succeeded")),
]  # fmt: skip


@pytest.mark.parametrize("cause", Cause)
@pytest.mark.parametrize("row", [*GOING_ON, *CANCELED, *SUCCEEDED], ids=lambda row: row.story)
def test_table(row: Row, cause: Cause) -> None:
    outcome = canceled(observe(row.job, row.pods, timeout_seconds=600, expired=False), cause)
    assert (outcome.phase, outcome.absence) == (row.expected, row.absence)
    if outcome.phase != "SUCCEEDED":
        assert outcome.reason == cause.value
        assert outcome.message.startswith(cause.words)


@pytest.mark.parametrize("row", CANCELED, ids=lambda row: row.story)
def test_a_time_out_that_came_first_is_a_cancel_too(row: Row) -> None:
    outcome = observe(row.job, row.pods, timeout_seconds=5, expired=True)
    assert canceled(outcome, Cause.REQUESTED).phase == "CANCELED"


@pytest.mark.parametrize(
    ("pods", "ending"),
    [
        ((pod(ended(143), **STOPPED),), "the agent ended with exit code 143 (SIGTERM)"),
        ((pod(waiting("ContainerCreating"), **STOPPED),), "its pod has ended"),
        ((), "nothing of it runs any more"),
    ],
)
def test_the_message_tells_how_it_ended(pods: tuple[PodRecord, ...], ending: str) -> None:
    outcome = canceled(observe(None, pods, timeout_seconds=600, expired=False), Cause.REQUESTED)
    assert outcome.message == f"a cancel was asked for; {ending}"

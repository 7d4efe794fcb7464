"""Hands that meddle: Jobs deleted while they run, and pods that are not as the operator made them."""

import pytest

from tests.live.api import MERGE_PATCH, Object
from tests.live.lab import Lab, Run
from tests.live.support import eventually

PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
def test_job_deleted_while_it_runs(lab: Lab, propagation: str) -> None:
    pool = lab.pool(maxConcurrency=1)
    run, behind = lab.submit(pool, duration="1h"), lab.submit(pool)
    run.reaches("RUNNING")
    lab.api.delete(run.job_path, propagation)
    status = run.reaches("FAILED", "JobLost")
    assert status["startedAt"] <= status["completedAt"]
    # Whatever is left of it is stopped before anybody else gets its slot.
    behind.reaches("SUCCEEDED")
    assert [pod["status"]["phase"] for pod in run.pods()] in ([], ["Failed"])
    assert _job_creates(lab, run) == 1
    assert run.job() is None


def test_job_deleted_while_the_operator_is_down(lab: Lab) -> None:
    run = lab.submit(lab.pool(), duration="1h")
    run.reaches("RUNNING")
    lab.cluster.pause("operator")
    try:
        lab.api.delete(run.job_path)
        eventually(lambda: not run.pods())
    finally:
        lab.cluster.restart("operator")
    run.reaches("FAILED", "JobLost")
    assert _job_creates(lab, run) == 1


def test_pod_deleted_while_it_runs(lab: Lab) -> None:
    run = lab.submit(lab.pool(), duration="1h")
    run.reaches("RUNNING")
    lab.api.delete(f"{PODS}/{run.pod()['metadata']['name']}")
    status = run.reaches("FAILED")
    assert status["reason"] in ("PodLost", "Killed", "AgentFailed")
    assert len(run.pods()) <= 1
    assert _job_creates(lab, run) == 1


def test_pod_that_has_no_status_yet(lab: Lab) -> None:
    """Nobody has said anything of the pod: the run holds its slot and is SCHEDULED."""
    pool = lab.pool(maxConcurrency=1)
    lab.cluster.pause("kwok-controller")
    try:
        run, behind = lab.submit(pool), lab.submit(pool)
        run.reaches("SCHEDULED")
        lab.api.request("PATCH", _status_path(run), {"status": None}, MERGE_PATCH)
        assert not {"phase", "containerStatuses", "conditions"} & run.pod()["status"].keys()
        behind.reaches("PENDING", "NoFreeSlot")
        assert run.status["phase"] == "SCHEDULED"
        # What a node waits for before it starts a pod.
        lab.api.request("PATCH", _status_path(run), {"status": {"phase": "Pending"}}, MERGE_PATCH)
    finally:
        lab.cluster.resume("kwok-controller")
    run.reaches("SUCCEEDED")
    behind.reaches("SUCCEEDED")


def test_container_that_somebody_added_does_not_decide(lab: Lab) -> None:
    """The agent has ended well, a sidecar runs on: the run has succeeded, and what is left is stopped."""
    pool = lab.pool(maxConcurrency=1)
    run, behind = lab.submit(pool, duration="1h"), lab.submit(pool)
    run.reaches("RUNNING")
    _says(lab, run, {"exitCode": 0, "message": '{"result": "mine"}'}, None)
    assert run.reaches("SUCCEEDED", "Completed")["result"] == "mine"
    eventually(lambda: run.pod()["spec"]["activeDeadlineSeconds"] == 1)
    _ends(lab, run)
    behind.reaches("SUCCEEDED")
    assert run.status["result"] == "mine"


def test_container_that_somebody_added_and_that_fails(lab: Lab) -> None:
    run = lab.submit(lab.pool(), duration="1h")
    started = run.reaches("RUNNING")
    _says(lab, run, None, {"exitCode": 1, "reason": "Error"})
    other = lab.submit(lab.pool())
    other.reaches("SUCCEEDED")  # what the operator heard of before that it has looked at
    assert run.status == started
    _says(lab, run, {"exitCode": 7}, {"exitCode": 0})
    assert run.reaches("FAILED", "AgentFailed")["exitCode"] == 7


def _says(lab: Lab, run: Run, agent: Object | None, sidecar: Object | None) -> None:
    """Have the pod tell of two containers, the added one first; None for one that runs."""
    pod = run.pod()
    started = pod["status"]["startTime"]
    statuses = [
        {
            "name": name,
            "image": "agent:dev",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": {"startedAt": started, "finishedAt": started, **ended}}
            if ended
            else {"running": {"startedAt": started}},
        }
        for name, ended in (("sidecar", sidecar), ("agent", agent))
    ]
    body = {"status": {"containerStatuses": statuses}}
    lab.api.request("PATCH", _status_path(run), body, MERGE_PATCH)


def _ends(lab: Lab, run: Run) -> None:
    """Have the pod end, as the kubelet would after the deadline."""
    body = {"status": {"phase": "Failed", "reason": "DeadlineExceeded"}}
    lab.api.request("PATCH", _status_path(run), body, MERGE_PATCH)


def _status_path(run: Run) -> str:
    return f"{PODS}/{run.pod()['metadata']['name']}/status"


def _job_creates(lab: Lab, run: Run) -> int:
    return len([write for write in lab.audit.by_operator(run.job_name) if write.what == "create jobs"])

"""Simulated nodes: a pod lasts, ends and reports as its annotations say."""

import json
from datetime import datetime
from typing import Any

import pytest

from deploy.local.local import LocalCluster
from tests.live.support import eventually

PREFIX = "sim.agentjobs.dev/"


@pytest.mark.parametrize(
    ("annotations", "phase", "code", "reason", "message"),
    [
        ({}, "Succeeded", 0, "Completed", None),
        ({"duration": "10ms", "message": '{"result": 42}'}, "Succeeded", 0, "Completed", '{"result": 42}'),
        ({"duration": "10ms", "exit-code": "3", "message": '"no"\n'}, "Failed", 3, "Error", '"no"\n'),
        ({"duration": "soon"}, "Failed", 128, "Error", 'duration: "soon" is not a duration such as'),
        ({"exit-code": "256"}, "Failed", 128, "Error", 'exit-code: "256" is not a number'),
    ],
)  # fmt: skip
def test_end(
    cluster: LocalCluster,
    annotations: dict[str, str],
    phase: str,
    code: int,
    reason: str,
    message: str | None,
) -> None:
    pod = _start(cluster, annotations)
    end = _ended(cluster, pod)
    assert end["phase"] == phase
    terminated = end["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (code, reason)
    if message is None:
        assert "message" not in terminated
    else:
        assert terminated["message"].removeprefix(PREFIX).startswith(message)
    assert _time(terminated["startedAt"]) <= _time(terminated["finishedAt"])


def test_duration_is_kept_when_the_pod_is_changed_meanwhile(cluster: LocalCluster) -> None:
    pod = _start(cluster, {"duration": "3s"})
    _running(cluster, pod)
    cluster.kubectl("annotate", "pod", pod, "touched=yes")
    terminated = _ended(cluster, pod)["containerStatuses"][0]["state"]["terminated"]
    lasted = _time(terminated["finishedAt"]) - _time(terminated["startedAt"])
    assert 3 <= lasted.total_seconds() <= 4


def test_deadline_ends_a_pod_that_would_last_longer(cluster: LocalCluster) -> None:
    pod = _start(cluster, {"duration": "1h"}, activeDeadlineSeconds=1)
    _assert_deadline_exceeded(_ended(cluster, pod))


def test_deadline_lowered_while_it_runs(cluster: LocalCluster) -> None:
    pod = _start(cluster, {"duration": "1h"}, activeDeadlineSeconds=7200)
    _running(cluster, pod)
    cluster.kubectl("patch", "pod", pod, "--type=merge", "-p", '{"spec": {"activeDeadlineSeconds": 1}}')
    _assert_deadline_exceeded(_ended(cluster, pod))


def test_deleted_pod_goes_away(cluster: LocalCluster) -> None:
    pod = _start(cluster, {"duration": "1h"})
    _running(cluster, pod)
    cluster.kubectl("delete", "pod", pod, "--wait=false")
    eventually(lambda: not cluster.kubectl("get", "pod", pod, "--ignore-not-found"))


def test_job_completes_after_kwok_was_restarted(cluster: LocalCluster) -> None:
    cluster.restart("kwok-controller")
    pod = _manifest({"duration": "10ms"})
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": "simulated-"},
        "spec": {"backoffLimit": 0, "template": {"metadata": pod["metadata"], "spec": pod["spec"]}},
    }
    name = cluster.kubectl("create", "-f", "-", "-o", "name", stdin=json.dumps(job)).strip()
    cluster.kubectl("wait", name, "--for=condition=Complete", "--timeout=30s")
    cluster.kubectl("delete", name)


def _start(cluster: LocalCluster, annotations: dict[str, str], **spec: Any) -> str:
    manifest = _manifest(annotations)
    manifest["spec"] |= spec
    created = cluster.kubectl("create", "-f", "-", "-o", "name", stdin=json.dumps(manifest))
    return created.strip().removeprefix("pod/")


def _manifest(annotations: dict[str, str]) -> dict[str, Any]:
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "simulated-",
            "annotations": {f"{PREFIX}{name}": value for name, value in annotations.items()},
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "agent", "image": "agent:dev", "securityContext": security}],
        },
    }


def _status(cluster: LocalCluster, pod: str) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(cluster.kubectl("get", "pod", pod, "-o", "json"))["status"]
    return status


def _running(cluster: LocalCluster, pod: str) -> None:
    eventually(lambda: _status(cluster, pod)["phase"] == "Running")


def _ended(cluster: LocalCluster, pod: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        status = _status(cluster, pod)
        return status if status["phase"] in ("Succeeded", "Failed") else None

    status = eventually(look)
    cluster.kubectl("delete", "pod", pod, "--wait=false")
    return status


def _assert_deadline_exceeded(status: dict[str, Any]) -> None:
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    terminated = status["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (143, "Error")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)

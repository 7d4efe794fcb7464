"""The main path on simulated nodes: from an AgentJob to its end, and everything its status then says."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from deploy.local.errors import LocalError
from tests.live.api import Object
from tests.live.lab import Lab, Run
from tests.live.support import eventually

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
STAMPS = ("createdAt", "scheduledAt", "startedAt", "completedAt")


@pytest.fixture(scope="module", autouse=True)
def overdue(lab: Lab) -> tuple[Run, Run]:
    """A run that would take longer than it may, and one that waits for its slot: begun before all others,
    since the shortest timeout there is has half a minute."""
    pool = lab.pool(maxConcurrency=1)
    slow = lab.submit(pool, duration="100s", resources={"timeoutSeconds": 30})
    return slow, lab.submit(pool)


def test_success(lab: Lab) -> None:
    pool = lab.pool()
    run = lab.submit(pool, message='{"result": 42}', duration="1500ms")
    lab.cluster.kubectl("wait", "--for=condition=Finished", f"agentjob/{run.name}", "--timeout=30s")
    stored, status = run.get(), run.status
    assert (status["phase"], status["reason"], status["exitCode"]) == ("SUCCEEDED", "Completed", 0)
    assert status["result"] == 42
    assert status["duration"] in ("1s", "2s", "3s")
    assert status["observedGeneration"] == stored["metadata"]["generation"] == 1
    assert "error" not in status
    pod = run.pod()
    assert status["podName"] == pod["metadata"]["name"]
    assert status["nodeName"] == pod["spec"]["nodeName"]
    assert status["k8sJobName"] == run.job_name == pod["metadata"]["labels"]["job-name"]
    assert_job_id(stored)
    assert pod["metadata"]["labels"]["agentjobs.dev/job-id"] == status["jobId"]
    assert_times(stored, pod)
    assert conditions(status) == {
        "Admitted": "True",
        "Running": "False",
        "Finished": "True",
        "Succeeded": "True",
        "Ready": "True",
    }
    assert {c["observedGeneration"] for c in status["conditions"]} == {1}
    events = lab.api.items(f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={run.name}")
    assert events == []


def test_failure_with_a_traceback(lab: Lab) -> None:
    said = {"error": "ValueError: no such file", "traceback": "Traceback …\nValueError: no such file"}
    run = lab.submit(lab.pool(), exit_code=3, message=json.dumps(said))
    status = run.reaches("FAILED", "AgentFailed")
    assert (status["error"], status["errorTraceback"]) == (said["error"], said["traceback"])
    assert status["exitCode"] == 3
    assert "result" not in status
    assert "exit code 3" in status["message"]
    assert conditions(status) == {
        "Admitted": "True",
        "Running": "False",
        "Finished": "True",
        "Succeeded": "False",
        "Ready": "False",
        "Stalled": "True",
    }
    # `kubectl wait` tells the two ends apart.
    with pytest.raises(LocalError, match="condition not met"):
        lab.cluster.kubectl("wait", "--for=condition=Succeeded", f"agentjob/{run.name}", "--timeout=0s")


@pytest.mark.parametrize(
    ("message", "result"),
    [("", None), ("done", "done"), ('{"answer": [1]}', {"answer": [1]}), ('{"result": null}', None)],
)
def test_results_of_any_form(lab: Lab, message: str, result: object) -> None:
    status = lab.submit(lab.pool(), message=message).reaches("SUCCEEDED")
    assert status.get("result") == result


def test_conditions_while_it_runs(lab: Lab) -> None:
    run = lab.submit(lab.pool(), duration="1h")
    status = run.reaches("RUNNING", "Started")
    assert conditions(status) == {
        "Admitted": "True",
        "Running": "True",
        "Finished": "False",
        "Succeeded": "Unknown",
        "Ready": "False",
        "Reconciling": "True",
    }
    assert "completedAt" not in status
    assert "duration" not in status


def test_long_name_and_strange_team(lab: Lab) -> None:
    name = ("x" * 50 + ".") * 4 + "y" * 40
    run = lab.submit(lab.pool(), name=name, teamId="a/b c")
    status = run.reaches("SUCCEEDED")
    assert status["k8sJobName"] == run.job_name
    assert len(run.job_name) <= 63
    variables = {entry["name"]: entry.get("value") for entry in run.pod()["spec"]["containers"][0]["env"]}
    assert variables["AGENT_TEAM_ID"] == "a/b c"
    assert variables["AGENT_JOB_ID"] == status["jobId"]


def test_deleted_while_it_runs(lab: Lab) -> None:
    """The slot is free when the pod is gone and not before."""
    pool = lab.pool(maxConcurrency=1)
    run = lab.submit(pool, duration="1h")
    run.reaches("RUNNING")
    pod = run.pod()
    pod_path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
    waiting = lab.submit(pool)
    lab.cluster.pause("kwok-controller")
    try:
        run.delete()
        eventually(lambda: run.job() is None)
        eventually(lambda: "deletionTimestamp" in run.pod()["metadata"])
        waiting.reaches("PENDING", "NoFreeSlot")
        assert lab.metric("agentjobs_held_slots", pool=pool) == 1
    finally:
        lab.cluster.resume("kwok-controller")
    waiting.reaches("SUCCEEDED")
    assert eventually(lambda: lab.api.get(pod_path) is None)
    assert eventually(lambda: lab.metric("agentjobs_held_slots", pool=pool) == 0)


def test_edit_after_the_end_is_seen_and_changes_nothing(lab: Lab) -> None:
    run = lab.submit(lab.pool())
    ended = run.reaches("SUCCEEDED")
    _edit_is_seen(lab, run, ended, 2)
    # Also when nothing of the run is left.
    lab.api.delete(run.job_path)
    eventually(lambda: not run.pods())
    _edit_is_seen(lab, run, ended, 3)


def _edit_is_seen(lab: Lab, run: Run, ended: Object, generation: int) -> None:
    lab.api.patch(run.path, {"spec": {"ttlSecondsAfterFinished": 60 * generation}})
    eventually(lambda: run.status["observedGeneration"] == generation)
    assert run.status | {"observedGeneration": 1} == ended


def test_network_policy_stands_before_the_first_job(lab: Lab) -> None:
    namespace, pool = lab.namespace(), lab.pool()
    runs = [lab.submit(pool, namespace=namespace) for _ in range(5)]
    lab.all_end(runs, seconds=30)
    writes = [write for write in lab.audit.by_operator() if write.namespace == namespace]
    policies = [write for write in writes if write.resource == "networkpolicies"]
    assert [(write.verb, write.name, write.code) for write in policies] == [
        ("create", f"agentjobs-{pool}", 201)
    ]
    jobs = [write for write in writes if write.what == "create jobs"]
    assert len(jobs) == 5
    assert policies[0].answered <= min(write.received for write in jobs)
    policy = lab.api.request(
        "GET", f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/agentjobs-{pool}"
    )
    assert sorted(policy["spec"]["policyTypes"]) == ["Egress", "Ingress"]
    assert not policy["spec"].get("ingress")
    assert not policy["spec"].get("egress")


def test_timeout(lab: Lab, overdue: tuple[Run, Run]) -> None:
    slow, waiting = overdue
    assert waiting.status["phase"] == "PENDING"
    status = slow.reaches("TIMED_OUT", "DeadlineExceeded", seconds=60)
    assert status["error"].startswith("DeadlineExceeded")
    assert "timeoutSeconds 30" in status["message"]
    lasted = moment(status["completedAt"]) - moment(status["startedAt"])
    assert timedelta(seconds=29) <= lasted <= timedelta(seconds=34)
    assert status["duration"] in ("30s", "31s", "32s", "33s")
    # The pod and its logs stay, the slot does not.
    assert slow.pod()["status"]["phase"] == "Failed"
    next_one = waiting.reaches("SUCCEEDED")
    assert moment(next_one["scheduledAt"]) >= moment(status["completedAt"])


def conditions(status: Object) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in status["conditions"]}


def moment(text: str) -> datetime:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", text)
    return datetime.fromisoformat(text)


def assert_job_id(agentjob: Object) -> None:
    """The id is a ULID that anyone can work out: the creation second and the last 80 bits of the uid."""
    job_id, metadata = agentjob["status"]["jobId"], agentjob["metadata"]
    assert re.fullmatch(f"[0-7][{CROCKFORD}]{{25}}", job_id)
    number = 0
    for letter in job_id:
        number = number * 32 + CROCKFORD.index(letter)
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    assert number >> 80 == int(created.timestamp()) * 1000
    assert number % 2**80 == int(metadata["uid"].replace("-", "")[-20:], 16)


def assert_times(agentjob: Object, pod: Object) -> None:
    status = agentjob["status"]
    times = [moment(status[stamp]) for stamp in STAMPS]
    assert times == sorted(times)
    created = datetime.fromisoformat(agentjob["metadata"]["creationTimestamp"])
    assert created <= times[0] < created + timedelta(seconds=1)
    container = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    for ours, theirs in zip(times[2:], ("startedAt", "finishedAt"), strict=True):
        second = datetime.fromisoformat(container[theirs])
        assert second <= ours < second + timedelta(seconds=1)
    assert times[3] <= datetime.now(UTC)

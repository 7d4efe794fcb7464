"""Cancel, as users see it: at once while the run waits, with SIGTERM and time to stop while it runs."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from deploy.local.install import workload_namespace
from deploy.local.local import LocalCluster
from tests.live.api import Object
from tests.live.audit import Write
from tests.live.lab import Lab, Run
from tests.live.support import eventually

STATUS = "patch agentjobs/status"


def cancel(run: Run) -> None:
    run.api.patch(run.path, {"spec": {"cancel": True}})


def told(lab: Lab, run: Run) -> list[str | None]:
    """The phases that were stored, in order.

    Of the last write of a killed operator the log cannot tell whether it was stored; if it was not, the next
    operator writes the same.
    """
    found: list[Write] = []
    for write in lab.audit.by_operator(run.name):
        if found and found[-1].uncertain and found[-1].phase == write.phase:
            found.pop()
        if write.done or write.uncertain:
            found.append(write)
    return [write.phase for write in found]


def assert_told(lab: Lab, run: Run, *phases: str) -> None:
    """Compare the phases that were stored; the log may be a moment behind the objects.

    SCHEDULED is left out: under load it shares a write with what follows.
    """

    def look() -> bool:
        assert [phase for phase in told(lab, run) if phase != "SCHEDULED"] == list(phases)
        return True

    eventually(look)


def test_one_that_waits_ends_at_once_and_never_has_a_pod(lab: Lab) -> None:
    pool = lab.pool(maxConcurrency=1)
    holder, waiting, behind = (lab.submit(pool, duration="1h") for _ in range(3))
    holder.reaches("RUNNING")
    waiting.reaches("PENDING", "NoFreeSlot")
    behind.reaches("PENDING", "BehindOwn")
    cancel(waiting)
    status = waiting.reaches("CANCELED", "CancelRequested")
    assert status.keys() & {"startedAt", "scheduledAt", "k8sJobName", "podName", "startsBefore"} == set()
    assert status["completedAt"] >= status["createdAt"]
    assert status["observedGeneration"] == 2
    assert_told(lab, waiting, "PENDING", "CANCELED")
    assert eventually(lambda: lab.metric("agentjobs_pending_runs", pool=pool) == 1)
    cancel(holder)
    behind.reaches("RUNNING")
    assert (waiting.job(), waiting.pods()) == (None, [])
    lab.cluster.kubectl("wait", "--for=condition=Ready", f"agentjob/{waiting.name}", "--timeout=10s")
    assert waiting.status == status


def test_one_that_is_created_canceled_never_starts(lab: Lab) -> None:
    run = lab.submit(lab.pool(), cancel=True)
    run.reaches("CANCELED")
    assert run.job() is None
    assert_told(lab, run, "CANCELED")


def test_one_that_runs_is_stopped_and_leaves_its_pod(lab: Lab) -> None:
    pool = lab.pool(maxConcurrency=1)
    run, waiting = lab.submit(pool, duration="1h"), lab.submit(pool)
    run.reaches("RUNNING")
    cancel(run)
    status = run.reaches("CANCELED", "CancelRequested")
    assert (status["exitCode"], status["k8sJobName"]) == (143, run.job_name)
    assert status["duration"]
    assert "SIGTERM" in status["message"]
    assert "error" not in status
    pod = run.pod()
    assert pod["status"]["reason"] == "DeadlineExceeded"
    assert pod["spec"]["activeDeadlineSeconds"] == 1
    assert waiting.reaches("SUCCEEDED")["scheduledAt"] >= status["completedAt"]
    assert_told(lab, run, "RUNNING", "CANCELING", "CANCELED")
    # One status and one patch of the pod more than without a cancel.
    writes = [write.what for write in lab.audit.by_operator(run.name, run.job_name, pod["metadata"]["name"])]
    costs = Counter(writes)
    assert costs.pop(STATUS) <= 4
    assert costs == {"create jobs": 1, "patch pods": 1}
    # Kubernetes does not replace the pod.
    job = eventually(lambda: _ended_job(run))
    assert job["status"].get("failed") == 1
    assert len(run.pods()) == 1


def _ended_job(run: Run) -> Object | None:
    job = run.job()
    assert job is not None
    ended = any(c["type"] == "Failed" for c in job["status"].get("conditions", []))
    return job if ended else None


def test_one_that_does_not_stop_holds_its_slot(lab: Lab) -> None:
    """The node does not answer: nobody knows whether the agent has stopped."""
    pool = lab.pool(maxConcurrency=1)
    run, waiting = lab.submit(pool, duration="1h"), lab.submit(pool)
    run.reaches("RUNNING")
    lab.cluster.pause("kwok-controller")
    try:
        cancel(run)
        status = run.reaches("CANCELING", "CancelRequested")
        assert "SIGTERM" in status["message"]
        assert "completedAt" not in status
        eventually(lambda: run.pod()["spec"]["activeDeadlineSeconds"] == 1)
        waiting.reaches("PENDING", "NoFreeSlot")
        # A second cancel asks for nothing new, and a deletion frees no slot.
        cancel(run)
        run.delete()
        eventually(lambda: "deletionTimestamp" in run.pod()["metadata"])
        assert lab.metric("agentjobs_held_slots", pool=pool) == 1
        assert waiting.status["phase"] == "PENDING"
    finally:
        lab.cluster.resume("kwok-controller")
    waiting.reaches("SUCCEEDED")
    assert eventually(lambda: lab.metric("agentjobs_held_slots", pool=pool) == 0)


def test_one_that_has_no_node_loses_its_job(lab: Lab) -> None:
    """A pod that is on no node has nobody to stop it."""
    pool = lab.pool(maxConcurrency=1, sandbox={"nodeSelector": {"there-is": "no-such-node"}})
    run = lab.submit(pool)
    eventually(lambda: _unschedulable(run.pod()))
    cancel(run)
    status = run.reaches("CANCELED")
    assert "startedAt" not in status
    assert (run.job(), run.pods()) == (None, [])
    eventually(lambda: told(lab, run)[-2:] == ["CANCELING", "CANCELED"])


def _unschedulable(pod: Object) -> bool:
    return any(each["reason"] == "Unschedulable" for each in pod["status"].get("conditions", []))


def test_one_that_was_just_decided(lab: Lab) -> None:
    """Canceled at every moment of its start: whatever was made of it is gone or stopped in the end."""
    pool = lab.pool(maxConcurrency=5)
    runs = []
    for _ in range(30):
        runs.append(lab.submit(pool, duration="1h"))
        cancel(runs[-1])
    statuses = lab.all_end(runs, seconds=60)
    assert {status["phase"] for status in statuses} == {"CANCELED"}
    assert eventually(lambda: lab.metric("agentjobs_held_slots", pool=pool) == 0)
    for run in runs:
        assert all(pod["status"]["phase"] == "Failed" for pod in run.pods())


def test_one_that_has_ended_stays_as_it_is(lab: Lab) -> None:
    run = lab.submit(lab.pool(), message='{"result": 42}')
    ended = run.reaches("SUCCEEDED")
    cancel(run)
    eventually(lambda: run.status["observedGeneration"] == 2)
    assert run.status | {"observedGeneration": 1} == ended


def test_job_that_is_lost_while_it_is_canceled(lab: Lab) -> None:
    run = lab.submit(lab.pool(), duration="1h")
    run.reaches("RUNNING")
    lab.cluster.pause("kwok-controller")
    try:
        cancel(run)
        run.reaches("CANCELING")
        lab.api.delete(run.job_path, "Background")
        eventually(lambda: "deletionTimestamp" in run.pod()["metadata"])
        assert run.status["phase"] == "CANCELING"
    finally:
        lab.cluster.resume("kwok-controller")
    run.reaches("CANCELED")


def test_operator_killed_in_the_middle(lab: Lab) -> None:
    """Killed as soon as the cancel is stored, and between CANCELING and the end: the next one goes on."""
    pool = lab.pool(maxConcurrency=1)
    run, waiting = (lab.submit(pool, duration="1h") for _ in range(2))
    last = lab.submit(pool)
    run.reaches("RUNNING")
    lab.cluster.pause("kwok-controller")
    try:
        cancel(run)
        cancel(waiting)
        lab.cluster.kill("operator")
        waiting.reaches("CANCELED")
        run.reaches("CANCELING")
        eventually(lambda: run.pod()["spec"]["activeDeadlineSeconds"] == 1)
        lab.cluster.kill("operator")
        eventually(lab.cluster.operator.ready)
        last.reaches("PENDING", "NoFreeSlot")
        assert run.status["phase"] == "CANCELING"
    finally:
        lab.cluster.resume("kwok-controller")
    run.reaches("CANCELED", "CancelRequested")
    last.reaches("SUCCEEDED")
    assert waiting.job() is None
    assert_told(lab, run, "RUNNING", "CANCELING", "CANCELED")


# -- real containers -----------------------------------------------------------------------------------

AGENTS = {
    # What it does when told to stop, and how the run ends. Process 1 without a handler hears no SIGTERM.
    "ignores": ("import time\ntime.sleep(600)", "CANCELED"),
    "leaves": (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\ntime.sleep(600)",
        "CANCELED",
    ),
    "returns": (
        "import os, signal, sys, time\n"
        "def end(*_):\n"
        "    open(os.environ['AGENT_RESULT_FILE'], 'w').write('{\"result\": 42}')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "time.sleep(600)",
        "SUCCEEDED",
    ),
}


@pytest.fixture(scope="module")
def real_lab(real_cluster: LocalCluster) -> Iterator[Lab]:
    workload_namespace(real_cluster.kubectl, "canceling")
    real_cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--namespace", "canceling")
    real_cluster.start_operator()
    with Lab(real_cluster) as lab:
        yield lab
    real_cluster.stop_operator()


@pytest.mark.parametrize("agent", AGENTS)
def test_agent_is_asked_to_stop(real_lab: Lab, agent: str) -> None:
    program, phase = AGENTS[agent]
    program = "print('ready', flush=True)\n" + program
    pool = real_lab.pool(sandbox={"imagePullPolicy": "IfNotPresent"})
    run = real_lab.submit(
        pool,
        namespace="canceling",
        agentImage="agentjobs.local/compute:dev",
        command=["python3", "-c", program],
        resources={"cpuMillicores": 100, "memoryMb": 128},
    )
    run.reaches("RUNNING", seconds=60)
    pod = run.pod()["metadata"]["name"]
    eventually(lambda: "ready" in real_lab.cluster.kubectl("logs", pod, "--namespace", "canceling"))
    cancel(run)
    status = run.reaches(phase, seconds=60)
    assert status.get("result") == (42 if phase == "SUCCEEDED" else None), json.dumps(status)
    assert "CANCELING" in told(real_lab, run)
    # Its logs stay.
    assert "ready" in real_lab.cluster.kubectl("logs", pod, "--namespace", "canceling")

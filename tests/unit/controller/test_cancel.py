"""Cancel: at once where the run waits, with SIGTERM where it runs, wherever the operator dies meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentjobs.apis import times
from agentjobs.apis.runstatus import AgentJobStatus
from tests.unit.cluster.fake_api import HungUpError, RefusedError
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster, clock

CANCELED = "CANCELED CancelRequested"
CANCELING = "CANCELING CancelRequested"
STATUS = "patch agentjobs/status"


def conditions(status: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["status"] for each in status["conditions"]}


def stops(cluster: Cluster, name: str, code: int = 143, message: str = "") -> None:
    """What the node makes of a pod whose time is over."""
    cluster.ends(name, code, message, reason="DeadlineExceeded")


# -- a run that waits ----------------------------------------------------------------------------------


@in_virtual_time
async def test_a_run_that_waits_ends_at_once_with_one_write() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        cluster.submit("b")
        await cluster.calm()
        before = len(cluster.writes)
        cluster.cancel("b")
        await cluster.calm()
        status = cluster.status("b")
        assert cluster.phase("b") == CANCELED
        assert cluster.writes[before:] == [STATUS]
        assert cluster.loop.state.pool("default").waiting == 0
        await cluster.runs("a")
        await asyncio.sleep(60)
    assert cluster.api.count("create jobs") == 1
    assert cluster.status("b") == status
    AgentJobStatus.model_validate(status)
    assert status["message"] == "a cancel was asked for while the run waited"
    assert status["observedGeneration"] == 2
    assert status.keys() & {"startedAt", "scheduledAt", "k8sJobName", "podName", "duration", "error"} == set()
    assert status["completedAt"] >= status["createdAt"]
    assert conditions(status) == {
        "Admitted": "False",
        "Running": "False",
        "Finished": "True",
        "Succeeded": "False",
        "Ready": "True",
    }


@in_virtual_time
async def test_a_run_that_was_told_why_it_waits_and_holds_a_promise() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        cluster.starts("a")
        cluster.submit("b")
        cluster.submit("c")
        await asyncio.sleep(3)
        assert "startsBefore" in cluster.status("b")
        cluster.cancel("b")
        await cluster.calm()
        assert cluster.phase("b") == CANCELED
        assert "startsBefore" not in cluster.status("b")
        held = cluster.loop.state.pool("default").books.reservation
        assert held is not None
        assert held.uid == cluster.api.get("agentjobs", "c")["metadata"]["uid"]


@in_virtual_time
async def test_a_run_that_is_created_canceled_never_starts() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a", cancel=True)
        await asyncio.sleep(60)
    assert cluster.phase("a") == CANCELED
    assert cluster.writes == [STATUS]


@in_virtual_time
async def test_a_spec_that_cannot_be_read_is_canceled_as_well() -> None:
    cluster = Cluster()
    cluster.pool(hold=True)
    async with cluster.operator():
        cluster.submit("a", resources={"cpuMillicores": "many"}, cancel=True)
        await cluster.calm()
    assert cluster.phase("a") == CANCELED


# -- a run that was decided ----------------------------------------------------------------------------


@in_virtual_time
async def test_a_run_that_was_decided_and_not_posted_is_never_posted() -> None:
    cluster = Cluster()
    async with cluster.operator():
        gate = cluster.session.gates["create networkpolicies"] = asyncio.Event()
        cluster.submit("a")
        await cluster.calm()
        cluster.cancel("a")
        await asyncio.sleep(1)
        gate.set()
        await asyncio.sleep(60)
        assert cluster.loop.state.pool("default").books.held.slots == 0
    assert cluster.phase("a") == CANCELED
    assert cluster.writes == [STATUS]


@pytest.mark.parametrize("stored", [True, False])
@in_virtual_time
async def test_a_job_whose_creation_was_not_answered_is_looked_for(stored: bool) -> None:
    cluster = Cluster()
    async with cluster.operator():
        if stored:
            cluster.session.lost.append("create jobs")
        else:
            cluster.api.refuse("create jobs", HungUpError())
        gate = cluster.session.gates["create jobs"] = asyncio.Event()
        cluster.submit("a")
        await cluster.calm()
        cluster.cancel("a")
        await cluster.calm()
        gate.set()
        await asyncio.sleep(60)
        assert cluster.jobs() == []
        assert cluster.loop.state.pool("default").books.held.slots == 0
    assert cluster.phase("a") == CANCELED
    assert cluster.writes.count("create jobs") == 1
    assert cluster.writes.count("delete jobs") == stored


@in_virtual_time
async def test_a_job_that_was_refused_is_canceled_and_not_a_failure() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.api.refuse("create jobs", RefusedError(403, "Forbidden", "denied by policy"))
        gate = cluster.session.gates["create jobs"] = asyncio.Event()
        cluster.submit("a")
        await cluster.calm()
        cluster.cancel("a")
        await cluster.calm()
        gate.set()
        await asyncio.sleep(60)
    assert cluster.phase("a") == CANCELED


@in_virtual_time
async def test_a_job_without_a_node_is_deleted_and_holds_its_slot_until_its_pod_is_gone() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        cluster.submit("b")
        await cluster.calm()
        body = cluster.pod("a")
        cluster.api.put("pods", {**body, "spec": {}})
        await cluster.calm()
        cluster.cancel("a")
        await cluster.calm()
        assert (cluster.phase("a"), cluster.jobs()) == (CANCELING, [])
        await asyncio.sleep(60)
        assert cluster.phase("b") == "PENDING NoFreeSlot"
        cluster.api.delete("pods", "a-pod")
        await cluster.calm()
        assert cluster.phase("a") == CANCELED
        assert "startedAt" not in cluster.status("a")
        assert cluster.phase("b") == "SCHEDULED JobCreated"


@in_virtual_time
async def test_a_slot_is_held_while_a_pod_may_be_there_that_nobody_told_of() -> None:
    """The Job has made its pod, the watch of pods is behind: the pod is found before anything is believed."""
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        cluster.submit("b")
        await cluster.calm()
        pod = cluster.pod("a")
        cluster.api.delete("pods", "a-pod")
        await cluster.calm()
        hidden = {
            **pod,
            "metadata": {**pod["metadata"], "uid": "another", "resourceVersion": "0"},
            "spec": {},
        }
        cluster.api.put("pods", hidden, told=False)
        cluster.cancel("a")
        await asyncio.sleep(60)
        assert cluster.phase("a") == CANCELING
        assert cluster.phase("b") == "PENDING NoFreeSlot"
        assert cluster.api.count("create jobs") == 1
        cluster.api.delete("pods", "a-pod")
        await cluster.calm()
        assert (cluster.phase("a"), cluster.phase("b")) == (CANCELED, "SCHEDULED JobCreated")


# -- a run that runs -----------------------------------------------------------------------------------


@in_virtual_time
async def test_a_run_that_runs_is_stopped_once_and_keeps_its_job() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        cluster.submit("b")
        await cluster.calm()
        cluster.starts("a")
        await cluster.calm()
        cluster.cancel("a")
        await cluster.calm()
        assert cluster.phase("a") == CANCELING
        assert conditions(cluster.status("a"))["Reconciling"] == "True"
        assert [patch["spec"] for patch in cluster.patches("patch pods")] == [{"activeDeadlineSeconds": 1}]
        await asyncio.sleep(20)
        assert cluster.phase("b") == "PENDING NoFreeSlot"
        stops(cluster, "a", 137)
        await cluster.calm()
        assert cluster.phase("b") == "SCHEDULED JobCreated"
    status = cluster.status("a")
    assert cluster.phase("a") == CANCELED
    assert (status["exitCode"], status["duration"], "error" in status) == (137, "20s", False)
    assert status["message"] == "a cancel was asked for; the agent ended with exit code 137 (SIGKILL)"
    # One write more than without a cancel, and the one that stops the pod.
    mine = [write for write in cluster.writes if write != "create jobs"]
    assert mine.count("patch pods") == 1
    told = [patch["status"]["phase"] for patch in cluster.patches(STATUS)]
    assert told == ["SCHEDULED", "RUNNING", "CANCELING", "PENDING", "CANCELED", "SCHEDULED"]


@pytest.mark.parametrize(
    ("end", "phase"),
    [
        (lambda cluster: stops(cluster, "a", 143), CANCELED),
        (lambda cluster: stops(cluster, "a", 0), CANCELED),
        (lambda cluster: stops(cluster, "a", 0, '{"result": 42}'), "SUCCEEDED Completed"),
        (lambda cluster: cluster.ends("a", 0), "SUCCEEDED Completed"),
        (lambda cluster: cluster.ends("a", 1), CANCELED),
    ],
    ids=["SIGTERM", "exit 0 when stopped", "result when stopped", "ended well by itself", "failed by itself"],
)
@in_virtual_time
async def test_how_it_ends(end: Callable[[Cluster], None], phase: str) -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        cluster.starts("a")
        await cluster.calm()
        cluster.cancel("a")
        await asyncio.sleep(1)
        end(cluster)
        await cluster.calm()
    assert cluster.phase("a") == phase


@in_virtual_time
async def test_a_run_whose_job_vanishes_while_it_is_canceled() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        cluster.starts("a")
        await cluster.calm()
        cluster.cancel("a")
        await cluster.calm()
        cluster.api.delete("jobs", cluster.job("a")["metadata"]["name"])
        await asyncio.sleep(10)
        assert cluster.phase("a") == CANCELING
        cluster.api.delete("pods", "a-pod")
        await asyncio.sleep(10)
    assert cluster.phase("a") == CANCELED
    assert "startedAt" in cluster.status("a")


@in_virtual_time
async def test_a_cancel_after_the_end_costs_one_write() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.runs("a")
        before, status = len(cluster.writes), cluster.status("a")
        cluster.cancel("a")
        await asyncio.sleep(120)
    assert cluster.status("a") == {**status, "observedGeneration": 2}
    assert cluster.writes[before:] == [STATUS]


@in_virtual_time
async def test_a_run_whose_hole_was_missed_ends_when_what_it_left_is_gone() -> None:
    """It is PENDING again, its first Job was deleted and the pod of that lives on."""
    cluster = Cluster()
    uid = cluster.stored(
        "a", phase="PENDING", reason="BackfillMissed", attempts=[{"number": 1, "reason": "BackfillMissed"}]
    )["metadata"]["uid"]
    labels = {"agentjobs.dev/run-uid": uid, "agentjobs.dev/attempt": "1"}
    metadata = {"name": "old", "labels": labels, "deletionTimestamp": times.second(clock())}
    cluster.api.put("pods", {"metadata": metadata, "spec": {"nodeName": "node-1"}})
    cluster.cancel("a")
    async with cluster.operator():
        await asyncio.sleep(60)
        assert cluster.phase("a") == CANCELING
        cluster.api.delete("pods", "old")
        await cluster.calm()
    assert cluster.phase("a") == CANCELED
    assert cluster.status("a")["attempts"][0]["reason"] == "BackfillMissed"
    assert cluster.api.count("create jobs") == 0


# -- death at any moment -------------------------------------------------------------------------------


async def node(cluster: Cluster) -> None:
    """Job controller and kubelet: pods start within half a second, stop when told, and go with their Job."""
    while True:
        await asyncio.sleep(0.5)
        jobs = {job["metadata"]["ownerReferences"][0]["name"] for job in cluster.jobs()}
        for name in "abcd":
            pod = cluster.api.objects.get("pods", {}).get(f"agents/{name}-pod")
            if pod is None:
                if name in jobs:
                    cluster.starts(name)
            elif pod["status"]["phase"] == "Running":
                if name not in jobs:
                    cluster.api.delete("pods", f"{name}-pod")
                elif pod["spec"]["activeDeadlineSeconds"] == 1:
                    stops(cluster, name)


@given(
    deaths=st.lists(st.tuples(st.integers(1, 30), st.sampled_from(["before", "after"])), max_size=3),
    canceled_at=st.lists(st.integers(0, 50), min_size=4, max_size=4),
)
@settings(max_examples=40)
def test_every_run_is_canceled_once_wherever_the_operator_dies(
    deaths: list[tuple[int, str]], canceled_at: list[int]
) -> None:
    @in_virtual_time
    async def story() -> None:
        cluster = Cluster()
        cluster.pool(maxConcurrency=2)
        helpers = [asyncio.create_task(node(cluster))]
        for name, tenths in zip("abcd", canceled_at, strict=True):
            cluster.submit(name)
            helpers.append(asyncio.create_task(later(tenths / 10, cluster, name)))
        for death in deaths:
            await cluster.die(death, 10)
        async with cluster.operator():
            await asyncio.sleep(60)
            assert cluster.loop.state.pool("default").books.held.slots == 0
        for helper in helpers:
            helper.cancel()
        for name in "abcd":
            status = cluster.status(name)
            assert cluster.phase(name) == CANCELED
            assert conditions(status)["Ready"] == "True"
            stamps = [status.get(s) for s in ("createdAt", "scheduledAt", "startedAt", "completedAt")]
            assert [s for s in stamps if s] == sorted(s for s in stamps if s)
            assert status["completedAt"]

    async def later(seconds: float, cluster: Cluster, name: str) -> None:
        await asyncio.sleep(seconds)
        cluster.cancel(name)

    story()

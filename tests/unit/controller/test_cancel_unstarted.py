"""Cancel of a run that has not started: at once where it waits, once nothing is left where it has a Job."""

from __future__ import annotations

import asyncio

import pytest

from agentjobs.apis.runstatus import AgentJobStatus
from tests.unit.cluster.fake_api import HungUpError, RefusedError
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import CANCELED, CANCELING, STATUS, Cluster, conditions

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

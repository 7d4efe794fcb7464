"""Whole lives of runs: what is written, when, and how often."""

from __future__ import annotations

import asyncio

from agentjobs.apis import names, times
from agentjobs.apis.runstatus import AgentJobStatus
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster, clock

STAMPS = ("createdAt", "scheduledAt", "startedAt", "completedAt")


@in_virtual_time
async def test_a_run_costs_one_post_and_three_patches() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        assert cluster.phase("a") == "SCHEDULED JobCreated"
        await asyncio.sleep(1)
        cluster.starts("a")
        await cluster.calm()
        assert cluster.phase("a") == "RUNNING Started"
        await asyncio.sleep(3)
        cluster.ends("a", message='{"result": 42}')
        await cluster.calm()
    status = cluster.status("a")
    assert (status["phase"], status["result"], status["exitCode"]) == ("SUCCEEDED", 42, 0)
    assert (status["duration"], status["nodeName"], status["podName"]) == ("3s", "node-1", "a-pod")
    AgentJobStatus.model_validate(status)
    moments = [times.parse(status[stamp]) for stamp in STAMPS]
    assert moments == sorted(moment for moment in moments if moment is not None)
    assert cluster.writes == ["create jobs", *["patch agentjobs/status"] * 3]


@in_virtual_time
async def test_transitions_share_a_patch_while_the_writer_is_busy() -> None:
    cluster = Cluster()
    async with cluster.operator():
        gate = cluster.session.gates["patch agentjobs/status"] = asyncio.Event()
        cluster.submit("a")
        await cluster.runs("a", message="done")
        gate.set()
        await cluster.calm()
    assert cluster.phase("a") == "SUCCEEDED Completed"
    assert cluster.writes == ["create jobs", *["patch agentjobs/status"] * 2]
    assert all(stamp in cluster.status("a") for stamp in STAMPS)


@in_virtual_time
async def test_the_network_policy_stands_before_the_first_job() -> None:
    cluster = Cluster()
    cluster.pool(maxConcurrency=9)
    async with cluster.operator():
        for name in ("a", "b"):
            cluster.submit(name)
        await cluster.calm()
    made = [request.verb for request in cluster.api.requests if request.verb.startswith("create ")]
    assert made == ["create networkpolicies", "create jobs", "create jobs"]


@in_virtual_time
async def test_no_policy_no_job() -> None:
    cluster = Cluster()
    async with cluster.operator():
        gate = cluster.session.gates["create networkpolicies"] = asyncio.Event()
        cluster.submit("a")
        await asyncio.sleep(60)
        assert cluster.jobs() == []
        gate.set()
        await cluster.calm()
        assert cluster.phase("a") == "SCHEDULED JobCreated"


@in_virtual_time
async def test_an_agent_that_fails() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.runs("a", 3, '{"error": "ValueError: no", "traceback": "Traceback …"}')
    status = cluster.status("a")
    assert (status["phase"], status["reason"], status["exitCode"]) == ("FAILED", "AgentFailed", 3)
    assert (status["error"], status["errorTraceback"]) == ("ValueError: no", "Traceback …")


@in_virtual_time
async def test_a_slot_is_free_once_its_pod_has_ended() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        cluster.submit("b")
        await cluster.calm()
        assert len(cluster.jobs()) == 1
        await cluster.runs("a")
        assert cluster.phase("b") == "SCHEDULED JobCreated"


# -- a run that waits --------------------------------------------------------------------------------


@in_virtual_time
async def test_a_run_that_waits_is_told_why_after_two_seconds() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        cluster.submit("b")
        await asyncio.sleep(1.9)
        assert cluster.phase("b") == "PENDING"
        await asyncio.sleep(1.2)
        assert cluster.phase("b") == "PENDING NoFreeSlot"
        assert "1 of 1" in cluster.status("b")["message"]
        await asyncio.sleep(300)
    assert cluster.writes == ["create jobs", *["patch agentjobs/status"] * 2]


@in_virtual_time
async def test_a_run_that_starts_within_two_seconds_is_not_told_that_it_waits() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        cluster.submit("b")
        await asyncio.sleep(1)
        await cluster.runs("a")
        await cluster.runs("b")
    assert len(cluster.patches("patch agentjobs/status")) == 6


@in_virtual_time
async def test_other_reasons_are_told_once_in_half_a_minute() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        cluster.starts("a")
        cluster.submit("b")
        await cluster.calm()
        before = len(cluster.patches("patch agentjobs/status"))
        for second in range(120):
            cluster.pool(maxConcurrency=1, hold=second % 2 == 0)
            await asyncio.sleep(1)
        told = len(cluster.patches("patch agentjobs/status")) - before
    assert 2 <= told <= 5


@in_virtual_time
async def test_a_reason_that_is_no_word_is_told_once() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        cluster.pod("a", {"waiting": {"reason": "not a word", "message": "something odd"}}, phase="Pending")
        await asyncio.sleep(200)
    assert (cluster.phase("a"), cluster.status("a")["message"]) == ("SCHEDULED Unknown", "something odd")
    assert cluster.writes == ["create jobs", *["patch agentjobs/status"] * 2]


# -- time ---------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_run_whose_time_is_over_is_stopped_once() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a", resources={"timeoutSeconds": 60})
        await asyncio.sleep(5)
        cluster.starts("a")
        await asyncio.sleep(59)
        assert cluster.patches("patch pods") == []
        await asyncio.sleep(2)
        (patch,) = cluster.patches("patch pods")
        assert patch["spec"] == {"activeDeadlineSeconds": 1}
        await asyncio.sleep(20)
        cluster.stops("a", 137)
        await cluster.calm()
    assert cluster.phase("a") == "TIMED_OUT DeadlineExceeded"
    assert cluster.writes.count("patch pods") == 1
    assert "delete jobs" not in cluster.writes


def times_of_a_run(seconds: int) -> dict[str, str]:
    """What the kubelet says of a container that ran for so long until now."""
    return {
        "startedAt": times.second(clock() - seconds * times.SECOND),
        "finishedAt": times.second(clock()),
    }


@in_virtual_time
async def test_a_run_that_ended_before_it_was_stopped_has_ended_by_itself() -> None:
    """The operator does not know yet that the pod has ended: its Job must stay until the end is told."""
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a", resources={"timeoutSeconds": 60})
        await cluster.calm()
        cluster.starts("a")
        await asyncio.sleep(30)
        ended = {"exitCode": 1, "message": "ValueError: no", **times_of_a_run(30)}
        body = cluster.api.get("pods", "a-pod")
        containers = [{"name": "agent", "state": {"terminated": ended}}]
        ended = {**body, "status": {"phase": "Failed", "containerStatuses": containers}}
        cluster.api.put("pods", ended, told=False)
        await asyncio.sleep(35)
    assert cluster.writes.count("patch pods") == 1
    assert "delete jobs" not in cluster.writes
    assert cluster.status("a")["error"] == "ValueError: no"


@in_virtual_time
async def test_times_are_those_of_first_sight_within_the_kubelets_second() -> None:
    cluster = Cluster()
    async with cluster.operator():
        await asyncio.sleep(0.249)
        cluster.submit("a")
        await asyncio.sleep(1)
        cluster.starts("a")
        await asyncio.sleep(3)
        cluster.ends("a")
        await cluster.calm()
    status = cluster.status("a")
    assert [status[stamp][17:23] for stamp in STAMPS] == ["00.250", "00.250", "01.250", "04.250"]


# -- after the end ----------------------------------------------------------------------------------


@in_virtual_time
async def test_an_edit_after_the_end_costs_one_write() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.runs("a")
        before, status = len(cluster.writes), cluster.status("a")
        cluster.edit("a", ttl=1)
        await asyncio.sleep(120)
    assert cluster.status("a") == {**status, "observedGeneration": 2}
    assert cluster.writes[before:] == ["patch agentjobs/status"]


@in_virtual_time
async def test_a_deleted_run_gives_its_slot_up_when_its_job_is_gone() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        cluster.submit("b")
        await cluster.calm()
        cluster.api.delete("agentjobs", "a")
        await cluster.calm()
        assert len(cluster.jobs()) == 1
        (job,) = cluster.jobs()
        cluster.api.delete("jobs", job["metadata"]["name"])
        await cluster.calm()
        assert cluster.job("b")["metadata"]["labels"][names.LABEL_POOL] == "default"
        assert list(cluster.loop.state.runs) == [cluster.api.get("agentjobs", "b")["metadata"]["uid"]]

"""The policy in the loop: nodes, shares, and attempts that did not start in the hole they were given."""

from __future__ import annotations

import asyncio

import msgspec

from agentjobs.apis.noderecords import ForeignPodRecord, NodeRecord
from agentjobs.scheduling.resources import NOTHING, Amounts
from tests.unit.cluster.fake_api import JSON
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster, clock


def node(name: str = "node-1", *, cpu: str = "4", ready: str = "True", **spec: object) -> JSON:
    return {
        "metadata": {"name": name, "labels": {"kind": "small"}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": "8Gi", "nvidia.com/gpu": "1"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def foreign(cpu: str, name: str = "other", where: str = "node-1") -> JSON:
    containers = [{"resources": {"requests": {"cpu": cpu}}}]
    return {"metadata": {"name": name}, "spec": {"nodeName": where, "containers": containers}}


def record(body: JSON) -> bytes:
    return msgspec.json.encode({**body, "metadata": {"uid": "u", "resourceVersion": "1", **body["metadata"]}})


def test_a_node_offers_what_it_has_while_it_is_ready() -> None:
    assert NodeRecord(record(node())).offers == Amounts(0, 4000, 8192, 1)
    assert NodeRecord(record(node(cpu="3920m"))).offers.cpu_millicores == 3920
    assert NodeRecord(record(node(ready="False"))).offers == NOTHING
    assert NodeRecord(record(node(ready="Unknown"))).offers == NOTHING
    assert NodeRecord(record(node(unschedulable=True))).offers == NOTHING
    assert NodeRecord(record({"metadata": {"name": "bare"}})).offers == NOTHING


def test_a_pod_takes_what_the_scheduler_counts_for_it() -> None:
    def asks(cpu: str, **more: object) -> JSON:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "nodeName": "node-1",
        "containers": [asks("1"), asks("500m")],
        "initContainers": [asks("3"), asks("250m", restartPolicy="Always")],
        "overhead": {"cpu": "10m", "memory": "1"},
    }
    pod = ForeignPodRecord(record({"metadata": {"name": "p"}, "spec": spec}))
    # The larger of what runs together (1500 + 250) and the init container (3000), and the overhead.
    assert (pod.node, pod.takes) == ("node-1", Amounts(0, 3010, 1, 0))
    assert ForeignPodRecord(record({"metadata": {"name": "bare"}})).takes == NOTHING


def bound(cluster: Cluster) -> None:
    cluster.pool("small", capacity={"nodes": {"matchLabels": {"kind": "small"}}})


@in_virtual_time
async def test_a_run_starts_where_one_node_has_room() -> None:
    cluster = Cluster()
    bound(cluster)
    cluster.api.put("nodes", node("node-1"), namespace="")
    cluster.api.put("nodes", node("node-2"), namespace="")
    cluster.api.put("pods", foreign("2500m", where="node-1"))
    cluster.api.put("pods", foreign("2500m", "more", where="node-2"))
    async with cluster.operator():
        await asyncio.sleep(1)
        cluster.submit("large", pool="small", resources={"cpuMillicores": 2000})
        cluster.submit("little", pool="small", teamId="red", resources={"cpuMillicores": 1000})
        await asyncio.sleep(3)
        assert cluster.phase("large") == "PENDING NoNodeFits"
        assert cluster.job("little")["spec"]["template"]["spec"]["nodeSelector"] == {"kind": "small"}
        # The foreign pod of the node that the little run is not counted on goes: there is room.
        for name in ("other", "more"):
            cluster.api.delete("pods", name)
        await cluster.calm()
        assert cluster.job("large")


@in_virtual_time
async def test_a_pool_without_nodes_starts_nothing_and_takes_the_first_that_comes() -> None:
    cluster = Cluster()
    bound(cluster)
    async with cluster.operator():
        cluster.submit("a", pool="small")
        await asyncio.sleep(3)
        assert cluster.phase("a") == "PENDING InsufficientCPU"
        cluster.api.put("nodes", node(), namespace="")
        await cluster.calm()
        assert cluster.job("a")


@in_virtual_time
async def test_what_runs_of_another_pool_hold_on_a_node_is_not_free() -> None:
    cluster = Cluster()
    bound(cluster)
    cluster.api.put("nodes", node(), namespace="")
    async with cluster.operator():
        cluster.submit("first", resources={"cpuMillicores": 3000})
        await cluster.calm()
        cluster.starts("first")
        await cluster.calm()
        cluster.submit("second", pool="small", resources={"cpuMillicores": 2000})
        await asyncio.sleep(3)
        assert cluster.phase("second") == "PENDING InsufficientCPU"
        cluster.ends("first")
        await cluster.calm()
        assert cluster.job("second")


@in_virtual_time
async def test_a_team_whose_run_has_ended_is_still_known() -> None:
    cluster = Cluster()
    cluster.pool(maxConcurrency=4)
    async with cluster.operator():
        cluster.submit("red", teamId="red")
        await cluster.calm()
        cluster.starts("red")
        await cluster.calm()
        gate = cluster.session.gates["patch agentjobs/status"] = asyncio.Event()
        cluster.ends("red")
        for number in range(5):
            cluster.submit(f"blue-{number}", priority="critical")
        await cluster.calm()
        assert len(cluster.jobs()) == 1 + 3  # one slot stays free, though red's end is not stored yet
        gate.set()
        await asyncio.sleep(3)
        assert cluster.phase("blue-3") == "PENDING TeamShare"
        assert cluster.phase("blue-4") == "PENDING BehindOwn"
    async with cluster.operator():
        await asyncio.sleep(3600)
        assert len(cluster.jobs()) == 1 + 4  # red was known for an hour, also after the restart


# -- holes -----------------------------------------------------------------------------------------------


async def missed(cluster: Cluster) -> None:
    """One run holds half of the pool, a large one is promised its end, and `late` fills the hole before."""
    cluster.pool(capacity={"fixed": {"cpuMillicores": 4000}}, sharePercent=100, startTimeoutSeconds=60)
    cluster.submit("first", resources={"cpuMillicores": 2000, "timeoutSeconds": 300})
    await cluster.calm()
    cluster.starts("first")
    await cluster.calm()
    cluster.submit("large", priority="high", resources={"cpuMillicores": 3000})
    await cluster.calm()
    cluster.submit("late", resources={"cpuMillicores": 2000, "timeoutSeconds": 230})
    await cluster.calm()


@in_virtual_time
async def test_a_run_that_misses_its_hole_is_told_so_and_starts_again_later() -> None:
    cluster = Cluster()
    async with cluster.operator():
        await missed(cluster)
        job = cluster.job("late")
        assert job["spec"]["template"]["spec"]["activeDeadlineSeconds"] == 60 + 230
        await asyncio.sleep(59)
        assert cluster.phase("late") == "SCHEDULED JobCreated"
        await asyncio.sleep(2)
        status = cluster.status("late")
        assert cluster.phase("late") == "PENDING BackfillMissed"
        assert [(a["number"], a["reason"]) for a in status["attempts"]] == [(1, "BackfillMissed")]
        assert not {"k8sJobName", "scheduledAt"} & status.keys()
        assert [j for j in cluster.jobs() if j["metadata"]["name"] == job["metadata"]["name"]] == []
        cluster.ends("first")
        await cluster.runs("large")
        await asyncio.sleep(10)  # a miss is followed by a pause, as a failure is
        again = cluster.job("late")["metadata"]
        assert again["labels"]["agentjobs.dev/attempt"] == "2"
        assert again["name"].endswith("-2")
        await cluster.runs("late")
        assert cluster.phase("late") == "SUCCEEDED Completed"
        assert len(cluster.status("late")["attempts"]) == 1


@in_virtual_time
async def test_a_run_that_started_in_time_keeps_its_slot() -> None:
    cluster = Cluster()
    async with cluster.operator():
        await missed(cluster)
        await asyncio.sleep(59)
        cluster.starts("late")
        await asyncio.sleep(30)
        assert cluster.phase("late") == "RUNNING Started"


@in_virtual_time
async def test_a_start_that_nobody_told_of_is_seen_before_the_slot_is_given_up() -> None:
    cluster = Cluster()
    async with cluster.operator():
        await missed(cluster)
        state = {"running": {"startedAt": "2026-03-02T12:00:30Z"}}
        pod = cluster.job("late")["spec"]["template"]
        cluster.api.put(
            "pods",
            {
                "metadata": {"name": "late-pod", "labels": pod["metadata"]["labels"]},
                "spec": {**pod["spec"], "nodeName": "node-1"},
                "status": {"phase": "Running", "containerStatuses": [{"name": "agent", "state": state}]},
            },
            told=False,
        )
        await asyncio.sleep(70)
        assert cluster.phase("late") == "RUNNING Started"


@in_virtual_time
async def test_death_between_the_word_and_the_deletion_starts_nothing_twice() -> None:
    cluster = Cluster()
    async with cluster.operator():
        await missed(cluster)
        cluster.session.gates["delete jobs"] = asyncio.Event()
        await asyncio.sleep(62)
        assert cluster.phase("late") == "PENDING BackfillMissed"
        assert cluster.job("late")["metadata"]["labels"]["agentjobs.dev/attempt"] == "1"
    async with cluster.operator():
        await asyncio.sleep(5)
        assert cluster.phase("late").startswith("PENDING")
        attempts = [job["metadata"]["labels"]["agentjobs.dev/attempt"] for job in cluster.jobs()]
        assert len(attempts) == 1  # that of the run which holds the pool


@in_virtual_time
async def test_a_promise_survives_a_restart() -> None:
    cluster = Cluster()
    async with cluster.operator():
        await missed(cluster)
        await asyncio.sleep(3)
        promised = cluster.status("large")["startsBefore"]
    await asyncio.sleep(5)
    async with cluster.operator():
        await asyncio.sleep(1)
        held = cluster.loop.state.pool("default").books.reservation
        assert held is not None
        assert held.before <= clock() + 400_000_000
        assert cluster.status("large")["startsBefore"] == promised

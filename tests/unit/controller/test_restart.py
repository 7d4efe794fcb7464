"""Everything follows from three lists: the operator may die at any moment, and what it sees may be behind."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentjobs.apis import names, times
from agentjobs.runs import identity
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster, clock, our_labels


def a_job_of(cluster: Cluster, uid: str, *, told: bool = True) -> None:
    """Store a Job as an operator before this one made it for the AgentJob `a`."""
    spec = {"template": {"metadata": {"labels": our_labels(uid)}, "spec": {"activeDeadlineSeconds": 900}}}
    metadata = {
        "name": identity.job_name("a", uid, 1),
        "labels": our_labels(uid),
        "ownerReferences": [{"name": "a", "uid": uid}],
    }
    cluster.api.put("jobs", {"metadata": metadata, "spec": spec}, told=told)


# -- what is found at the start ------------------------------------------------------------------------


@in_virtual_time
async def test_a_run_that_has_its_job_but_was_not_told_is_adopted() -> None:
    cluster = Cluster()
    async with cluster.operator():
        await asyncio.sleep(0.2)
        cluster.session.gates["patch agentjobs/status"] = asyncio.Event()
        cluster.submit("a")
        await cluster.calm()
    await asyncio.sleep(10)
    async with cluster.operator():
        pass
    status = cluster.status("a")
    assert (status["phase"], status["k8sJobName"]) == ("SCHEDULED", cluster.job("a")["metadata"]["name"])
    assert status["createdAt"] <= status["scheduledAt"] < "2026-03-02T12:00:00.300000Z"
    assert cluster.api.count("create jobs") == 1


@in_virtual_time
async def test_a_run_that_was_not_decided_is_started() -> None:
    cluster = Cluster()
    cluster.submit("a")
    async with cluster.operator():
        assert cluster.phase("a") == "SCHEDULED JobCreated"
    # It was not seen at once: nobody knows more than its creation second.
    assert cluster.status("a")["createdAt"] == "2026-03-02T12:00:00.000000Z"


@in_virtual_time
async def test_a_run_keeps_the_moment_it_was_first_seen() -> None:
    cluster = Cluster()
    cluster.stored("a", phase="PENDING", createdAt="2026-03-02T12:00:00.123456Z")
    async with cluster.operator():
        assert cluster.status("a")["createdAt"] == "2026-03-02T12:00:00.123456Z"


@pytest.mark.parametrize(
    ("phase", "end"),
    [
        ("SCHEDULED", "FAILED JobLost"),
        ("RUNNING", "FAILED JobLost"),
        ("CANCELING", "CANCELED CancelRequested"),
    ],
)
@in_virtual_time
async def test_a_run_whose_job_is_gone_is_lost_but_only_after_a_look(phase: str, end: str) -> None:
    cluster = Cluster()
    cluster.stored("a", phase=phase, scheduledAt="2026-03-02T12:00:00.100000Z")
    async with cluster.operator():
        await asyncio.sleep(60)
    assert cluster.phase("a") == end
    verbs = [request.verb for request in cluster.api.requests]
    assert verbs.index("get jobs") < verbs.index("patch agentjobs/status")
    assert cluster.writes == ["patch agentjobs/status"]
    assert cluster.jobs() == []


@in_virtual_time
async def test_a_job_that_only_seems_to_be_gone_goes_on() -> None:
    """The status arrives that a former leader wrote, the watch of Jobs is behind."""
    cluster = Cluster()
    cluster.pool(hold=True)
    async with cluster.operator():
        body = cluster.submit("a")
        await cluster.calm()
        a_job_of(cluster, body["metadata"]["uid"], told=False)
        cluster.api.put("agentjobs", {**body, "status": {"phase": "SCHEDULED", "observedGeneration": 1}})
        await asyncio.sleep(60)
        assert cluster.phase("a").startswith("SCHEDULED")
        cluster.starts("a")
        await asyncio.sleep(60)
        cluster.ends("a")
        await cluster.calm()
    status = cluster.status("a")
    assert (status["phase"], status["duration"]) == ("SUCCEEDED", "60s")
    assert status["completedAt"] > "2026-03-02T12:02:00"


@in_virtual_time
async def test_a_job_deleted_by_hand_while_it_runs_is_lost_and_never_run_again() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        cluster.starts("a")
        await cluster.calm()
        cluster.api.delete("jobs", cluster.job("a")["metadata"]["name"])
        cluster.api.delete("pods", "a-pod")
        await asyncio.sleep(60)
    assert cluster.phase("a") == "FAILED JobLost"
    assert cluster.api.count("create jobs") == 1


@in_virtual_time
async def test_another_job_with_the_same_labels_changes_nothing() -> None:
    cluster = Cluster()
    async with cluster.operator():
        uid = cluster.submit("a")["metadata"]["uid"]
        await cluster.calm()
        cluster.starts("a")
        await cluster.calm()
        cluster.api.put("jobs", {"metadata": {"name": "twin", "labels": our_labels(uid)}})
        await cluster.calm()
        cluster.api.delete("jobs", "twin")
        await asyncio.sleep(10)
        assert cluster.phase("a") == "RUNNING Started"
        cluster.ends("a")
        await cluster.calm()
        assert cluster.phase("a") == "SUCCEEDED Completed"


# -- what no run expects -------------------------------------------------------------------------------


@in_virtual_time
async def test_a_late_job_of_a_run_that_has_ended_is_deleted() -> None:
    cluster = Cluster()
    uid = cluster.stored("a", phase="FAILED", reason="JobLost")["metadata"]["uid"]
    async with cluster.operator():
        a_job_of(cluster, uid)
        await asyncio.sleep(10)
        assert cluster.jobs() == []
        assert cluster.loop.state.runs == {}
    assert cluster.phase("a") == "FAILED JobLost"
    assert cluster.writes == ["delete jobs"]


@in_virtual_time
async def test_a_late_job_that_runs_already_is_stopped_and_keeps_its_logs() -> None:
    cluster = Cluster()
    uid = cluster.stored("a", phase="FAILED", reason="JobLost")["metadata"]["uid"]
    a_job_of(cluster, uid)
    cluster.starts("a")
    async with cluster.operator():
        await asyncio.sleep(60)
        (patch,) = cluster.patches("patch pods")
        assert patch["spec"] == {"activeDeadlineSeconds": 1}
    assert cluster.writes == ["patch pods"]


@in_virtual_time
async def test_a_pod_without_job_and_node_is_stopped_once() -> None:
    """Somebody deleted the Job and left its pod, which has no node yet: nothing may spin over it."""
    cluster = Cluster()
    uid = cluster.stored("a", phase="FAILED", reason="JobLost")["metadata"]["uid"]
    cluster.api.put("pods", {"metadata": {"name": "orphan", "labels": our_labels(uid)}, "spec": {}})
    async with cluster.operator():
        await asyncio.sleep(60)
    assert cluster.writes == ["patch pods"]


@in_virtual_time
async def test_an_orphan_holds_its_slot() -> None:
    """The AgentJob is gone, its Job is not: what runs still takes room."""
    cluster = Cluster()
    orphaned = "00000000-0000-4000-8000-00000000dead"
    a_job_of(cluster, orphaned)
    async with cluster.operator():
        cluster.submit("b")
        await asyncio.sleep(3)
        assert cluster.phase("b") == "PENDING NoFreeSlot"
        cluster.api.delete("jobs", identity.job_name("a", orphaned, 1))
        await cluster.calm()
        assert cluster.phase("b") == "SCHEDULED JobCreated"


# -- death at any moment ------------------------------------------------------------------------------


async def node(cluster: Cluster) -> None:
    """Run the pods of Jobs: each starts within half a second and ends two seconds later."""
    while True:
        await asyncio.sleep(0.5)
        for key, agentjob in list(cluster.api.objects.get("agentjobs", {}).items()):
            name = agentjob["metadata"]["name"]
            owners = {job["metadata"]["ownerReferences"][0]["name"] for job in cluster.jobs()}
            if name not in owners:
                continue
            pod = cluster.api.objects.get("pods", {}).get(f"{key}-pod")
            if pod is None:
                cluster.starts(name)
            elif pod["status"]["phase"] == "Running":
                state = pod["status"]["containerStatuses"][0]["state"]["running"]
                if times.parse(state["startedAt"]) + 2 * times.SECOND <= clock():  # type: ignore[operator]
                    cluster.ends(name, message='{"result": 42}')


@given(st.lists(st.tuples(st.integers(1, 25), st.sampled_from(["before", "after"])), min_size=1, max_size=3))
@settings(max_examples=20)
def test_every_run_ends_once_wherever_the_operator_dies(deaths: list[tuple[int, str]]) -> None:
    @in_virtual_time
    async def story() -> None:
        cluster = Cluster()
        cluster.pool(maxConcurrency=2)
        running = asyncio.create_task(node(cluster))
        for name in "abcd":
            cluster.submit(name)
        for death in deaths:
            await cluster.die(death, 60)
        async with cluster.operator():
            await asyncio.sleep(60)
        running.cancel()
        for name in "abcd":
            assert cluster.phase(name) == "SUCCEEDED Completed"
            assert cluster.status(name)["result"] == 42
            stamps = [
                cluster.status(name)[s] for s in ("createdAt", "scheduledAt", "startedAt", "completedAt")
            ]
            assert stamps == sorted(stamps)
        uids = [job["metadata"]["labels"][names.LABEL_RUN_UID] for job in cluster.jobs()]
        assert len(uids) == len(set(uids)) == 4

    story()

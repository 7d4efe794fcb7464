"""An operator that stands by knows everything and touches nothing; once elected it looks again, then acts."""

from __future__ import annotations

import asyncio

import pytest

from agentjobs.controller import serve
from agentjobs.runs import identity
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster, our_labels


def standby() -> Cluster:
    cluster = Cluster()
    cluster.leadership.free.clear()
    return cluster


def a_job_of(cluster: Cluster, uid: str, *, told: bool) -> None:
    """Store a Job as the leader makes it for the AgentJob `a`."""
    template = {"metadata": {"labels": our_labels(uid)}, "spec": {"activeDeadlineSeconds": 900}}
    metadata = {
        "name": identity.job_name("a", uid, 1),
        "labels": our_labels(uid),
        "ownerReferences": [{"name": "a", "uid": uid}],
    }
    cluster.api.put("jobs", {"metadata": metadata, "spec": {"template": template}}, told=told)


@in_virtual_time
async def test_it_is_ready_and_writes_nothing() -> None:
    cluster = standby()
    async with cluster.operator():
        cluster.submit("a")
        await asyncio.sleep(60)
        assert serve.unready(cluster.loop) is None
        assert cluster.loop.role == "standby"
        assert cluster.writes == []
        cluster.leadership.free.set()
        await cluster.calm()
        assert cluster.loop.role == "leader"
        assert cluster.phase("a") == "SCHEDULED JobCreated"


@in_virtual_time
async def test_it_forgets_what_came_and_went() -> None:
    cluster = standby()
    async with cluster.operator():
        for number in range(20):
            uid = cluster.submit("a")["metadata"]["uid"]
            await cluster.calm()
            a_job_of(cluster, uid, told=True)
            cluster.starts("a")
            await cluster.calm()
            assert len(cluster.loop.state.runs) == 1, number
            assert cluster.loop.state.pools["default"].books.held.slots == 1
            cluster.api.delete("pods", "a-pod")
            cluster.api.delete("jobs", identity.job_name("a", uid, 1))
            cluster.api.delete("agentjobs", "a")
            await cluster.calm()
        assert cluster.loop.state.runs == {}
        assert cluster.loop.state.pools["default"].books.held.slots == 0


@in_virtual_time
async def test_once_elected_it_reads_what_its_watches_have_not_told() -> None:
    """The former leader made a Job at the last moment, and the watch of Jobs is behind."""
    cluster = standby()
    async with cluster.operator():
        uid = cluster.submit("a")["metadata"]["uid"]
        cluster.submit("b")
        await cluster.calm()
        a_job_of(cluster, uid, told=False)
        before = len(cluster.api.requests)
        cluster.leadership.free.set()
        await cluster.calm()
        verbs = [request.verb for request in cluster.api.requests[before:]]
        lists = {"list agentpools", "list agentteams", "list agentjobs", "list jobs", "list pods"}
        assert set(verbs[: len(lists)]) == lists
        assert "create jobs" not in verbs
        assert cluster.phase("a") == "SCHEDULED JobCreated"  # it has the only slot
        assert cluster.phase("b") == "PENDING"


@in_virtual_time
async def test_once_elected_it_knows_what_was_deleted_unseen() -> None:
    cluster = standby()
    async with cluster.operator():
        cluster.submit("a")
        cluster.submit("b")
        await cluster.calm()
        cluster.api.delete("agentjobs", "a", told=False)
        cluster.leadership.free.set()
        await cluster.calm()
        assert cluster.phase("b") == "SCHEDULED JobCreated"
        assert cluster.api.count("create jobs") == 1


@in_virtual_time
async def test_lists_that_fail_are_read_again_before_anything_is_decided() -> None:
    cluster = standby()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        gate = cluster.session.gates["list jobs"] = asyncio.Event()
        cluster.leadership.free.set()
        await asyncio.sleep(40)  # it times out and is asked for again
        assert cluster.loop.role == "opening"
        assert cluster.writes == []
        gate.set()
        await asyncio.sleep(10)
        assert cluster.phase("a") == "SCHEDULED JobCreated"


@pytest.mark.parametrize("opens_in", [0.0, 3.0])
@in_virtual_time
async def test_it_opens_after_the_webhooks_time_and_a_list_that_began_later(opens_in: float) -> None:
    cluster = standby()
    cluster.leadership.opens_in = opens_in
    async with cluster.operator():
        cluster.submit("a")
        cluster.leadership.free.set()
        await cluster.calm()
        assert cluster.phase("a") == "SCHEDULED JobCreated"  # it decides at once all the same
        assert cluster.loop.opened.is_set() == (opens_in == 0)
        lists = cluster.api.count("list agentjobs")
        await asyncio.sleep(opens_in)
        assert cluster.loop.opened.is_set()
        assert cluster.api.count("list agentjobs") - lists == (opens_in > 0)

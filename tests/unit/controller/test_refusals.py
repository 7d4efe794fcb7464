"""What the API server refuses, loses, or says too late: what is tried again, and what never."""

from __future__ import annotations

import asyncio

import pytest

from agentjobs.runs import identity
from tests.unit.cluster.fake_api import HungUpError, RefusedError
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster, our_labels

QUOTA = RefusedError(403, "Forbidden", 'jobs "a" is forbidden: exceeded quota: few, requested: 1')


@in_virtual_time
async def test_a_full_quota_holds_back_its_namespace_alone() -> None:
    cluster = Cluster()
    cluster.pool(maxConcurrency=1)
    async with cluster.operator():
        cluster.api.refuse("create jobs", QUOTA)
        cluster.submit("a")
        await cluster.calm()
        assert cluster.jobs() == []
        cluster.submit("b", namespace="others")
        await cluster.calm()
        assert cluster.job("b")["metadata"]["namespace"] == "others"
        cluster.pool(maxConcurrency=2)
        await asyncio.sleep(3)
        assert cluster.phase("a") == "PENDING QuotaExceeded"
        await asyncio.sleep(20)
        assert cluster.phase("a") == "SCHEDULED JobCreated"
    assert cluster.api.count("create jobs") == 3


@pytest.mark.parametrize(
    "refusal",
    [
        RefusedError(500, "InternalError", "failed calling webhook"),
        RefusedError(429, "TooManyRequests", "later", {"Retry-After": "7"}),
        RefusedError(401, "Unauthorized"),
        RefusedError(409, "Conflict", "the object has been modified"),
        HungUpError(),
    ],
    ids=["error", "busy", "token", "conflict", "no answer"],
)
@pytest.mark.parametrize("verb", ["create jobs", "create networkpolicies", "patch agentjobs/status"])
@in_virtual_time
async def test_what_may_succeed_later_is_tried_until_it_does(verb: str, refusal: Exception) -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.api.refuse(verb, refusal, times=3)
        cluster.submit("a")
        await asyncio.sleep(40)
        assert cluster.phase("a") == "SCHEDULED JobCreated"
        await cluster.runs("a")
    assert cluster.phase("a") == "SUCCEEDED Completed"
    assert len(cluster.jobs()) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        RefusedError(403, "Forbidden", "denied by policy"),
        RefusedError(404, "NotFound", 'namespaces "agents" not found'),
        RefusedError(422, "Invalid", "metadata.name: too long"),
    ],
    ids=["denied", "no namespace", "invalid"],
)
@in_virtual_time
async def test_what_never_will_is_told_and_gives_the_slot_up(refusal: RefusedError) -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.api.refuse("create jobs", refusal)
        cluster.submit("a")
        cluster.submit("b")
        await asyncio.sleep(60)
        assert cluster.phase("b") == "SCHEDULED JobCreated"
    status = cluster.status("a")
    assert (status["phase"], status["reason"]) == ("SCHEDULE_FAILED", "JobRefused")
    assert status["message"] == refusal.message
    assert cluster.api.count("create jobs") == 2
    (event,) = cluster.patches("create events")
    assert (event["reason"], event["involvedObject"]["name"]) == ("ScheduleFailed", "a")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"secrets": [{"name": "key"}]}, "SecretNotAllowed"),
        ({"resources": {"cpuMillicores": 1}}, "InvalidSpec"),
        ({"priority": "model_dump"}, "InvalidSpec"),
        ({"agentImage": None}, "InvalidSpec"),
    ],
)
@in_virtual_time
async def test_a_run_that_can_never_be_a_job_is_told(spec: dict[str, object], reason: str) -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a", **spec)
        cluster.submit("b")
        await cluster.calm()
        assert cluster.phase("a") == f"SCHEDULE_FAILED {reason}"
        assert cluster.phase("b") == "SCHEDULED JobCreated"


@in_virtual_time
async def test_an_edit_past_the_schema_while_it_waits_ends_the_run() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        for name, spec in (("b", {"priority": "model_dump"}), ("c", {"resources": {"gpuCount": "many"}})):
            body = cluster.submit(name)
            await cluster.calm()
            metadata = {**body["metadata"], "generation": 2}
            cluster.api.put("agentjobs", {**body, "metadata": metadata, "spec": {**body["spec"], **spec}})
            await cluster.calm()
            assert cluster.phase(name) == "SCHEDULE_FAILED InvalidSpec"


# -- a Job that is there already ----------------------------------------------------------------------


async def a_job_is_there(cluster: Cluster, labels: dict[str, str]) -> None:
    """Let a run meet a Job of its name that no watch has told of."""
    uid = cluster.submit("a")["metadata"]["uid"]
    name = identity.job_name("a", uid, 1)
    cluster.api.put("jobs", {"metadata": {"name": name, "labels": labels or our_labels(uid)}}, told=False)
    cluster.pool(maxConcurrency=1)
    await cluster.calm()


@in_virtual_time
async def test_a_job_of_ours_is_adopted() -> None:
    cluster = Cluster()
    cluster.pool(hold=True)
    async with cluster.operator():
        await a_job_is_there(cluster, {})
        assert cluster.phase("a") == "SCHEDULED JobCreated"
    assert cluster.api.count("create jobs") == 1


@pytest.mark.parametrize("labels", [{"app": "other"}, our_labels("somebody-elses")])
@in_virtual_time
async def test_a_job_of_somebody_else_is_left_alone(labels: dict[str, str]) -> None:
    cluster = Cluster()
    cluster.pool(hold=True)
    async with cluster.operator():
        await a_job_is_there(cluster, labels)
        await asyncio.sleep(60)
        assert cluster.phase("a") == "SCHEDULE_FAILED NameConflict"
    assert cluster.api.count("create jobs") == 1
    assert len(cluster.jobs()) == 1
    assert cluster.writes.count("delete jobs") == 0


@in_virtual_time
async def test_an_answer_that_was_lost_makes_no_second_job() -> None:
    cluster = Cluster()
    async with cluster.operator(lost=["create jobs", "patch agentjobs/status"]):
        cluster.submit("a")
        await cluster.runs("a")
        await asyncio.sleep(5)
    assert cluster.phase("a") == "SUCCEEDED Completed"
    assert len(cluster.jobs()) == 1


# -- what changes meanwhile -------------------------------------------------------------------------


@in_virtual_time
async def test_a_status_worked_out_from_an_older_spec_is_worked_out_anew() -> None:
    cluster = Cluster()
    async with cluster.operator():
        gate = cluster.session.gates["patch agentjobs/status"] = asyncio.Event()
        body = cluster.submit("a")
        await cluster.calm()
        metadata = {**body["metadata"], "generation": 2}
        cluster.api.put("agentjobs", {**body, "metadata": metadata}, told=False)
        gate.set()
        await cluster.calm()
    status = cluster.status("a")
    assert (status["phase"], status["observedGeneration"]) == ("SCHEDULED", 2)
    assert cluster.writes == ["create jobs", *["patch agentjobs/status"] * 2]


@pytest.mark.parametrize("again", [False, True])
@in_virtual_time
async def test_an_agentjob_that_is_deleted_before_its_status_is_written_is_forgotten(again: bool) -> None:
    cluster = Cluster()
    cluster.pool(maxConcurrency=2)
    async with cluster.operator():
        gate = cluster.session.gates["patch agentjobs/status"] = asyncio.Event()
        old = cluster.submit("a")["metadata"]["uid"]
        await cluster.calm()
        job = cluster.job("a")["metadata"]["name"]
        cluster.api.delete("agentjobs", "a", told=False)
        if again:
            cluster.submit("a")
        gate.set()
        await asyncio.sleep(60)
        assert cluster.loop.state.runs[old].record is None
        cluster.api.delete("jobs", job)
        await cluster.calm()
        assert old not in cluster.loop.state.runs
        if again:
            assert cluster.phase("a") == "SCHEDULED JobCreated"


@in_virtual_time
async def test_an_agentjob_that_is_being_deleted_is_not_started_and_holds_nothing() -> None:
    cluster = Cluster()
    async with cluster.operator():
        gate = cluster.session.gates["create networkpolicies"] = asyncio.Event()
        cluster.api.refuse("create networkpolicies", RefusedError(500))
        body = cluster.submit("a")
        await cluster.calm()
        metadata = {**body["metadata"], "deletionTimestamp": "2026-03-02T12:00:01Z"}
        cluster.api.put("agentjobs", {**body, "metadata": metadata})
        gate.set()
        cluster.submit("b")
        await asyncio.sleep(10)
        assert cluster.phase("b") == "SCHEDULED JobCreated"
    assert len(cluster.jobs()) == 1


@in_virtual_time
async def test_a_pool_that_is_deleted_takes_no_decision_along() -> None:
    cluster = Cluster()
    async with cluster.operator():
        gate = cluster.session.gates["create networkpolicies"] = asyncio.Event()
        cluster.api.refuse("create networkpolicies", RefusedError(500))
        cluster.submit("a")
        await cluster.calm()
        cluster.api.delete("agentpools", "default")
        await cluster.calm()
        gate.set()
        await asyncio.sleep(5)
        assert cluster.phase("a") == "PENDING PoolMissing"
        cluster.pool(maxConcurrency=1)
        await cluster.calm()
        assert cluster.phase("a") == "SCHEDULED JobCreated"

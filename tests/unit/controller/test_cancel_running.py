"""Cancel of a run that runs: SIGTERM once, and what is told of its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from agentjobs.apis import times
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import CANCELED, CANCELING, STATUS, Cluster, clock, conditions


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
        cluster.stops("a", 137)
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
        (lambda cluster: cluster.stops("a", 143), CANCELED),
        (lambda cluster: cluster.stops("a", 0), CANCELED),
        (lambda cluster: cluster.stops("a", 0, '{"result": 42}'), "SUCCEEDED Completed"),
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

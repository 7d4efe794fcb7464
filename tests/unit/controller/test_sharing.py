"""Under load transitions that follow each other within a moment share one patch; at rest each has its own."""

from __future__ import annotations

import asyncio

from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster

CROWD = [f"run-{number:02}" for number in range(40)]


@in_virtual_time
async def test_short_runs_of_a_crowd_cost_one_post_and_one_patch() -> None:
    cluster = Cluster()
    cluster.pool(maxConcurrency=None)
    async with cluster.operator():
        for name in CROWD:
            cluster.submit(name)
        await cluster.calm()
        for name in CROWD:
            cluster.starts(name)
        await asyncio.sleep(1)
        for name in CROWD:
            cluster.ends(name)
        await cluster.calm()
    assert all(cluster.phase(name) == "SUCCEEDED Completed" for name in CROWD)
    assert sorted(cluster.writes) == sorted(["create jobs", "patch agentjobs/status"] * len(CROWD))


@in_virtual_time
async def test_nobody_waits_longer_than_two_seconds_to_be_told() -> None:
    cluster = Cluster()
    cluster.pool(maxConcurrency=None)
    async with cluster.operator():
        for name in CROWD:
            cluster.submit(name)
        await asyncio.sleep(1.9)
        assert {cluster.phase(name) for name in CROWD} == {"PENDING"}
        await asyncio.sleep(0.2)
        assert {cluster.phase(name) for name in CROWD} == {"SCHEDULED JobCreated"}
        for name in CROWD:
            cluster.starts(name)
        await asyncio.sleep(2.1)
        assert {cluster.phase(name) for name in CROWD} == {"RUNNING Started"}

"""`status.startsBefore`: the promise as it is, whoever moved it."""

from __future__ import annotations

import asyncio

from agentjobs.apis import times
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster


async def _large_waits(cluster: Cluster, start_timeout: int) -> None:
    """A run holds half of the pool, and one that is larger than the other half has waited for 3 s."""
    fixed = {"fixed": {"cpuMillicores": 4000}}
    cluster.pool(capacity=fixed, sharePercent=100, startTimeoutSeconds=start_timeout)
    cluster.submit("first", resources={"cpuMillicores": 2000, "timeoutSeconds": 300})
    await cluster.calm()
    cluster.submit("large", priority="high", resources={"cpuMillicores": 3000})
    await asyncio.sleep(3)


def _promise(cluster: Cluster) -> str:
    """What is promised now, as a status would say it."""
    held = cluster.loop.state.pool("default").books.reservation
    assert held is not None
    return times.text(held.before)


@in_virtual_time
async def test_a_promise_that_comes_earlier_is_told_anew() -> None:
    cluster = Cluster()
    async with cluster.operator():
        await _large_waits(cluster, start_timeout=300)
        first = cluster.status("large")["startsBefore"]
        cluster.starts("first")
        await asyncio.sleep(40)
        assert cluster.status("large")["startsBefore"] == _promise(cluster) < first
        writes = len(cluster.writes)
        await asyncio.sleep(200)
        assert len(cluster.writes) == writes  # the same promise is not told again


@in_virtual_time
async def test_a_promise_that_somebody_more_urgent_broke_is_told_anew() -> None:
    cluster = Cluster()
    async with cluster.operator():
        await _large_waits(cluster, start_timeout=60)
        cluster.starts("first")
        await cluster.calm()
        first = cluster.status("large")["startsBefore"]
        urgent = {"cpuMillicores": 4000, "timeoutSeconds": 3600}
        cluster.submit("urgent", priority="critical", resources=urgent)
        await cluster.calm()
        cluster.ends("first")
        await cluster.calm()
        cluster.starts("urgent")
        await asyncio.sleep(40)
        assert cluster.status("large")["startsBefore"] == _promise(cluster) > first
    async with cluster.operator():
        await asyncio.sleep(1)
        assert cluster.status("large")["startsBefore"] == _promise(cluster)

"""When the operator is ready, and what it still does once it is told to stop."""

from __future__ import annotations

import asyncio

from agentjobs.controller.serve import unready
from tests.unit.cluster.fake_api import RefusedError
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster


@in_virtual_time
async def test_the_operator_is_ready_once_everything_was_read() -> None:
    cluster = Cluster()
    cluster.api.refuse("list agentpools", RefusedError(503), times=3)
    async with cluster.operator():
        assert unready(cluster.loop) == "the first lists are not complete"
        await asyncio.sleep(10)
        assert unready(cluster.loop) is None
        await cluster.loop.stop(1)
        assert unready(cluster.loop) == "shutting down"


@in_virtual_time
async def test_at_its_end_the_operator_tells_what_is_decided_and_decides_nothing_more() -> None:
    cluster = Cluster()
    async with cluster.operator():
        gate = cluster.session.gates["patch agentjobs/status"] = asyncio.Event()
        cluster.submit("a")
        await cluster.calm()
        stopping = asyncio.create_task(cluster.loop.stop(10))
        await asyncio.sleep(1)
        cluster.pool(maxConcurrency=9)
        cluster.submit("b")
        gate.set()
        await stopping
        assert cluster.phase("a") == "SCHEDULED JobCreated"
        await asyncio.sleep(10)
        assert cluster.phase("b") == "PENDING"
    assert len(cluster.jobs()) == 1


@in_virtual_time
async def test_at_its_end_the_operator_does_not_wait_for_ever() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.session.gates["patch agentjobs/status"] = asyncio.Event()
        cluster.submit("a")
        await cluster.calm()
        async with asyncio.timeout(10.5):
            await cluster.loop.stop(10)

"""Every run is canceled once, wherever the operator dies meanwhile."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import CANCELED, Cluster, conditions


async def node(cluster: Cluster) -> None:
    """Job controller and kubelet: pods start within half a second, stop when told, and go with their Job."""
    while True:
        await asyncio.sleep(0.5)
        jobs = {job["metadata"]["ownerReferences"][0]["name"] for job in cluster.jobs()}
        for name in "abcd":
            pod = cluster.api.objects.get("pods", {}).get(f"agents/{name}-pod")
            if pod is None:
                if name in jobs:
                    cluster.starts(name)
            elif pod["status"]["phase"] == "Running":
                if name not in jobs:
                    cluster.api.delete("pods", f"{name}-pod")
                elif pod["spec"]["activeDeadlineSeconds"] == 1:
                    cluster.stops(name)


@given(
    deaths=st.lists(st.tuples(st.integers(1, 30), st.sampled_from(["before", "after"])), max_size=3),
    canceled_at=st.lists(st.integers(0, 50), min_size=4, max_size=4),
)
@settings(max_examples=40)
def test_every_run_is_canceled_once_wherever_the_operator_dies(
    deaths: list[tuple[int, str]], canceled_at: list[int]
) -> None:
    @in_virtual_time
    async def story() -> None:
        cluster = Cluster()
        cluster.pool(maxConcurrency=2)
        helpers = [asyncio.create_task(node(cluster))]
        for name, tenths in zip("abcd", canceled_at, strict=True):
            cluster.submit(name)
            helpers.append(asyncio.create_task(later(tenths / 10, cluster, name)))
        for death in deaths:
            await cluster.die(death, 10)
        async with cluster.operator():
            await asyncio.sleep(60)
            assert cluster.loop.state.pool("default").books.held.slots == 0
        for helper in helpers:
            helper.cancel()
        for name in "abcd":
            status = cluster.status(name)
            assert cluster.phase(name) == CANCELED
            assert conditions(status)["Ready"] == "True"
            stamps = [status.get(s) for s in ("createdAt", "scheduledAt", "startedAt", "completedAt")]
            assert [s for s in stamps if s] == sorted(s for s in stamps if s)
            assert status["completedAt"]

    async def later(seconds: float, cluster: Cluster, name: str) -> None:
        await asyncio.sleep(seconds)
        cluster.cancel(name)

    story()

"""Drain: waiting runs still start, what is left at its end is canceled, and a restart keeps the time."""

from __future__ import annotations

import asyncio

import pytest

from agentjobs.apis import times
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster, clock, conditions

DRAINED = "CANCELED PoolDrained"


def draining_since(cluster: Cluster, name: str = "default") -> str | None:
    since: str | None = cluster.api.get("agentpools", name).get("status", {}).get("drainingSince")
    return since


def drain(cluster: Cluster, seconds: int) -> None:
    cluster.pool(maxConcurrency=1, drain={"timeoutSeconds": seconds})


def stored_drain(cluster: Cluster, seconds: int, *, ago: int, observed: int) -> None:
    """A pool that is drained, of generation 5, as a former leader has left it."""
    status = {
        "drainingSince": times.text(clock() - ago * times.SECOND),
        "observedGeneration": observed,
    }
    spec = {"requireTeams": False, "maxConcurrency": 1, "drain": {"timeoutSeconds": seconds}}
    cluster.api.put("agentpools", {"metadata": {"name": "default"}, "spec": spec, "status": status})
    cluster.api.get("agentpools", "default")["metadata"]["generation"] = 5


@in_virtual_time
async def test_what_waits_still_starts_and_what_is_left_at_the_end_is_canceled() -> None:
    cluster = Cluster()
    async with cluster.operator():
        for name in ("a", "b", "c"):
            cluster.submit(name)
        await cluster.calm()
        drain(cluster, 60)
        await asyncio.sleep(10)
        assert draining_since(cluster) == "2026-03-02T12:00:00.002000Z"
        await cluster.runs("a")
        cluster.starts("b")
        await asyncio.sleep(49)
        assert (cluster.phase("b"), cluster.phase("c")) == ("RUNNING Started", "PENDING NoFreeSlot")
        await asyncio.sleep(2)
        assert (cluster.phase("b"), cluster.phase("c")) == ("CANCELING PoolDrained", DRAINED)
        cluster.stops("b")
        await cluster.calm()
        # Whoever gets in all the same does not start.
        cluster.submit("d")
        await cluster.calm()
    assert [cluster.phase(name) for name in "abcd"] == ["SUCCEEDED Completed", DRAINED, DRAINED, DRAINED]
    for name in "bcd":
        told = conditions(cluster.status(name))
        # Nobody asked for it in the spec: to GitOps tools it has failed.
        assert (told["Ready"], told["Stalled"]) == ("False", "True")
        assert "cancel" not in cluster.api.get("agentjobs", name)["spec"]
    assert cluster.api.count("create jobs") == 2


@in_virtual_time
async def test_no_time_at_all_cancels_at_once_and_only_in_that_pool() -> None:
    cluster = Cluster()
    cluster.pool("other")
    async with cluster.operator():
        cluster.submit("a")
        cluster.submit("b")
        cluster.submit("c", pool="other")
        await cluster.calm()
        cluster.starts("a")
        await cluster.calm()
        drain(cluster, 0)
        await cluster.calm()
        assert cluster.phase("a") == "CANCELING PoolDrained"
        assert cluster.phase("b") == DRAINED
        assert cluster.phase("c") == "SCHEDULED JobCreated"


@in_virtual_time
async def test_a_drain_that_is_taken_away_ends() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        cluster.submit("b")
        await cluster.calm()
        cluster.starts("a")
        drain(cluster, 10)
        await asyncio.sleep(5)
        cluster.pool(maxConcurrency=1)
        await asyncio.sleep(60)
        assert (draining_since(cluster), cluster.phase("a")) == (None, "RUNNING Started")
        drain(cluster, 10)
        await asyncio.sleep(9)
        assert cluster.phase("a") == "RUNNING Started"
        await asyncio.sleep(2)
        assert cluster.phase("a") == "CANCELING PoolDrained"
        # What has begun to stop is not taken back.
        cluster.pool(maxConcurrency=1)
        cluster.submit("c")
        await asyncio.sleep(5)
        assert (cluster.phase("a"), cluster.phase("c")) == ("CANCELING PoolDrained", "PENDING NoFreeSlot")
        cluster.stops("a")
        await cluster.calm()
        assert (cluster.phase("a"), cluster.phase("c")) == (DRAINED, "SCHEDULED JobCreated")


@in_virtual_time
async def test_another_timeout_counts_from_the_same_moment() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        cluster.starts("a")
        drain(cluster, 3600)
        await asyncio.sleep(100)
        since = draining_since(cluster)
        drain(cluster, 120)
        await asyncio.sleep(19)
        assert cluster.phase("a") == "RUNNING Started"
        await asyncio.sleep(2)
        assert (cluster.phase("a"), draining_since(cluster)) == ("CANCELING PoolDrained", since)


@in_virtual_time
async def test_a_cancel_of_its_own_comes_first() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a", cancel=True)
        drain(cluster, 0)
        await cluster.calm()
    assert cluster.phase("a") == "CANCELED CancelRequested"


# -- restarts ------------------------------------------------------------------------------------------


@in_virtual_time
async def test_the_time_goes_on_while_nobody_looks() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        cluster.starts("a")
        drain(cluster, 60)
        await asyncio.sleep(5)
    since = draining_since(cluster)
    await asyncio.sleep(30)
    async with cluster.operator():
        assert cluster.phase("a") == "RUNNING Started"
        await asyncio.sleep(26)
        assert (cluster.phase("a"), draining_since(cluster)) == ("CANCELING PoolDrained", since)
    # The drain is over before the run is: it is stopped all the same, and for the same cause.
    cluster.pool(maxConcurrency=1)
    async with cluster.operator():
        assert cluster.phase("a") == "CANCELING PoolDrained"
        cluster.stops("a")
        await cluster.calm()
        assert cluster.phase("a") == DRAINED


@pytest.mark.parametrize(
    ("observed", "phase"),
    [
        (5, "CANCELED PoolDrained"),  # nothing was edited since
        (4, "CANCELED PoolDrained"),  # one edit: it cannot have taken the drain away and set it again
        (3, "SCHEDULED JobCreated"),  # two can
        (-1, "SCHEDULED JobCreated"),
    ],
)
@in_virtual_time
async def test_a_drain_of_before_is_told_from_another_one(observed: int, phase: str) -> None:
    cluster = Cluster()
    stored_drain(cluster, 60, ago=100, observed=observed)
    cluster.submit("a")
    async with cluster.operator():
        await cluster.calm()
        assert cluster.phase("a") == phase
        await asyncio.sleep(1)
        since = times.parse(draining_since(cluster))
        assert since is not None
        assert (since < clock() - 50 * times.SECOND) == (observed >= 4)


@pytest.mark.parametrize("stored", ["never", 7, None, "9999-99-99T00:00:00Z"])
@in_virtual_time
async def test_a_moment_that_cannot_be_read_is_now(stored: object) -> None:
    cluster = Cluster()
    stored_drain(cluster, 60, ago=100, observed=5)
    cluster.api.get("agentpools", "default")["status"]["drainingSince"] = stored
    cluster.submit("a")
    async with cluster.operator():
        await asyncio.sleep(2)
        assert cluster.phase("a") == "SCHEDULED JobCreated"
        assert times.parse(draining_since(cluster)) is not None


@in_virtual_time
async def test_a_pool_that_is_deleted_is_drained_no_more() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a")
        await cluster.calm()
        drain(cluster, 10)
        await asyncio.sleep(5)
        cluster.api.delete("agentpools", "default")
        await asyncio.sleep(60)
        assert cluster.phase("a") == "SCHEDULED JobCreated"


@in_virtual_time
async def test_a_pool_that_is_made_anew_has_all_its_time_again() -> None:
    cluster = Cluster()
    async with cluster.operator():
        for name in ("a", "b"):
            cluster.submit(name)
        drain(cluster, 60)
        await asyncio.sleep(50)
        first = draining_since(cluster)
        cluster.api.delete("agentpools", "default")
        drain(cluster, 60)
        await asyncio.sleep(50)
        assert cluster.phase("b") == "PENDING NoFreeSlot"
        second = draining_since(cluster)
        assert first is not None
        assert second is not None
        assert second > first
        await asyncio.sleep(11)
        assert cluster.phase("b") == DRAINED

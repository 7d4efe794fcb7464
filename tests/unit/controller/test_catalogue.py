"""Pools and teams as administrators set them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentjobs.controller.catalogue import Catalogue
from agentjobs.controller.serve import unready
from agentjobs.scheduling.model import TeamSettings
from agentjobs.scheduling.resources import Amounts, Bounds
from tests.unit.cluster.fake_api import JSON, RefusedError
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster, MemorySession


def named(name: str, **spec: Any) -> JSON:
    return {"metadata": {"name": name}, "spec": spec}


def test_an_edit_that_cannot_be_read_leaves_what_was() -> None:
    catalogue = Catalogue()
    catalogue.pool_stored(named("p", maxConcurrency=3))
    catalogue.pool_stored(named("p", maxConcurrency="many"))
    catalogue.team_stored(named("blue", teamId="team-blue", secrets=["agents/key"]))
    catalogue.team_stored(named("blue", teamId=7))
    assert catalogue.pools["p"].max_concurrency == 3
    assert catalogue.allowed_secrets("team-blue") == {"agents/key"}


def test_a_team_goes_by_its_id_and_by_its_name_without_one() -> None:
    catalogue = Catalogue()
    catalogue.pool_stored(named("p"))
    catalogue.team_stored(named("blue"))
    assert catalogue.settings("p", None).admitted == frozenset({"blue"})
    catalogue.team_stored(named("blue", teamId="other"))
    assert catalogue.settings("p", None).admitted == frozenset({"other"})
    catalogue.team_deleted("blue")
    catalogue.team_deleted("blue")
    assert catalogue.settings("p", None).admitted == frozenset()
    catalogue.pool_stored(named("p", requireTeams=False))
    assert catalogue.settings("p", None).admitted is None


@pytest.mark.parametrize(
    ("spec", "capacity"),
    [
        ({}, Bounds()),
        ({"maxConcurrency": 4}, Bounds(4)),
        ({"capacity": {"fixed": {"gpuCount": 2}}}, Bounds(None, None, None, 2)),
        (
            {"maxConcurrency": 4, "capacity": {"fixed": {"cpuMillicores": 1000, "memoryMb": 2048}}},
            Bounds(4, 1000, 2048, None),
        ),
    ],
)
def test_a_pool_has_its_slots_and_its_fixed_amounts(spec: JSON, capacity: Bounds) -> None:
    catalogue = Catalogue()
    catalogue.pool_stored(named("p", **spec))
    assert catalogue.settings("p", None).capacity == capacity


def test_what_a_team_is_owed_in_a_pool() -> None:
    catalogue = Catalogue()
    catalogue.pool_stored(named("p", sharePercent=40))
    owed = {"weight": 3, "guaranteed": {"slots": 2}, "limit": {"slots": 5, "gpuCount": 0}}
    catalogue.team_stored(named("blue", pools={"p": owed, "other": {"criticalLimit": {"slots": 1}}}))
    settings = catalogue.settings("p", {"node-1": Amounts(0, 1000)})
    assert (settings.share_percent, settings.nodes) == (40, {"node-1": Amounts(0, 1000)})
    assert settings.teams == {
        "blue": TeamSettings(3, Amounts(2), Bounds(slots=5, gpu_count=0), Bounds()),
    }


@in_virtual_time
async def test_a_reading_replaces_everything() -> None:
    cluster = Cluster()
    cluster.api.put("agentteams", named("blue"))
    catalogue = Catalogue()
    catalogue.pool_stored(named("gone"))
    catalogue.team_stored(named("gone"))
    await catalogue.read(MemorySession(cluster.api))
    assert catalogue.pools.keys() == {"default"}
    assert catalogue.teams.keys() == {"blue"}


@in_virtual_time
async def test_an_edit_that_no_event_told_of_is_seen_within_a_minute() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("a", pool="new")
        await asyncio.sleep(5)
        assert cluster.phase("a") == "PENDING PoolMissing"
        cluster.api.put("agentpools", named("new", requireTeams=False))
        await asyncio.sleep(60)
        assert cluster.phase("a") == "SCHEDULED JobCreated"


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

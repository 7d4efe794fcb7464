"""How pools and teams are known: lists, watches, and what comes between them."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

from agentjobs.admission.review import Request
from agentjobs.apis.names import API_VERSION
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster, record


@in_virtual_time
async def test_lists_and_watches_that_meet_leave_what_is_stored() -> None:
    """While a list is on its way, a pool is made and a team is deleted."""
    cluster = Cluster()
    cluster.team("red")
    async with cluster.operator():
        for kind in ("agentpools", "agentteams"):
            cluster.session.held[f"list {kind}"] = asyncio.Event()
        lists = [asyncio.create_task(reflector.relist()) for reflector in cluster.loop.reflectors[:2]]
        await cluster.calm()
        cluster.pool("new")
        cluster.api.delete("agentteams", "red")
        await cluster.calm()
        for gate in cluster.session.held.values():
            gate.set()
        await asyncio.gather(*lists)
        assert cluster.loop.state.catalogue.pools.keys() == {"default", "new"}
        assert cluster.loop.state.catalogue.teams == {}


@in_virtual_time
async def test_what_no_event_told_of_is_known_with_the_next_list() -> None:
    cluster = Cluster()
    cluster.team("red")
    async with cluster.operator():
        cluster.submit("a", pool="new")
        await asyncio.sleep(5)
        assert cluster.phase("a") == "PENDING PoolMissing"
        new = {"metadata": {"name": "new"}, "spec": {"requireTeams": False}}
        cluster.api.put("agentpools", new, told=False)
        cluster.api.delete("agentteams", "red", told=False)
        cluster.api.forget()
        for kind in ("agentpools", "agentteams"):
            cluster.api.say(kind, {"type": "ERROR", "object": {"code": 410}})
        await asyncio.sleep(5)
        assert cluster.phase("a") == "SCHEDULED JobCreated"
        assert cluster.loop.state.catalogue.teams == {}


@in_virtual_time
async def test_an_edit_is_known_as_soon_as_it_is_told_and_our_own_words_are_no_news() -> None:
    cluster = Cluster()
    cluster.team("blue")
    async with cluster.operator():
        await asyncio.sleep(2)
        changes = []
        with patch.object(cluster.loop.state, "catalogue_changed", lambda: changes.append(1)):
            cluster.submit("a")
            await asyncio.sleep(10)
            assert changes == []
            cluster.pool(maxConcurrency=2)
            cluster.team("blue", maxPending=3)
            await cluster.calm()
            assert cluster.loop.state.catalogue.pools["default"].max_concurrency == 2
            assert cluster.loop.state.catalogue.teams["blue"].max_pending == 3
            assert changes


@in_virtual_time
async def test_a_review_right_behind_an_edit_knows_it() -> None:
    """The books take it in before they are asked: a submitter is not told that the pool is missing."""
    cluster = Cluster()
    async with cluster.operator():
        pool = cluster.api.put("agentpools", {"metadata": {"name": "new"}, "spec": {"requireTeams": False}})
        cluster.loop.agentpools.upsert(record(pool))
        spec = {"agentImage": "agent:1", "teamId": "blue", "pool": "new"}
        metadata = {"name": "a", "namespace": "agents"}
        body = {"apiVersion": API_VERSION, "kind": "AgentJob", "metadata": metadata, "spec": spec}
        answer = cluster.loop.boundary.hooks["agentjobs"](Request("1", "CREATE", "a", "agents", object=body))
        assert (answer.allowed, answer.warnings) == (True, ("starts now",))


@in_virtual_time
async def test_what_is_nested_without_end_is_a_fault_of_one_object_alone() -> None:
    cluster = Cluster()
    deep: Any = None
    for _ in range(500):
        deep = [deep]
    cluster.pool("deep", maxConcurrency=deep)
    async with cluster.operator():
        await asyncio.sleep(2)
        assert cluster.loop.state.catalogue.pools.keys() == {"default"}
        assert cluster.api.get("agentpools", "deep")["status"]["conditions"][0]["reason"] == "Invalid"

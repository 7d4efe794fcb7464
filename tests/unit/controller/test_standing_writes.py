"""When the status of pools and teams is written: once a second at most, true within two, by one rule."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from random import Random
from typing import Any

import pytest

from agentjobs.controller.statuses import difference
from tests.unit.cluster.fake_api import HungUpError, RefusedError
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster
from tests.unit.controller.standings import POOL, TEAM, pool_status, ready, team_status


@in_virtual_time
async def test_nothing_is_written_while_nothing_changes() -> None:
    cluster = Cluster()
    cluster.team("blue")
    async with cluster.operator():
        await asyncio.sleep(300)
        assert (cluster.api.count(POOL), cluster.api.count(TEAM)) == (1, 1)
    before = pool_status(cluster), team_status(cluster)
    async with cluster.operator():
        await asyncio.sleep(300)
    # Not after a restart either: what is stored is what would be written.
    assert (cluster.api.count(POOL), cluster.api.count(TEAM)) == (1, 1)
    assert before == (pool_status(cluster), team_status(cluster))


@in_virtual_time
async def test_each_object_is_written_once_a_second_at_most_and_true_within_two() -> None:
    cluster = Cluster()
    cluster.pool(hold=True)
    cluster.team("blue")
    cluster.team("red")
    async with cluster.operator():
        written: dict[str, list[float]] = {POOL: [], TEAM: []}
        now = asyncio.get_running_loop().time
        cluster.api.rules.append(
            lambda request: written[request.verb].append(now()) if request.verb in written else None
        )
        for number in range(1000):
            cluster.submit(f"run-{number}")
            await asyncio.sleep(0.01)
        await asyncio.sleep(1)
        assert pool_status(cluster)["pending"] == team_status(cluster)["pending"] == 1000
        assert team_status(cluster, "red")["pending"] == 0
    for times_of_writes in (written[POOL][1:], written[TEAM][2:]):
        assert len(times_of_writes) <= 11
        assert all(later - earlier >= 1 for earlier, later in itertools.pairwise(times_of_writes))


@in_virtual_time
async def test_what_another_hand_wrote_is_put_right() -> None:
    cluster = Cluster()
    cluster.team("blue")
    async with cluster.operator():
        cluster.submit("a")
        await asyncio.sleep(2)
        right = team_status(cluster)
        wrong = {"running": 99, "pools": "none", "conditions": [7], "more": 1}
        cluster.api.put("agentteams", {"metadata": {"name": "blue"}, "status": wrong})
        await asyncio.sleep(2)
        assert {**right, "conditions": 0} == {**team_status(cluster), "conditions": 0}
        assert ready(team_status(cluster)) == "True Accepted"


@in_virtual_time
async def test_an_event_that_comes_late_changes_nothing() -> None:
    cluster = Cluster()
    async with cluster.operator():
        await asyncio.sleep(2)
        late = cluster.api.get("agentpools", "default")
        cluster.pool(maxConcurrency=7)
        await asyncio.sleep(2)
        cluster.api.say("agentpools", {"type": "MODIFIED", "object": late})
        await cluster.calm()
        assert cluster.loop.state.catalogue.pools["default"].max_concurrency == 7
        await asyncio.sleep(2)
    assert cluster.api.count(POOL) == 2


@pytest.mark.parametrize(
    "refusal",
    [RefusedError(500), RefusedError(429, headers={"Retry-After": "1"}), HungUpError()],
    ids=["error", "busy", "no answer"],
)
@in_virtual_time
async def test_what_failed_is_written_when_it_can_be(refusal: Exception) -> None:
    cluster = Cluster()
    for number in range(20):
        cluster.team(f"team-{number}")
    async with cluster.operator():
        cluster.api.refuse(TEAM, refusal, times=3)
        cluster.api.refuse(POOL, refusal)
        await asyncio.sleep(10)
        assert ready(pool_status(cluster)) == "True Accepted"
        assert all(ready(team_status(cluster, f"team-{number}")) == "True Accepted" for number in range(20))


@in_virtual_time
async def test_after_an_outage_it_is_true_within_seconds() -> None:
    cluster = Cluster()
    async with cluster.operator():
        await asyncio.sleep(2)
        cluster.api.refuse(POOL, RefusedError(503), times=1000)
        cluster.pool(hold=True)
        await asyncio.sleep(300)
        cluster.api.rules.clear()
        await asyncio.sleep(4.1)
        assert ready(pool_status(cluster)) == "True OnHold"


@pytest.mark.parametrize("status", [404, 409, 422])
@in_virtual_time
async def test_what_can_never_be_written_is_not_tried_over_and_over(status: int) -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.api.refuse(POOL, RefusedError(status), times=1000)
        await asyncio.sleep(50)
        assert cluster.api.count(POOL) <= 2


@in_virtual_time
async def test_a_thousand_teams_cost_a_write_for_each_that_changed() -> None:
    cluster = Cluster()
    cluster.pool(maxConcurrency=None)
    for number in range(1000):
        cluster.team(f"team-{number}")
    random = Random(1)
    async with cluster.operator():
        await asyncio.sleep(5)
        assert (cluster.api.count(POOL), cluster.api.count(TEAM)) == (1, 1000)
        named = Counter[str]()
        for number in range(300):
            team = f"team-{random.randrange(1000)}"
            named[team] += 1
            cluster.submit(f"run-{number}", teamId=team)
            await asyncio.sleep(0.01)
        await asyncio.sleep(1)
        assert cluster.api.count(TEAM) - 1000 <= 300
        assert cluster.api.count(POOL) <= 6
        for team, count in named.items():
            assert team_status(cluster, team)["running"] == count
    changed = {request.path.split("/")[-2] for request in cluster.api.requests if request.verb == TEAM}
    assert len(changed) == 1000


# -- merge patches -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {}, {"a": None}),
        ({}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1}}}, {}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": "text"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": "text"}, {"a": "text"}),
    ],
)
def test_difference(old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]) -> None:
    assert difference(old, new) == patch

"""What the status of pools and teams says: what waits and what is held, after any history."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest

from agentjobs.apis.agentteam import POOLS_MAX
from agentjobs.runs import decision
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster
from tests.unit.controller.standings import pool_status, ready, team_status

CAPACITY = {"fixed": {"cpuMillicores": 10_000, "memoryMb": 20_000}}


@in_virtual_time
async def test_a_pool_and_a_team_tell_what_waits_and_what_is_held() -> None:
    cluster = Cluster()
    cluster.pool(maxConcurrency=8, capacity=CAPACITY, sharePercent=50)
    cluster.team("blue")
    cluster.team("red", pools={"default": {"guaranteed": {"slots": 5}, "limit": {"slots": 5}}})
    async with cluster.operator():
        for number in range(5):
            cluster.submit(f"b{number}", resources={"cpuMillicores": 2000, "memoryMb": 1000})
        cluster.submit("r", teamId="red")
        await asyncio.sleep(2)
        running = {"slots": 5, "cpuMillicores": 9000, "memoryMb": 6048, "gpuCount": 0}
        status = pool_status(cluster)
        assert (status["pending"], status["running"], status["usage"]) == (1, 5, running)
        assert status["capacity"] == {"slots": 8, "cpuMillicores": 10_000, "memoryMb": 20_000}
        assert (status["observedGeneration"], ready(status)) == (2, "True Accepted")
        blue = team_status(cluster)
        assert (blue["pending"], blue["running"]) == (1, 4)
        assert blue["pools"] == {
            "default": {
                "pending": 1,
                "running": 4,
                "usage": {"slots": 4, "cpuMillicores": 8000, "memoryMb": 4000, "gpuCount": 0},
                "share": 800,
                "entitlement": {"slots": 4, "cpuMillicores": 5000, "memoryMb": 10_000},
            }
        }
        red = team_status(cluster, "red")["pools"]["default"]
        assert (red["running"], red["share"], red["entitlement"]["slots"]) == (1, 125, 5)
        for name in ("b0", "b1", "b2", "r"):
            await cluster.runs(name)
        await asyncio.sleep(2)
        assert (team_status(cluster)["pending"], team_status(cluster)["running"]) == (0, 2)
        assert team_status(cluster, "red")["pools"]["default"]["usage"]["slots"] == 0


@in_virtual_time
async def test_without_a_finite_capacity_there_is_no_share() -> None:
    cluster = Cluster()
    cluster.pool(maxConcurrency=None)
    cluster.team("blue")
    async with cluster.operator():
        cluster.submit("a")
        await asyncio.sleep(2)
        (pool,) = team_status(cluster)["pools"].values()
        assert pool.keys() == {"pending", "running", "usage"}
        assert "capacity" not in pool_status(cluster)


@in_virtual_time
async def test_runs_that_are_set_aside_wait_too() -> None:
    cluster = Cluster()
    cluster.pool(requireTeams=True, maxConcurrency=1)
    cluster.pool("small", capacity={"fixed": {"gpuCount": 1}})
    cluster.team("blue")
    async with cluster.operator():
        cluster.submit("a", teamId="nobody")
        cluster.submit("b", pool="small", resources={"gpuCount": 2})
        cluster.submit("c", pool="missing")
        await asyncio.sleep(2)
        assert (pool_status(cluster)["pending"], pool_status(cluster, "small")["pending"]) == (1, 1)
        status = team_status(cluster)
        assert {name: pool["pending"] for name, pool in status["pools"].items()} == {"small": 1, "missing": 1}
        assert status["pending"] == 2
        cluster.cancel("b")
        cluster.cancel("c")
        await asyncio.sleep(2)
        assert (team_status(cluster)["pools"], pool_status(cluster, "small")["pending"]) == ({}, 0)


@in_virtual_time
async def test_a_team_by_another_id_and_one_without_an_object() -> None:
    cluster = Cluster()
    cluster.team("object", teamId="blue")
    async with cluster.operator():
        cluster.submit("a")
        cluster.submit("b", teamId="a/b ü")
        await asyncio.sleep(2)
        assert team_status(cluster, "object")["running"] == 1
        assert cluster.api.objects["agentteams"].keys() == {"agents/object"}


@in_virtual_time
async def test_of_more_pools_than_fit_those_with_runs_are_told() -> None:
    cluster = Cluster()
    cluster.team("blue", pools={f"pool-{number:02}": {} for number in range(POOLS_MAX)})
    for number in range(POOLS_MAX + 3):
        cluster.pool(f"pool-{number:02}")
    async with cluster.operator():
        for number in range(POOLS_MAX, POOLS_MAX + 3):
            cluster.submit(f"run-{number}", pool=f"pool-{number}")
        await asyncio.sleep(2)
        status = team_status(cluster)
    assert len(status["pools"]) == POOLS_MAX
    assert status["running"] == 3
    assert all(status["pools"][f"pool-{number}"]["running"] == 1 for number in range(32, 35))


@in_virtual_time
async def test_what_a_pool_does_is_its_reason() -> None:
    cluster = Cluster()
    async with cluster.operator():
        await asyncio.sleep(1.5)
        assert ready(pool_status(cluster)) == "True Accepted"
        cluster.pool(hold=True)
        await asyncio.sleep(1.5)
        assert ready(pool_status(cluster)) == "True OnHold"
        cluster.pool(drain={"timeoutSeconds": 10})
        await asyncio.sleep(1.5)
        assert ready(pool_status(cluster)) == "True Draining"
        await asyncio.sleep(10)
        assert ready(pool_status(cluster)) == "True Drained"
        assert pool_status(cluster)["observedGeneration"] == 3


@in_virtual_time
async def test_an_edit_past_the_schema_is_told_and_the_former_settings_stay() -> None:
    cluster = Cluster()
    cluster.pool(maxConcurrency=3)
    cluster.team("blue", maxPending=7)
    async with cluster.operator():
        await asyncio.sleep(1.5)
        well = pool_status(cluster)["conditions"][0]["lastTransitionTime"]
        cluster.pool(maxConcurrency=0)
        cluster.team("blue", maxPending="many")
        await asyncio.sleep(1.5)
        for status, generation in ((pool_status(cluster), 3), (team_status(cluster), 2)):
            assert (ready(status), status["observedGeneration"]) == ("False Invalid Stalled", generation)
            assert "its former settings stay in force" in status["conditions"][0]["message"]
        assert (
            "spec.maxConcurrency: 0 is below the minimum" in pool_status(cluster)["conditions"][0]["message"]
        )
        assert pool_status(cluster)["capacity"] == {"slots": 3}
        assert pool_status(cluster)["conditions"][0]["lastTransitionTime"] > well
        cluster.pool(maxConcurrency=4)
        await asyncio.sleep(1.5)
        assert ready(pool_status(cluster)) == "True Accepted"
        assert pool_status(cluster)["capacity"] == {"slots": 4}


@in_virtual_time
async def test_an_object_that_was_never_right_is_as_if_it_were_not_there() -> None:
    cluster = Cluster()
    cluster.pool("broken", maxConcurrency=0)
    cluster.team("blue", members=7)
    async with cluster.operator():
        cluster.submit("a", pool="broken")
        await asyncio.sleep(3)
        for status in (pool_status(cluster, "broken"), team_status(cluster)):
            assert ready(status) == "False Invalid Stalled"
            assert "it is as if it were not there" in status["conditions"][0]["message"]
        assert pool_status(cluster, "broken")["pending"] == 1
        assert cluster.phase("a") == "PENDING PoolMissing"


# -- any history ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@in_virtual_time
async def test_after_any_history_it_is_what_counting_says(seed: int) -> None:
    cluster, random, teams = Cluster(), Random(seed), ("blue", "red", "green")
    cluster.pool(maxConcurrency=6)
    cluster.pool("other", maxConcurrency=2)
    for team in teams:
        cluster.team(team)
    live: set[str] = set()
    async with cluster.operator():
        for number in range(150):
            match random.choice(("submit", "submit", "start", "end", "cancel", "delete", "limit")):
                case "submit":
                    cluster.submit(
                        f"run-{number}", teamId=random.choice(teams), pool=random.choice(("default", "other"))
                    )
                    live.add(f"run-{number}")
                case "limit":
                    cluster.pool(maxConcurrency=random.choice((None, 1, 6)))
                case "start" if ready_to_start := pods_of(cluster, live, None):
                    cluster.starts(random.choice(ready_to_start))
                case "end" if running := pods_of(cluster, live, "Running"):
                    cluster.ends(random.choice(running))
                case "cancel" if live:
                    cluster.cancel(random.choice(sorted(live)))
                case "delete" if live:
                    name = random.choice(sorted(live))
                    live.remove(name)
                    cluster.api.delete("agentjobs", name)
            await asyncio.sleep(random.choice((0.01, 0.5, 3)))
        await asyncio.sleep(3)
        expected = {team: Counter[str]() for team in teams}
        for agentjob in cluster.api.objects["agentjobs"].values():
            expected[agentjob["spec"]["teamId"]][agentjob.get("status", {}).get("phase", "PENDING")] += 1
        orphans = {team: holding_orphans(cluster, team, live) for team in teams}
        for team in teams:
            told = team_status(cluster, team)
            holding = sum(expected[team][phase] for phase in ("SCHEDULED", "RUNNING", "CANCELING"))
            assert told["pending"] == expected[team]["PENDING"]
            assert told["running"] == holding + orphans[team]
        told_by_pools = [pool_status(cluster, name) for name in ("default", "other")]
        assert sum(pool["running"] for pool in told_by_pools) == sum(
            team_status(cluster, team)["running"] for team in teams
        )


def pods_of(cluster: Cluster, live: set[str], phase: str | None) -> list[str]:
    """Names of runs with a Job whose pod is in a phase; None for those without a pod."""
    pods = cluster.api.objects.get("pods", {})
    named = {job["metadata"]["ownerReferences"][0]["name"] for job in cluster.jobs()} & live
    return sorted(
        name
        for name in named
        if (pods.get(f"agents/{name}-pod") or {}).get("status", {}).get("phase") == phase
    )


def holding_orphans(cluster: Cluster, team: str, live: set[str]) -> int:
    """How many deleted runs of a team have left a Job that has not ended."""
    found = 0
    for job in cluster.jobs():
        if job["metadata"]["ownerReferences"][0]["name"] in live or "status" in job:
            continue
        decided = decision.read(job["metadata"]["annotations"]["agentjobs.dev/run"])
        found += decided is not None and decided.team == team
    return found

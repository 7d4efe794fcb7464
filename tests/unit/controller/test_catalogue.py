"""Pools and teams as administrators set them."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from agentjobs.controller.catalogue import Catalogue
from agentjobs.scheduling.model import TeamSettings
from agentjobs.scheduling.resources import Amounts, Bounds
from tests.unit.cluster.fake_api import JSON
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster, record


def named(name: str, *, uid: str = "", version: int = 0, created: str = "", **spec: Any) -> JSON:
    """Return an object; every version has its own generation, 0 has none and may be anything."""
    metadata = {"name": name, "uid": uid, "resourceVersion": str(version), "generation": version}
    return {"metadata": {**metadata, "creationTimestamp": created or None}, "spec": spec}


def test_an_edit_that_cannot_be_read_leaves_what_was() -> None:
    catalogue = Catalogue()
    catalogue.agentpools.stored(record(named("p", maxConcurrency=3)))
    catalogue.agentpools.stored(record(named("p", maxConcurrency="many")))
    catalogue.agentteams.stored(record(named("blue", teamId="team-blue", secrets=["agents/key"])))
    catalogue.agentteams.stored(record(named("blue", teamId=7)))
    assert catalogue.pools["p"].max_concurrency == 3
    assert catalogue.allowed_secrets("team-blue") == {"agents/key"}


def test_a_team_goes_by_its_id_and_by_its_name_without_one() -> None:
    catalogue = Catalogue()
    catalogue.agentpools.stored(record(named("p")))
    catalogue.agentteams.stored(record(named("blue")))
    assert catalogue.settings("p", None).admitted == frozenset({"blue"})
    catalogue.agentteams.stored(record(named("blue", teamId="other")))
    assert catalogue.settings("p", None).admitted == frozenset({"other"})
    assert catalogue.agentteams.deleted(record(named("blue")))
    assert not catalogue.agentteams.deleted(record(named("blue")))
    assert catalogue.settings("p", None).admitted == frozenset()
    catalogue.agentpools.stored(record(named("p", requireTeams=False)))
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
    catalogue.agentpools.stored(record(named("p", **spec)))
    assert catalogue.settings("p", None).capacity == capacity


def test_what_a_team_is_owed_in_a_pool() -> None:
    catalogue = Catalogue()
    catalogue.agentpools.stored(record(named("p", sharePercent=40)))
    owed = {"weight": 3, "guaranteed": {"slots": 2}, "limit": {"slots": 5, "gpuCount": 0}}
    catalogue.agentteams.stored(
        record(named("blue", pools={"p": owed, "other": {"criticalLimit": {"slots": 1}}}))
    )
    settings = catalogue.settings("p", {"node-1": Amounts(0, 1000)})
    assert (settings.share_percent, settings.nodes) == (40, {"node-1": Amounts(0, 1000)})
    assert settings.teams == {
        "blue": TeamSettings(3, Amounts(2), Bounds(slots=5, gpu_count=0), Bounds()),
    }


def test_what_was_deleted_under_a_name_changes_nothing_of_what_has_it_now() -> None:
    """A list tells of what is new before it makes up for a deletion, and a watch may be behind it."""
    catalogue = Catalogue()
    old = [record(named("p", uid="1", version=version, maxConcurrency=version)) for version in (1, 2)]
    new = record(named("p", uid="2", version=3, maxConcurrency=3))
    assert catalogue.agentpools.stored(old[0])
    assert catalogue.agentpools.stored(new)
    assert not catalogue.agentpools.stored(old[1])
    assert not catalogue.agentpools.deleted(old[1])
    assert catalogue.pools["p"].max_concurrency == 3
    assert catalogue.agentpools.deleted(new)
    assert not catalogue.agentpools.deleted(new)
    assert catalogue.pools == {}


def test_what_is_unreadable_has_nothing_of_another_object_by_its_name() -> None:
    catalogue = Catalogue()
    catalogue.agentpools.stored(record(named("p", uid="1", version=1)))
    catalogue.agentteams.stored(record(named("blue", uid="1", version=1)))
    catalogue.agentpools.stored(record(named("p", uid="2", version=2, maxConcurrency="many")))
    catalogue.agentteams.stored(record(named("blue", uid="2", version=2, teamId=7)))
    assert (catalogue.pools, catalogue.teams) == ({}, {})
    assert catalogue.agentpools.listed["p"].fault
    assert catalogue.agentteams.listed["blue"].fault


# -- one id, several AgentTeams ------------------------------------------------------------------------


def test_an_id_that_is_handed_on_is_never_lost() -> None:
    for order in itertools.permutations(("aaa", "bbb")):
        catalogue = Catalogue()
        catalogue.agentteams.stored(record(named("aaa", version=1, maxPending=1)))
        catalogue.agentteams.stored(record(named("bbb", version=2, teamId="blue", maxPending=2)))
        edits = {
            "aaa": record(named("aaa", version=4, teamId="blue", maxPending=3)),
            "bbb": record(named("bbb", version=3, maxPending=4)),
        }
        for name in order:
            catalogue.agentteams.stored(edits[name])
        assert {team: spec.max_pending for team, spec in catalogue.teams.items()} == {"blue": 3, "bbb": 4}
        assert catalogue.team_holders == {"blue": "aaa", "bbb": "bbb"}


def test_of_two_the_older_one_has_an_id_and_of_one_age_the_first_by_name() -> None:
    teams = [
        record(named("b", version=1, created="2026-03-02T12:00:01Z", teamId="blue", maxPending=1)),
        record(named("c", version=2, created="2026-03-02T12:00:00Z", teamId="blue", maxPending=2)),
        record(named("a", version=3, created="2026-03-02T12:00:01Z", teamId="blue", maxPending=3)),
    ]
    for order in itertools.permutations(teams):
        catalogue = Catalogue()
        for team in order:
            catalogue.agentteams.stored(team)
        assert catalogue.team_holders == {"blue": "c"}
        for holder, pending in (("c", 2), ("a", 3), ("b", 1)):
            assert (catalogue.team_holders["blue"], catalogue.teams["blue"].max_pending) == (holder, pending)
            catalogue.agentteams.moved.clear()
            catalogue.agentteams.deleted(next(team for team in teams if team.name == holder))
            assert catalogue.agentteams.moved == {team.name for team in teams} & catalogue.team_ids.keys()
        assert (catalogue.teams, catalogue.team_holders, catalogue.team_ids) == ({}, {}, {})


@in_virtual_time
async def test_one_of_two_with_one_id_is_told_so_and_takes_over_when_the_other_goes() -> None:
    cluster = Cluster()
    cluster.team("old", teamId="blue", maxPending=1)
    async with cluster.operator():
        await asyncio.sleep(2)
        cluster.team("new", teamId="blue", maxPending=2)
        cluster.submit("a")
        await asyncio.sleep(2)
        assert told(cluster, "old") == ("True", "Accepted", 1)
        assert told(cluster, "new") == ("False", "TeamIdTaken", 0)
        message = cluster.api.get("agentteams", "new")["status"]["conditions"][0]["message"]
        assert message.startswith('spec.teamId: "blue" is the id of AgentTeam old, which came first; ')
        assert cluster.loop.state.catalogue.teams["blue"].max_pending == 1
        cluster.api.delete("agentteams", "old")
        await asyncio.sleep(2)
        assert told(cluster, "new") == ("True", "Accepted", 1)
        assert cluster.loop.state.catalogue.teams["blue"].max_pending == 2


def told(cluster: Cluster, name: str) -> tuple[str, str, int]:
    """Return status and reason of `Ready` of an AgentTeam, and how many runs it tells of."""
    status = cluster.api.get("agentteams", name)["status"]
    ready = status["conditions"][0]
    return ready["status"], ready["reason"], status["pending"] + status["running"]

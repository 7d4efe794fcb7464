"""The status of pools and teams, as kubectl and GitOps tools see it."""

import itertools
from datetime import timedelta
from functools import partial

from tests.live.api import Object
from tests.live.audit import Write
from tests.live.lab import POOLS, TEAMS, Lab, unique
from tests.live.support import eventually

WITHIN = 2  # seconds in which a status is true


def team(lab: Lab, **spec: object) -> str:
    """A new AgentTeam; its name is its id."""
    name = unique("team")
    manifest = {"apiVersion": "agentjobs.dev/v1alpha1", "kind": "AgentTeam", "metadata": {"name": name}}
    lab.make(TEAMS, {**manifest, "spec": spec})
    return name


def pool_status(lab: Lab, name: str) -> Object:
    status: Object = lab.api.request("GET", f"{POOLS}/{name}")["status"]
    return status


def team_status(lab: Lab, name: str) -> Object:
    status: Object = lab.api.request("GET", f"{TEAMS}/{name}")["status"]
    return status


def told(lab: Lab, name: str) -> list[Write]:
    return [write for write in lab.audit.by_operator(name) if write.resource.endswith("s/status")]


def test_numbers_add_up_and_kubectl_shows_them(lab: Lab) -> None:
    pool, blue = lab.pool(maxConcurrency=4, sharePercent=50), team(lab)
    runs = [lab.submit(pool, teamId=blue, duration="1h") for _ in range(5)]
    lab.submit(pool, teamId=unique("other"), duration="1h")
    # Whatever the policy has decided, the numbers add up, and those of kubectl are the same.
    status = eventually(lambda: _settled(lab, pool, 6))
    eventually(lambda: _settled_team(lab, blue, 5))
    of_team = team_status(lab, blue)
    assert of_team["pools"][pool]["usage"]["slots"] == of_team["running"]
    assert of_team["pools"][pool]["share"] == 250 * of_team["running"]
    assert of_team["pools"][pool]["entitlement"] == {"slots": 2}
    assert status["capacity"] == {"slots": 4}
    lines = lab.cluster.kubectl("get", "agp", pool).splitlines()
    assert lines[0].split() == ["NAME", "SLOTS", "PENDING", "RUNNING", "STATUS", "AGE"]
    assert lines[1].split()[:5] == [pool, "4", str(status["pending"]), str(status["running"]), "Accepted"]
    lines = lab.cluster.kubectl("get", "agt", blue).splitlines()
    assert lines[1].split()[:4] == [blue, blue, str(of_team["pending"]), str(of_team["running"])]
    for run in runs:
        lab.api.patch(run.path, {"spec": {"cancel": True}})
    eventually(lambda: _settled_team(lab, blue, 0))


def _settled_team(lab: Lab, name: str, runs: int) -> bool:
    status = team_status(lab, name)
    return bool(status["pending"] + status["running"] == runs)


def _settled(lab: Lab, pool: str, runs: int) -> Object | None:
    status = pool_status(lab, pool)
    return status if status["pending"] + status["running"] == runs else None


def test_status_follows_its_runs_within_two_seconds(lab: Lab) -> None:
    """By the API server's own clock: from the create to the status that counts it."""
    pool, blue = lab.pool(hold=True), team(lab)
    for count in (1, 2, 3):
        run = lab.submit(pool, teamId=blue)
        eventually(partial(_settled_team, lab, blue, count))
        eventually(partial(_settled, lab, pool, count))
        created = next(w for w in lab.audit.writes() if w.what == "create agentjobs" and w.name == run.name)
        for name in (pool, blue):
            assert told(lab, name)[-1].answered - created.answered < timedelta(seconds=WITHIN)


def test_each_is_written_once_a_second_at_most(lab: Lab) -> None:
    pool, blue = lab.pool(maxConcurrency=2), team(lab)
    runs = [lab.submit(pool, teamId=blue, duration="100ms") for _ in range(60)]
    lab.all_end(runs, seconds=120)
    eventually(lambda: _settled(lab, pool, 0))
    eventually(lambda: _settled_team(lab, blue, 0))
    for name in (pool, blue):
        writes = told(lab, name)
        assert {write.code for write in writes} == {200}
        for earlier, later in itertools.pairwise(writes):
            assert later.received - earlier.received > timedelta(seconds=0.9)


def test_new_ones_are_ready_for_kubectl_wait(lab: Lab) -> None:
    pool, blue = lab.pool(), team(lab)
    lab.cluster.kubectl("wait", "--for=condition=Ready", f"agentpool/{pool}", "--timeout=10s")
    lab.cluster.kubectl("wait", "--for=condition=Ready", f"agentteam/{blue}", "--timeout=10s")
    lab.edit_pool(pool, hold=True)
    eventually(lambda: pool_status(lab, pool)["observedGeneration"] == 2)
    [ready] = pool_status(lab, pool)["conditions"]
    assert (ready["status"], ready["reason"], ready["observedGeneration"]) == ("True", "OnHold", 2)


def test_deleted_team_and_a_restart(lab: Lab) -> None:
    pool, blue, red = lab.pool(maxConcurrency=2), team(lab), team(lab)
    for name in (blue, red):
        lab.submit(pool, teamId=name, duration="1h").reaches("RUNNING")
    eventually(lambda: team_status(lab, blue)["running"] == 1)
    eventually(lambda: _settled(lab, pool, 2))
    lab.api.delete(f"{TEAMS}/{blue}")
    before = len(told(lab, red)), pool_status(lab, pool)
    lab.cluster.kill("operator")
    eventually(lab.cluster.operator.ready)
    # A new one finds everything as it would write it; what it does write, it writes of what has changed.
    lab.submit(pool, teamId=red).reaches("PENDING", "TeamShare")
    eventually(lambda: team_status(lab, red)["pending"] == 1)
    assert len(told(lab, red)) == before[0] + 1
    assert pool_status(lab, pool)["conditions"] == before[1]["conditions"]


# -- drain ---------------------------------------------------------------------------------------------


def test_drain(lab: Lab) -> None:
    pool = lab.pool(maxConcurrency=1)
    first, second = lab.submit(pool, duration="1h"), lab.submit(pool, duration="1h")
    last = lab.submit(pool)
    first.reaches("RUNNING")
    lab.edit_pool(pool, drain={"timeoutSeconds": 600})
    since = eventually(lambda: pool_status(lab, pool).get("drainingSince"))
    assert pool_status(lab, pool)["conditions"][0]["reason"] == "Draining"
    # What waits still starts.
    lab.api.patch(first.path, {"spec": {"cancel": True}})
    second.reaches("RUNNING")
    # Another operator knows since when, and that less time is left now.
    lab.cluster.kill("operator")
    eventually(partial(_drains_for, lab, pool, 1))
    assert second.reaches("CANCELED", "PoolDrained")["exitCode"] == 143
    status = last.reaches("CANCELED", "PoolDrained")
    assert "startedAt" not in status
    assert last.job() is None
    assert "cancel" not in last.get()["spec"]
    assert pool_status(lab, pool)["drainingSince"] == since
    eventually(lambda: pool_status(lab, pool)["conditions"][0]["reason"] == "Drained")
    lab.edit_pool(pool, drain=None)
    eventually(lambda: "drainingSince" not in pool_status(lab, pool))
    lab.submit(pool).reaches("SUCCEEDED")


def _drains_for(lab: Lab, pool: str, seconds: int) -> bool:
    """Change the timeout of a drain, once somebody is there to allow it."""
    lab.edit_pool(pool, drain={"timeoutSeconds": seconds})
    return True

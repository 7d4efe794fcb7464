"""Slots: who gets one, in which order, and what a run that waits is told."""

import itertools
from datetime import datetime, timedelta

import pytest

from tests.live.api import Object, RefusedError
from tests.live.lab import POOLS, TEAMS, Lab, unique
from tests.live.support import eventually


def test_order_is_class_then_creation(lab: Lab) -> None:
    pool = lab.pool(maxConcurrency=1)
    holder = lab.submit(pool, duration="1h")
    holder.reaches("RUNNING")
    classes = ["low", "default", "high", "critical"]
    runs = [lab.submit(pool, priority=name, duration="10ms") for name in classes * 2]
    for run, reason in ((runs[0], "NoFreeSlot"), (runs[4], "BehindOwn")):
        assert run.reaches("PENDING", reason)["jobId"]
    assert runs[3].reaches("PENDING", "NoFreeSlot")["message"] == "needs 1 slot; 1 of 1 are held"
    holder.delete()
    statuses = lab.all_end(runs, seconds=60)
    by_start = sorted(range(len(runs)), key=lambda index: str(statuses[index]["scheduledAt"]))
    assert by_start == [3, 7, 2, 6, 1, 5, 0, 4]
    # No slot is given away before the one who held it has ended.
    in_order = [statuses[index] for index in by_start]
    for former, latter in itertools.pairwise(in_order):
        assert former["completedAt"] <= latter["scheduledAt"]


def test_weights_of_the_pool_decide_the_order(lab: Lab) -> None:
    pool = lab.pool(maxConcurrency=1, hold=True, priorityWeights={"low": 0, "critical": 100})
    urgent, first = (lab.submit(pool, priority=name, duration="10ms") for name in ("critical", "low"))
    lab.edit_pool(pool, hold=False)
    statuses = lab.all_end([urgent, first], seconds=30)
    assert statuses[1]["scheduledAt"] < statuses[0]["scheduledAt"]


def test_raised_limit_admits_exactly_one_at_once(lab: Lab) -> None:
    pool = lab.pool(maxConcurrency=1)
    runs = [lab.submit(pool, duration="1h") for _ in range(3)]
    runs[0].reaches("RUNNING")
    runs[1].reaches("PENDING", "NoFreeSlot")
    lab.edit_pool(pool, maxConcurrency=2)
    status = runs[1].reaches("RUNNING")
    assert _scheduled(status) - _edited(lab, pool) < timedelta(seconds=5)
    # Who starts is decided in one look at the pool: a third start would be held by now.
    assert (_held(lab, pool), _pending(lab, pool)) == (2, 1)
    assert runs[2].job() is None


def test_lowered_limit_interrupts_nothing_and_holds_back_the_next(lab: Lab) -> None:
    pool = lab.pool(maxConcurrency=2)
    runs = [lab.submit(pool, duration="1h") for _ in range(2)]
    for run in runs:
        run.reaches("RUNNING")
    waiting = lab.submit(pool)
    lab.edit_pool(pool, maxConcurrency=1)
    told = waiting.reaches("PENDING", "NoFreeSlot")
    assert told["message"] == "needs 1 slot; 2 of 1 are held"
    runs[0].delete()
    assert eventually(lambda: _held(lab, pool) == 1)
    assert (runs[1].status["phase"], waiting.job()) == ("RUNNING", None)
    runs[1].delete()
    waiting.reaches("SUCCEEDED")


def test_no_limit(lab: Lab) -> None:
    pool = lab.pool(maxConcurrency=1)
    runs = [lab.submit(pool, duration="1h") for _ in range(6)]
    runs[0].reaches("RUNNING")
    lab.edit_pool(pool, maxConcurrency=None)
    for run in runs:
        run.reaches("RUNNING")


@pytest.mark.parametrize("limit", [0, -1, 1.5, "2", True])
def test_a_limit_that_is_no_number_of_slots_is_refused(lab: Lab, limit: object) -> None:
    pool = lab.pool(maxConcurrency=1)
    holder, waiting = lab.submit(pool, duration="1h"), lab.submit(pool)
    holder.reaches("RUNNING")
    with pytest.raises(RefusedError, match="maxConcurrency"):
        lab.edit_pool(pool, maxConcurrency=limit)
    assert lab.api.request("GET", f"{POOLS}/{pool}")["spec"]["maxConcurrency"] == 1
    assert (holder.status["phase"], waiting.job()) == ("RUNNING", None)


def test_raised_limit_of_a_team_admits_at_once(lab: Lab) -> None:
    pool, team = lab.pool(maxConcurrency=9), unique("team")
    lab.make(TEAMS, {**_named("AgentTeam", team), "spec": {"pools": {pool: {"limit": {"slots": 1}}}}})
    runs = [lab.submit(pool, teamId=team, duration="1h") for _ in range(3)]
    runs[0].reaches("RUNNING")
    runs[1].reaches("PENDING", "TeamLimit")
    lab.api.patch(f"{TEAMS}/{team}", {"spec": {"pools": {pool: {"limit": {"slots": 2}}}}})
    runs[1].reaches("RUNNING")
    lab.api.patch(f"{TEAMS}/{team}", {"spec": {"pools": None}})
    runs[2].reaches("RUNNING")


def test_envelope_of_fixed_capacity(lab: Lab) -> None:
    pool = lab.pool(capacity={"fixed": {"cpuMillicores": 2000, "memoryMb": 4096, "gpuCount": 1}})
    first = lab.submit(
        pool, duration="1h", resources={"cpuMillicores": 1500, "memoryMb": 1024, "gpuCount": 1}
    )
    first.reaches("RUNNING")
    processor = lab.submit(pool, duration="1h", resources={"cpuMillicores": 501, "memoryMb": 128})
    assert processor.reaches("PENDING", "InsufficientCPU")["message"] == (
        "needs 501 millicores of CPU; 1500 of 2000 are held"
    )
    # It fits, and does not overtake one that came first and does not.
    small = lab.submit(pool, duration="1h", resources={"cpuMillicores": 100, "memoryMb": 128})
    small.reaches("PENDING", "BehindOwn")
    processor.delete()
    small.reaches("RUNNING")
    memory = lab.submit(pool, resources={"cpuMillicores": 100, "memoryMb": 4096 - 1024 - 128 + 1})
    memory.reaches("PENDING", "InsufficientMemory")
    memory.delete()
    gpu = lab.submit(pool, resources={"cpuMillicores": 100, "memoryMb": 128, "gpuCount": 1})
    gpu.reaches("PENDING", "InsufficientGPU")
    first.delete()
    gpu.reaches("SUCCEEDED")


def test_hold(lab: Lab) -> None:
    pool = lab.pool(hold=True)
    run = lab.submit(pool)
    assert run.reaches("PENDING", "PoolOnHold")["jobId"]
    lab.edit_pool(pool, hold=False)
    run.reaches("SUCCEEDED")


def test_pool_that_does_not_exist_yet(lab: Lab) -> None:
    pool, team = unique("later"), unique("team")
    lab.team(team)
    eventually(lambda: lab.accepts(pool, teamId=team))
    run = lab.submit(pool, teamId=team)
    status = run.reaches("PENDING", "PoolMissing")
    assert status["jobId"]
    assert pool in status["message"]
    [told] = eventually(lambda: [w for w in lab.audit.by_operator(run.name) if w.phase == "PENDING"])
    waited = told.received - datetime.fromisoformat(status["createdAt"])
    assert timedelta(seconds=2) <= waited < timedelta(seconds=10)
    lab.make(POOLS, {**_named("AgentPool", pool), "spec": {"requireTeams": False}})
    run.reaches("SUCCEEDED")


def test_team_that_vanishes_while_its_runs_wait(lab: Lab) -> None:
    pool = lab.pool(requireTeams=True, hold=True)
    # 64 characters, and some that no label may hold.
    team = unique("a/b ü") + " "
    team += "c" * (64 - len(team))
    with pytest.raises(RefusedError, match="has no AgentTeam"):
        lab.submit(pool, teamId=team)
    teams = (team, unique("nobody"))
    paths = [lab.team(each) for each in teams]
    eventually(lambda: all(lab.accepts(pool, teamId=each) for each in teams))
    run, other = (lab.submit(pool, teamId=each) for each in teams)
    for path in paths:
        lab.api.delete(path)
    eventually(lambda: not any(lab.accepts(pool, teamId=each) for each in teams))
    lab.edit_pool(pool, hold=False)
    assert repr(team) in run.reaches("PENDING", "TeamMissing")["message"]
    lab.team(team)
    run.reaches("SUCCEEDED")
    # The one that is shut out came later but would not have stood in the way either.
    assert other.reaches("PENDING", "TeamMissing")["observedGeneration"] == 1


def test_priority_changed_while_it_waits(lab: Lab) -> None:
    pool = lab.pool(maxConcurrency=1, hold=True)
    first, second = (lab.submit(pool, duration="10ms") for _ in range(2))
    lab.api.patch(second.path, {"spec": {"priority": "critical"}})
    second.reaches("PENDING", "PoolOnHold")
    lab.edit_pool(pool, hold=False)
    statuses = lab.all_end([first, second], seconds=30)
    assert statuses[1]["scheduledAt"] < statuses[0]["scheduledAt"]
    assert statuses[1]["observedGeneration"] == 2


def _scheduled(status: Object) -> datetime:
    return datetime.fromisoformat(status["scheduledAt"])


def _edited(lab: Lab, pool: str) -> datetime:
    """When the pool was edited last."""
    return [write for write in lab.audit.writes() if write.name == pool and write.verb == "patch"][
        -1
    ].received


def _held(lab: Lab, pool: str) -> float | None:
    return lab.metric("agentjobs_held_slots", pool=pool)


def _pending(lab: Lab, pool: str) -> float | None:
    return lab.metric("agentjobs_pending_runs", pool=pool)


def _named(kind: str, name: str) -> Object:
    return {"apiVersion": "agentjobs.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}

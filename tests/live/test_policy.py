"""The policy in the operator: nodes, a reservation and its promise, holes, shares, on a real API server."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from functools import partial

import pytest

from tests.live.api import Object
from tests.live.lab import Lab, unique
from tests.live.support import eventually

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
SMALL = ("small-1", "small-2", "small-3")
CPU_OF_A_NODE = 4000


@pytest.fixture(scope="module", autouse=True)
def small_nodes(lab: Lab) -> Iterator[None]:
    """Three simulated nodes of four cores; a foreign pod takes three cores of the first."""
    for name in SMALL:
        labels = {"type": "simulated", "size": "small", "kubernetes.io/hostname": name}
        lab.make(NODES, {"metadata": {"name": name, "labels": labels}})
        eventually(partial(ready, lab, name))
        amounts = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "100"}
        lab.api.patch(f"{NODES}/{name}/status", {"status": {"allocatable": amounts, "capacity": amounts}})
    foreign = {
        "metadata": {"name": "foreign", "annotations": {"sim.agentjobs.dev/duration": "1000s"}},
        "spec": {
            "nodeName": "small-1",
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "agent",
                    "image": "other:1",
                    "resources": {"requests": {"cpu": "3"}},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }
    lab.make(PODS, foreign)
    yield
    lab.api.delete(f"{PODS}/foreign")


def ready(lab: Lab, name: str) -> bool:
    conditions = (lab.api.get(f"{NODES}/{name}") or {}).get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def cores(count: int, timeout: int = 30) -> Object:
    return {"cpuMillicores": count * 1000, "memoryMb": 128, "timeoutSeconds": timeout}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_a_large_run_is_promised_its_start_and_others_fill_the_gaps(lab: Lab) -> None:
    pool = lab.pool(
        capacity={"nodes": {"matchLabels": {"size": "small"}}}, startTimeoutSeconds=60, sharePercent=100
    )
    # Three cores on each of the two nodes that can take them: one is left on every node.
    first = [lab.submit(pool, teamId="blue", duration="12s", resources=cores(3, 600)) for _ in range(2)]
    for run in first:
        run.reaches("RUNNING")
    assert {run.status["nodeName"] for run in first} == {"small-2", "small-3"}

    # Three cores are free, on three nodes: room in sum, and on none of them.
    large = lab.submit(pool, teamId="red", priority="high", duration="1s", resources=cores(2))
    waiting = large.reaches("PENDING", "NoNodeFits")
    promised = moment(eventually(lambda: large.status.get("startsBefore")))
    assert "2000 millicores of CPU" in waiting["message"]

    # A run of one core surely ends before: it fills the gap, and goes on while the large one waits.
    filler = lab.submit(pool, teamId="blue", priority="default", duration="1s", resources=cores(1))
    started = moment(filler.reaches("SUCCEEDED")["scheduledAt"])

    status = large.reaches("SUCCEEDED", seconds=60)
    assert moment(status["createdAt"]) < started < moment(status["scheduledAt"]) <= promised
    assert "startsBefore" not in status
    assert lab.metric("agentjobs_promises_total", pool=pool, outcome="Kept") == 1


def test_a_run_that_does_not_start_in_its_hole_returns_to_its_place(lab: Lab) -> None:
    pool = lab.pool(capacity={"fixed": {"cpuMillicores": 4000}}, sharePercent=100, startTimeoutSeconds=60)
    lab.submit(pool, duration="80s", resources=cores(2, timeout=95)).reaches("RUNNING")
    large = lab.submit(pool, priority="high", duration="1s", resources=cores(3))
    eventually(lambda: large.status.get("startsBefore"))

    # Two cores are free until then. The next run gets them, for as long as it surely ends in time; but no
    # node ever takes its pod.
    lab.edit_pool(pool, sandbox={"nodeSelector": {"no": "such"}})
    late = lab.submit(pool, duration="1s", resources=cores(2))
    late.reaches("SCHEDULED")
    status = late.reaches("PENDING", "BackfillMissed", seconds=60)
    assert [attempt["reason"] for attempt in status["attempts"]] == ["BackfillMissed"]
    assert not {"k8sJobName", "scheduledAt", "podName"} & status.keys()
    eventually(lambda: late.job() is None and not late.pods())


def test_a_burst_does_not_take_the_last_slots(lab: Lab) -> None:
    """Test 20 of the compatibility list: team blue floods with critical runs, red's default one starts."""
    pool = lab.pool(maxConcurrency=4)
    red = unique("red")
    lab.submit(pool, teamId=red).reaches("SUCCEEDED")  # both teams are known from here on
    flood = [lab.submit(pool, teamId="blue", priority="critical", duration="60s") for _ in range(6)]
    eventually(lambda: sum(s["phase"] == "RUNNING" for s in lab.statuses(flood)) == 3)
    run = lab.submit(pool, teamId=red, duration="1s")
    run.reaches("SUCCEEDED")
    phases = [status["phase"] for status in lab.statuses(flood)]
    assert phases.count("RUNNING") == 3
    parked = flood[3].reaches("PENDING", "TeamShare")
    assert "its share is 1" in parked["message"]


def test_explain_says_why_a_run_waits_and_until_when(lab: Lab) -> None:
    pool = lab.pool(maxConcurrency=1)
    lab.submit(pool, teamId="blue", duration="1h", resources=cores(1, 600)).reaches("RUNNING")
    first, second = (lab.submit(pool, teamId="blue", resources=cores(1)) for _ in range(2))
    promised = eventually(lambda: first.status.get("startsBefore"))
    said = _explained(lab, first.name).splitlines()
    assert said[0] == f"default/{first.name} of team blue, default, pool {pool} waits"
    assert said[1] == "  why     NoFreeSlot: needs 1 slot; 1 of 1 are held"
    assert said[-1] == f"  starts  by {promised} at the latest"
    said = _explained(lab, second.name).splitlines()
    assert said[1] == "  why     BehindOwn: 1 older run goes first, of its own team and class"
    assert said[3] == "  place   2 in its team and class, 2 of all if teams take turns by their weights"
    assert _explained(lab, "nobody") == "agentjobs: there is no AgentJob default/nobody\n"


def _explained(lab: Lab, name: str) -> str:
    command = [sys.executable, "-m", "agentjobs.cli.main", "explain", name]
    environment = {**os.environ, **lab.cluster.exports}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr

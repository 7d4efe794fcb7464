"""The API server and etcd fail under a stream of runs: the operator recovers unaided.

Where they are away for longer than the Lease can wait its process ends, and is started again.
"""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from random import Random

import pytest

from deploy.local import controlplane
from tests.live.api import Object
from tests.live.lab import Lab
from tests.live.stream import after_writes, assert_once, stream
from tests.live.support import eventually


@pytest.mark.parametrize("component", ["kube-apiserver", "etcd"])
def test_killed_and_restarted(lab: Lab, component: str, capsys: pytest.CaptureFixture[str]) -> None:
    with survived(lab), stream(lab, Random(1)) as runs:
        after_writes(lab, runs, 40)
        lab.cluster.kill(component)
        lab.cluster.restart(component)
        back = wait_until_back(lab)
        seconds = recovery(lab, back)
        with capsys.disabled():
            print(f"\n{component} killed: the operator wrote again {seconds:.1f} s after its return")
    assert_once(lab, runs, outage=True)


@pytest.mark.parametrize("component", ["kube-apiserver", "etcd"])
def test_stopped_until_the_lease_is_lost(
    lab: Lab, component: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with survived(lab), stream(lab, Random(2)) as runs:
        after_writes(lab, runs, 40)
        leader = lab.cluster.pid("operator")
        with paused(lab, component):
            eventually(lambda: (process := lab.cluster.process("operator")) and process.pid != leader)
        back = wait_until_back(lab)
        seconds = recovery(lab, back)
        with capsys.disabled():
            print(f"\n{component} stopped: the operator wrote again {seconds:.1f} s after its return")
    assert_once(lab, runs, outage=True)


def test_what_was_deleted_while_nobody_watched_is_gone(lab: Lab) -> None:
    """After a gap that no watch can bridge a new list makes up for the deletions."""
    pool = lab.pool(maxConcurrency=2)
    holders = [lab.submit(pool, duration="1h") for _ in range(2)]
    for run in holders:
        run.reaches("RUNNING")
    waiting = [lab.submit(pool, duration="1h") for _ in range(2)]
    waiting[1].reaches("PENDING", "BehindOwn")
    with survived(lab):
        with paused(lab, "operator"):
            holders[0].delete()  # it goes with its Job and its pod
            waiting[0].delete()
            eventually(lambda: not holders[0].pods())
            _compact(lab)
            lab.cluster.restart("kube-apiserver")
            wait_until_back(lab)
            # The new server's memory begins here: what was watched from is older than anything it has.
            lab.namespace()
        waiting[1].reaches("RUNNING")
        eventually(lambda: lab.metric("agentjobs_held_slots", pool=pool) == 2)
        last = eventually(lambda: lab.submit(pool))
        eventually(lambda: lab.metric("agentjobs_pending_runs", pool=pool) == 1)
        waiting[1].delete()
        last.reaches("SUCCEEDED")
        assert holders[1].status["phase"] == "RUNNING"


def test_operator_stopped_for_a_while_catches_up(lab: Lab) -> None:
    with survived(lab), stream(lab, Random(3)) as runs:
        after_writes(lab, runs, 40)
        with paused(lab, "operator"):
            # Nothing new is let in, and what ran comes to its end unseen.
            eventually(lambda: {pod["status"]["phase"] for pod in pods_of(lab, runs.pool)} == {"Succeeded"})
    assert_once(lab, runs)


def pods_of(lab: Lab, pool: str) -> list[Object]:
    """The pods of a pool's runs."""
    return lab.api.items(f"/api/v1/namespaces/default/pods?labelSelector=agentjobs.dev/pool={pool}")


@contextmanager
def survived(lab: Lab) -> Iterator[None]:
    """Whatever happens in the block, the operator leads again after it."""
    yield
    eventually(lab.cluster.operator.ready)


@contextmanager
def paused(lab: Lab, component: str) -> Iterator[None]:
    """Stop a component (SIGSTOP) while the block runs."""
    lab.cluster.pause(component)
    try:
        yield
    finally:
        lab.cluster.resume(component)


def wait_until_back(lab: Lab) -> datetime:
    """Wait until the API server is well, and return when it was."""
    controlplane.wait_ready(lab.cluster.cluster)
    back = datetime.now(UTC)
    eventually(lambda: lab.api.request("GET", "/readyz"))  # the lab's own connection was to the former server
    # The simulator gives up what it could not write while etcd was away, as no kubelet would.
    lab.cluster.restart("kwok-controller")
    return back


def recovery(lab: Lab, back: datetime) -> float:
    """Wait for the operator's first write after that moment, and return how many seconds later it was."""
    writes = eventually(lambda: [w for w in lab.audit.by_operator() if w.done and w.answered > back])
    return (writes[0].answered - back).total_seconds()


def _compact(lab: Lab) -> None:
    """Make etcd forget every version but the last."""
    arguments = controlplane.commands(lab.cluster.cluster)["etcd"]["args"]
    [url] = [a.partition("=")[2] for a in arguments if a.startswith("--advertise-client-urls=")]
    header = _etcd(url, "kv/range", {"key": "AA=="})["header"]
    assert isinstance(header, dict)
    _etcd(url, "kv/compaction", {"revision": header["revision"]})


def _etcd(url: str, call: str, body: dict[str, str]) -> dict[str, object]:
    request = urllib.request.Request(f"{url}/v3/{call}", json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        found: dict[str, object] = json.load(answer)
    return found

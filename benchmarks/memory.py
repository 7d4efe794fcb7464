"""What the operator takes with few and with very many AgentJobs stored: memory, start-up, CPU at rest."""

from __future__ import annotations

import asyncio
import time
import urllib.request

from benchmarks.client import AGENTJOBS, Client, agentjob, ended, run
from benchmarks.cluster import running, set_pool
from benchmarks.etcd import Etcd, copies
from benchmarks.report import Report
from benchmarks.usage import Meter, cpu_seconds, memory_mb
from deploy.local import controlplane
from deploy.local.errors import LocalError
from deploy.local.local import LocalCluster

STORED = (0, 5_000, 50_000)
PENDING = 1_000
REST_SECONDS = 35.0  # longer than the pause in which every waiting run is looked at again
CALM_SECONDS = 5.0
PATIENCE_SECONDS = 240.0
# A list may go past a watch cache that is not full yet, a watch may not: it is refused.
_NO_EVENTS = "watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name%3Dnone"


def measure() -> Report:
    """Fill the cluster step by step, and start the operator anew at each."""
    report = Report(
        "memory",
        f"Of the AgentJobs stored, {PENDING:,} wait in a pool on hold and the rest has ended; they are "
        "copies of real ones, put into etcd. The operator is started anew; once it is ready and calm its "
        f"memory is read, then its CPU over {REST_SECONDS:.0f} s in which nothing happens.",
    )
    with running(report.name) as cluster:
        finished = _finished(cluster)
        set_pool(cluster, hold=True)
        waiting = _waiting(cluster)
        known = 0
        for stored in STORED:
            cluster.stop_operator()
            _fill(cluster, known, stored, finished, waiting)
            known = stored
            _start(cluster, report, stored)
    return report


def _fill(cluster: LocalCluster, known: int, wanted: int, finished: str, waiting: str) -> None:
    """Add to the `known` stored AgentJobs until there are `wanted`, the waiting ones first."""
    if wanted == known:
        return
    # Its watch cache would take long to follow so many events at once; a new one lists.
    cluster.kill("kube-apiserver")
    etcd = Etcd(cluster.cluster)
    if not known:
        etcd.put(copies(waiting, "waiting", PENDING))
    etcd.put(copies(finished, f"of-{wanted}", wanted - max(known, PENDING)))
    cluster.restart("kube-apiserver")
    controlplane.wait_ready(cluster.cluster)
    run(_listed(cluster))


async def _listed(cluster: LocalCluster) -> None:
    """Return when the API server has all AgentJobs in its watch cache, as one that runs for long has."""
    async with asyncio.timeout(PATIENCE_SECONDS), Client(cluster.cluster) as client:
        while True:
            try:
                await client.send("GET", f"{AGENTJOBS}?{_NO_EVENTS}")
            except RuntimeError:
                await asyncio.sleep(0.5)
            else:
                return


def _start(cluster: LocalCluster, report: Report, stored: int) -> None:
    label = f"{stored:,} stored"
    began = time.monotonic()
    try:
        cluster.start_operator()
    except LocalError:  # it waits half a minute: on a busy machine fifty thousand may take longer
        cluster.operator.wait_ready(PATIENCE_SECONDS)
    ready, pid = time.monotonic() - began, cluster.pid("operator")
    spent = cpu_seconds(pid)
    _calm(cluster)
    resident, most = memory_mb(pid)
    at_rest, meter = cpu_seconds(pid), Meter(cluster)
    time.sleep(REST_SECONDS)
    share = 100 * (cpu_seconds(pid) - at_rest) / REST_SECONDS
    report.noise.append(meter.read().others)
    report.add(f"{label}: resident memory", [resident], "MB", goal=200)
    report.add(f"{label}: resident memory at its most", [most], "MB")
    report.add(f"{label}: start until ready", [ready], "s")
    report.add(f"{label}: CPU until ready", [spent], "s")
    report.add(f"{label}: CPU at rest", [share], "% of a core")


def _finished(cluster: LocalCluster) -> str:
    """Return the stored JSON of a run that ended well."""

    async def live() -> None:
        async with Client(cluster.cluster) as client:
            await client.send("POST", AGENTJOBS, agentjob("finished-model", duration="10ms"))
            ends = client.ends()
            await ended(ends, ["finished-model"])
            await ends.aclose()

    run(live())
    return Etcd(cluster.cluster).get("finished-model")


def _waiting(cluster: LocalCluster) -> str:
    """Return the stored JSON of a run that has just been created."""

    async def submit() -> None:
        async with Client(cluster.cluster) as client:
            await client.send("POST", AGENTJOBS, agentjob("waiting-model"))

    run(submit())
    return Etcd(cluster.cluster).get("waiting-model")


def _calm(cluster: LocalCluster) -> None:
    """Wait until the operator has written nothing for a while: every waiting run is told why it waits."""
    writes, since = _writes(cluster), time.monotonic()
    while time.monotonic() - since < CALM_SECONDS:
        time.sleep(0.5)
        now = _writes(cluster)
        if now != writes:
            writes, since = now, time.monotonic()


def _writes(cluster: LocalCluster) -> float:
    with urllib.request.urlopen(f"{cluster.operator.url}/metrics", timeout=10) as answer:  # noqa: S310
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("agentjobs_api_writes_total"))

"""What the webhook adds to a create, on a real API server: with it and without it, in turns."""

from __future__ import annotations

import statistics
import time

from benchmarks.client import AGENTJOBS, Client, agentjob, run
from benchmarks.cluster import running, set_pool
from benchmarks.report import Report
from benchmarks.usage import Meter
from deploy.local import admission
from deploy.local.kubectl import retry
from deploy.local.local import LocalCluster

CREATES, TURNS = 200, 5


def measure() -> Report:
    """Create AgentJobs one after the other, in a pool on hold, so that nothing else is written meanwhile."""
    report = Report(
        "creates",
        f"{CREATES} AgentJobs created one after the other over one connection, in a pool on hold; in turns "
        f"with the webhook and without it, {TURNS} times each; median and range of the medians.",
    )
    asked, alone = list[float](), list[float]()
    with running(report.name) as cluster:
        set_pool(cluster, hold=True)
        meter = Meter(cluster)
        for turn in range(TURNS):
            asked.append(run(_create(cluster, f"asked-{turn}")))
            admission.remove(cluster.kubectl)
            alone.append(run(_create(cluster, f"alone-{turn}")))
            _ask_again(cluster)
        report.noise.append(meter.read().others)
    report.add("with the webhook, p50", asked, "ms")
    report.add("without it, p50", alone, "ms")
    report.add("ratio", [mine / bare for mine, bare in zip(asked, alone, strict=True)], "times")
    return report


def _ask_again(cluster: LocalCluster) -> None:
    """Have creates reviewed again, and return when the leader has led the API server to itself."""
    admission.install(cluster.kubectl, cluster.operator.admission_address)
    probe = '{"apiVersion": "agentjobs.dev/v1alpha1", "kind": "AgentPool", "metadata": {"name": "probe"}}'
    retry(lambda: cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=probe), seconds=30)


async def _create(cluster: LocalCluster, name: str) -> float:
    """Return the median of the milliseconds that a create takes."""
    delays = []
    async with Client(cluster.cluster) as client:
        await client.send("POST", AGENTJOBS, agentjob(f"{name}-first"))  # the connection
        for number in range(CREATES):
            body, began = agentjob(f"{name}-{number}"), time.perf_counter()
            await client.send("POST", AGENTJOBS, body)
            delays.append((time.perf_counter() - began) * 1000)
    return statistics.median(delays)

"""How long an idle operator takes from a stored AgentJob to its Job."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from benchmarks import audit
from benchmarks.audit import AuditLog
from benchmarks.client import AGENTJOBS, Client, agentjob, ended, run
from benchmarks.cluster import running
from benchmarks.report import Report
from benchmarks.usage import Meter
from deploy.local.local import LocalCluster

RUNS = 150


def measure() -> Report:
    """Submit one run after the other, each when the one before has ended."""
    report = Report(
        "latency",
        f"{RUNS} runs one after the other, each submitted when the one before has ended (simulated nodes, "
        "Job controller on). From the answer to the create to the answer to the Job's create, by the API "
        "server's audit log.",
    )
    with running(report.name) as cluster:
        delays = sorted(run(_submit(cluster, report)))
    assert len(delays) == RUNS
    report.add("submit to Job created, p50", [delays[RUNS // 2]], "ms", goal=50)
    report.add("submit to Job created, p99", [delays[RUNS * 99 // 100]], "ms")
    report.add("submit to Job created, longest", [delays[-1]], "ms")
    return report


async def _submit(cluster: LocalCluster, report: Report) -> list[float]:
    async with Client(cluster.cluster) as client:
        ends = client.ends()
        await _one(client, ends, "warm-up")  # connections, and the namespace's NetworkPolicy
        log, meter = AuditLog(cluster.audit_log), Meter(cluster)
        for number in range(RUNS):
            await _one(client, ends, f"run-{number:03}")
        report.noise.append(meter.read().others)
        await ends.aclose()
    return _delays(log)


async def _one(client: Client, ends: AsyncGenerator[str], name: str) -> None:
    await client.send("POST", AGENTJOBS, agentjob(name, duration="10ms"))
    await ended(ends, [name])


def _delays(log: AuditLog) -> list[float]:
    """Return for each run the milliseconds between the two answers."""
    entries = log.new_entries()
    submitted = {entry.name: entry.answered for entry in audit.of(entries, "create", "agentjobs")}
    jobs = audit.of(entries, "create", "jobs")
    return [(job.answered - submitted[audit.run_of(job.name)]) / 1000 for job in jobs]

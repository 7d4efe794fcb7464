"""Runs per second from create to SCHEDULED stored, beside what the bare API server can do at best."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from benchmarks import audit, bare
from benchmarks.audit import AuditLog, Entry
from benchmarks.client import AGENTJOBS, IN_FLIGHT, Client, agentjob, each, run
from benchmarks.cluster import running, set_pool
from benchmarks.report import Report
from benchmarks.usage import SELF, Meter, Usage
from deploy.local.local import LocalCluster

RUNS = 2000
PAIRS = 3
PATIENCE_SECONDS = 120
_STATUS = re.compile(
    rb'"resource":"agentjobs","namespace":"[^"]*","name":"([^"]*)"[^}]*"subresource":"status"'
)
# What a run costs: the three that every installation has for it. The other two only watch.
_COUNTED = ("operator", "kube-apiserver", "etcd")


@dataclass(frozen=True, slots=True)
class Round:
    """One measurement: runs per second, and CPU milliseconds a run by process."""

    rate: float
    cpu_ms: dict[str, float]
    others: float

    @property
    def total_ms(self) -> float:
        """CPU milliseconds a run of all processes, the load generator's among them."""
        return sum(self.cpu_ms.values())


def measure() -> Report:
    """Measure the operator and the bare loop in turns on the same API server."""
    report = Report(
        "throughput",
        f"{RUNS} AgentJobs created over {IN_FLIGHT} connections at once, pool unlimited, Job controller off. "
        "From the first create to the last SCHEDULED stored, by the audit log. Bare: the same creates, the "
        "same Job and the same status, written by a loop without any policy or watch. In turns, "
        f"{PAIRS} times each, the operator stopped while the bare loop works; median and range.",
    )
    with running(report.name, job_controller=False) as cluster:
        set_pool(cluster, maxConcurrency=None)
        templates = run(_warm_up(cluster))
        operators, bares = [], []
        for number in range(PAIRS):
            cluster.start_operator()
            operators.append(_round(cluster, f"run-{number}", None))
            cluster.stop_operator()
            bares.append(_round(cluster, f"bare-{number}", templates))
    _tell(report, operators, bares)
    return report


def _tell(report: Report, operators: list[Round], bares: list[Round]) -> None:
    shares = [100 * mine.rate / theirs.rate for mine, theirs in zip(operators, bares, strict=True)]
    report.add("operator", [found.rate for found in operators], "runs/s")
    report.add("bare loop", [found.rate for found in bares], "runs/s")
    report.add("operator as a share of bare", shares, "%", goal=80, at_least=True)
    # What others take from the machine changes the rates, and hardly the CPU time.
    shares = [100 * theirs.total_ms / mine.total_ms for mine, theirs in zip(operators, bares, strict=True)]
    report.add("the same by CPU time of all processes", shares, "%")
    sums = [sum(found.cpu_ms[name] for name in _COUNTED) for found in operators]
    report.add("CPU a run: operator, API server and etcd", sums, "ms", goal=9)
    for name in (*_COUNTED, "kube-controller-manager", "kube-scheduler", SELF):
        report.add(f"CPU a run: {name}", [found.cpu_ms[name] for found in operators], "ms")
    for name in ("kube-apiserver", "etcd", SELF):
        report.add(f"CPU a run, bare: {name}", [found.cpu_ms[name] for found in bares], "ms")
    report.noise += [found.others for found in (*operators, *bares)]


async def _warm_up(cluster: LocalCluster) -> bare.Templates:
    """Let the operator schedule one run, and take its Job and status as the models of the bare writes."""
    log = AuditLog(cluster.audit_log)
    async with Client(cluster.cluster) as client:
        await client.send("POST", AGENTJOBS, agentjob("model"))
        await _scheduled(log, 1)
        return await bare.templates(client, "model")


def _round(cluster: LocalCluster, prefix: str, templates: bare.Templates | None) -> Round:
    names = [f"{prefix}-{number:04}" for number in range(RUNS)]
    log, meter = AuditLog(cluster.audit_log), Meter(cluster)
    if templates is None:
        lines = run(_submit(cluster, names, log))
    else:
        run(bare.work(cluster, names, templates))
        lines = log.new_bytes()
    used = meter.read()
    return Round(_rate(audit.parse(lines)), _per_run(used), used.others)


async def _submit(cluster: LocalCluster, names: list[str], log: AuditLog) -> bytes:
    async with Client(cluster.cluster) as client:
        await each(names, lambda name: client.send("POST", AGENTJOBS, agentjob(name)))
    return await _scheduled(log, len(names))


async def _scheduled(log: AuditLog, runs: int) -> bytes:
    """Return the log's new lines once so many runs have a status; parsing comes later, it costs."""
    lines = b""
    names: set[bytes] = set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(names) < runs:
            await asyncio.sleep(0.1)
            added = log.new_bytes()
            names.update(_STATUS.findall(added))
            lines += added
    return lines


def _rate(entries: list[Entry]) -> float:
    created = audit.of(entries, "create", "agentjobs")
    told = audit.of(entries, "patch", "agentjobs/status")
    assert len(created) == len({entry.name for entry in told}) == RUNS
    first, last = min(entry.received for entry in created), max(entry.answered for entry in told)
    return RUNS / ((last - first) / 1e6)


def _per_run(used: Usage) -> dict[str, float]:
    return {name: seconds * 1000 / RUNS for name, seconds in used.seconds.items()}

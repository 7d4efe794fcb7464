"""How many API writes a whole life costs, counted in the audit log: idle, and under load."""

from __future__ import annotations

from collections import Counter

from benchmarks.audit import AuditLog, Entry
from benchmarks.client import AGENTJOBS, Client, agentjob, each, ended, run
from benchmarks.cluster import running, set_pool
from benchmarks.report import Report
from benchmarks.usage import Meter
from deploy.local.local import LocalCluster

IDLE_RUNS = 20
LOADED_RUNS = 300
SLOTS = 50
# What is written once a second at most, however many runs there are.
BY_TIME = ("agentpools/status", "agentteams/status")


def measure() -> Report:
    """Count over lives that do not overlap, then over crowds."""
    report = Report(
        "writes",
        "The operator's API writes over whole lives of one second (simulated nodes, Job controller on), "
        f"failed ones included, from the audit log. Idle: {IDLE_RUNS} runs one after the other. Under load: "
        f"{LOADED_RUNS} submitted at once to an unlimited pool. In line: as many to a pool of {SLOTS} slots, "
        "where a run that waits longer than two seconds is also told why.",
    )
    with running(report.name) as cluster:
        run(_one_by_one(cluster, ["warm-up"]))  # the namespace's NetworkPolicy
        log, meter = AuditLog(cluster.audit_log), Meter(cluster)
        run(_one_by_one(cluster, _names("idle", IDLE_RUNS)))
        _count(report, log, meter, "idle", IDLE_RUNS, goal=4)
        for label, slots, goal in (("under load", None, 3), ("in line", SLOTS, None)):
            set_pool(cluster, maxConcurrency=slots)
            log, meter = AuditLog(cluster.audit_log), Meter(cluster)
            run(_together(cluster, _names(label.replace(" ", "-"), LOADED_RUNS)))
            _count(report, log, meter, label, LOADED_RUNS, goal=goal)
    return report


def _count(report: Report, log: AuditLog, meter: Meter, label: str, runs: int, *, goal: float | None) -> None:
    report.noise.append(meter.read().others)
    entries = [entry for entry in log.new_entries() if entry.resource not in BY_TIME]
    mine = Counter(_words(entry) for entry in entries if entry.by_operator)
    report.add(f"{label}: writes of the operator a run", [mine.total() / runs], "", goal=goal)
    for words, count in sorted(mine.items()):
        report.add(f"{label}: {words}", [count / runs], "")
    theirs = sum(not entry.by_operator for entry in entries) - runs
    report.add(f"{label}: writes of Kubernetes' own components a run", [theirs / runs], "")


async def _one_by_one(cluster: LocalCluster, names: list[str]) -> None:
    async with Client(cluster.cluster) as client:
        ends = client.ends()
        for name in names:
            await client.send("POST", AGENTJOBS, agentjob(name))
            await ended(ends, [name])
        await ends.aclose()


async def _together(cluster: LocalCluster, names: list[str]) -> None:
    async with Client(cluster.cluster) as client:
        await each(names, lambda name: client.send("POST", AGENTJOBS, agentjob(name)))
        ends = client.ends()
        await ended(ends, names)
        await ends.aclose()


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number:04}" for number in range(count)]


def _words(entry: Entry) -> str:
    return f"{entry.verb} {entry.resource}"

"""What a decision costs by the production policy, with few and very many waiting runs and teams.

Times are of this process's own CPU: others on the machine do not count.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.model import GRACE_SECONDS, SECOND, Holding, PoolSettings, Run, TeamSettings
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts, Bounds
from agentjobs.simulation.engine import simulate
from agentjobs.simulation.files import opened
from agentjobs.simulation.setup import Setup, sized_for
from benchmarks.report import Report
from benchmarks.usage import machine

SLOTS = 1_000
LOOKS = 2_000  # starts, and as many looks that start nothing
HELIOS = Path(__file__).parent / "data" / "helios-15k.csv.gz"
REPEATS = 3

_CLASSES = (0, 10, 50, 50, 100)
# Four requests by three timeouts: twelve shapes.
_REQUESTS = (
    Amounts(1, 500, 1024),
    Amounts(1, 1000, 2048),
    Amounts(1, 2000, 4096),
    Amounts(1, 4000, 8192, 1),
)
_GUARANTEED = Amounts(5, 5_000, 10_240, 1)
_TIMEOUTS = (600, 1800, 7200)
_NOW = 1_000_000 * SECOND


class Load(NamedTuple):
    """What a pool is measured with.

    Attributes:
        nodes: 0 for a fixed capacity.
        sizes: how many requests differ, where users size each run by its input; 0 for the four.
        guaranteed: how many teams are guaranteed a little each.
    """

    pending: int
    teams: int
    nodes: int = 0
    sizes: int = 0
    guaranteed: int = 0

    @property
    def label(self) -> str:
        nodes = f", {self.nodes} nodes" if self.nodes else ""
        sizes = f", {self.sizes:,} requests" if self.sizes else ""
        guaranteed = f", {self.guaranteed} with a guarantee" if self.guaranteed else ""
        return f"{self.pending:,} pending, {self.teams:,} teams{guaranteed}{nodes}{sizes}"


_GOAL = Load(100_000, 1_000)
_LOADS = (
    *(Load(pending, teams) for teams in (10, 1_000, 10_000) for pending in (1_000, 10_000, 100_000)),
    _GOAL._replace(nodes=100),
    _GOAL._replace(sizes=1_000),
    _GOAL._replace(guaranteed=100),
)


def measure() -> Report:
    """Measure decisions, memory, the rebuild of a pool, and the replay of a public trace."""
    report = Report(
        "decision",
        f"A full pool of {SLOTS:,} slots, CPU, memory and GPUs; {len(_REQUESTS) * len(_TIMEOUTS)} shapes (4 "
        "requests by 3 timeouts) and 4 classes, mixed in every team; figures name runs, teams, those with a "
        f"guarantee ({_GUARANTEED.slots} slots each, with CPU, memory and a GPU), nodes where there are any, "
        "and how many requests differ where they are more. "
        f"{LOOKS:,} times a run ends and one look starts what follows, then a run is submitted and one look "
        "starts nothing; a figure is one look. CPU time of the process, garbage collection included. Memory: "
        "what Python allocates for the pool. Rebuild: from runs in memory to the first decision. Helios: "
        "15,000 runs of 20 days, load 90 %.",
    )
    for load in _LOADS:
        _decisions(report, load)
    _rebuild(report)
    _replay(report)
    return report


def _decisions(report: Report, load: Load) -> None:
    label, goal = load.label, 50 if load == _GOAL else None
    pool, per_run = _measured_pool(load)
    before, own = machine(), time.process_time()
    starts, empty, started = _looks(pool, load)
    busy, total = (now - then for now, then in zip(machine(), before, strict=True))
    report.noise.append(max(0.0, busy - (time.process_time() - own)) / total)
    report.add(f"{label}: a look that starts, p50", [_at(starts, 50)], "µs", goal=goal)
    report.add(f"{label}: a look that starts, p99", [_at(starts, 99)], "µs")
    report.add(f"{label}: runs started by one look, mean", [started / len(starts)], "")
    report.add(f"{label}: an empty look, p50", [_at(empty, 50)], "µs", goal=goal)
    report.add(f"{label}: an empty look, p99", [_at(empty, 99)], "µs")
    if not load.nodes:
        report.add(f"{label}: memory a waiting run", [per_run], "bytes")


def _looks(pool: Pool, load: Load) -> tuple[list[float], list[float], int]:
    """Let runs end and others be submitted.

    Returns:
        The times of looks that start something, those of the others, and how many runs were started.
    """
    starts: list[float] = []
    empty: list[float] = []
    started = 0
    now, number = _NOW, load.pending + SLOTS
    while len(starts) < LOOKS or len(empty) < LOOKS:
        now += SECOND // 10
        pool.leave(pool.books.ends[0][1], ended=now)  # the one that would end first at the latest
        begun = _look(pool, now, starts, empty)
        number += 1
        pool.wait(_run(number, load, now))
        begun += _look(pool, now + 1, starts, empty)
        started += begun
    return starts, empty, started


def _look(pool: Pool, now: int, starts: list[float], empty: list[float]) -> int:
    began = time.process_time_ns()
    plan = pool.decide(now)
    micros = (time.process_time_ns() - began) / 1000
    assert not pool.fault, pool.fault
    (starts if plan.starts else empty).append(micros)
    return len(plan.starts)


def _rebuild(report: Report) -> None:
    runs = [_run(number, _GOAL, number) for number in range(_GOAL.pending)]
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        pool = _pool(_GOAL)
        for run in runs:
            pool.wait(run)
        pool.decide(_NOW)
        times.append(time.process_time() - began)
    report.add("rebuild of 100,000 waiting runs, first decision included", times, "s", goal=1)


def _replay(report: Report) -> None:
    with opened(HELIOS) as trace:
        runs = list(trace.runs)
    setup = Setup(PoolSettings(capacity=sized_for(runs)))
    rates = []
    for _ in range(REPEATS):
        began = time.process_time()
        simulate(runs, setup, FairShare())
        rates.append(len(runs) / (time.process_time() - began))
    report.add("replay of Helios", rates, "runs/s", goal=3_000, at_least=True)


# -- pools -------------------------------------------------------------------------------------------


def _measured_pool(load: Load) -> tuple[Pool, float]:
    """Return a full pool with runs waiting, and the bytes that each of these takes."""
    runs = (_run(number, load, number) for number in range(SLOTS + load.pending))
    pool = _pool(load)
    for run in islice(runs, SLOTS):
        number = int(run.uid)
        # As if they had been started one after the other: no two end at the same moment.
        left = run.timeout_seconds * (1 + number * 37 % SLOTS) // SLOTS + GRACE_SECONDS
        until = _NOW + left * SECOND + number
        node = f"node-{number % load.nodes}" if load.nodes else None
        pool.hold(Holding(run.uid, run.team, run.critical, run.request, until, node))
    gc.collect()
    tracemalloc.start()
    for run in runs:
        pool.wait(run)
    pool.decide(_NOW)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return pool, taken / load.pending


def _pool(load: Load) -> Pool:
    held = [_run(number, _GOAL, 0).request for number in range(SLOTS)]
    cpu, memory, gpus = (sum(asked[index] for asked in held) for index in (1, 2, 3))
    pool = Pool("bench", FairShare())
    teams = {f"team-{number}": TeamSettings(guaranteed=_GUARANTEED) for number in range(load.guaranteed)}
    if load.nodes:
        offered = Amounts(0, *(-(-amount // load.nodes) for amount in (cpu, memory, gpus)))
        nodes = {f"node-{number}": offered for number in range(load.nodes)}
        pool.configure(PoolSettings(Bounds(SLOTS), nodes, teams=teams))
    else:
        pool.configure(PoolSettings(Bounds(SLOTS, cpu, memory, gpus), teams=teams))
    return pool


def _run(number: int, load: Load, created: int) -> Run:
    mixed = number * 2_654_435_761 % (1 << 32)  # so that every team has runs of every class and shape
    weight = _CLASSES[(mixed >> 3) % len(_CLASSES)]
    request = _REQUESTS[(mixed >> 9) % len(_REQUESTS)]
    timeout = _TIMEOUTS[(mixed >> 15) % len(_TIMEOUTS)]
    if load.sizes:
        request = request._replace(
            cpu_millicores=request.cpu_millicores - mixed // 97 % (load.sizes // len(_REQUESTS))
        )
    team = f"team-{number * 7919 % load.teams}"
    return Run(str(number), "default", team, weight, weight == 0, created, number, request, timeout)


def _at(values: list[float], part: int) -> float:
    """Return a percentile."""
    return sorted(values)[min(len(values) - 1, len(values) * part // 100)]

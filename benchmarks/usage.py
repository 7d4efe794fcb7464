"""What processes use, from /proc: CPU time, memory, and how much of the machine others took meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from deploy.local.local import LocalCluster

_TICKS = os.sysconf("SC_CLK_TCK")
SELF = "load generator"


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds used between two snapshots.

    Attributes:
        seconds: by component of the cluster, and by the benchmark itself.
        others: share of the machine that processes of somebody else had, 0 to 1.
    """

    seconds: dict[str, float]
    others: float


class Meter:
    """Measures from its creation on."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._pids = {SELF: os.getpid()}
        for name in cluster.components:
            if cluster.process(name):
                self._pids[name] = cluster.pid(name)
        self._began = self._now()
        self._machine = machine()

    def read(self) -> Usage:
        """Return what was used since the creation."""
        seconds = {name: value - self._began[name] for name, value in self._now().items()}
        busy, total = (now - then for now, then in zip(machine(), self._machine, strict=True))
        foreign = max(0.0, busy - sum(seconds.values()))
        return Usage(seconds, foreign / total if total else 0.0)

    def _now(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) for name, pid in self._pids.items()}


def cpu_seconds(pid: int) -> float:
    """CPU time of a process since its start, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident memory of a process now, and the most it ever had, in MB (10⁶ bytes)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}
    now, most = (int(fields[name][0]) * 1024 / 1e6 for name in ("VmRSS", "VmHWM"))
    return now, most


def machine() -> tuple[float, float]:
    """Busy and total CPU seconds of the machine since its start."""
    fields = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / _TICKS, sum(fields) / _TICKS

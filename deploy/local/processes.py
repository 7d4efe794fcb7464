"""Processes that outlive the command which started them: start, find again, stop.

A process is known by its id *and* its start time, so that a number the system
has given to somebody else meanwhile is never signalled.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from deploy.local.cluster import MARKER

# Children of this very process, kept so that they are reaped and not complained about.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Process:
    """A process of a cluster, as recorded in `<state>/pids/<name>.json`."""

    name: str
    pid: int
    started: str
    """Start time as the system tells it; only ever compared."""

    @property
    def alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        return start_time(self.pid) == self.started

    def signal(self, number: signal.Signals) -> None:
        """Send a signal unless the process is gone."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def save(self, folder: Path) -> None:
        """Record it, so that later commands find it."""
        write_atomically(folder / f"{self.name}.json", json.dumps(asdict(self)))


def reap() -> None:
    """Take note of children that have ended, whoever ended them."""
    for pid, child in list(_children.items()):
        if child.poll() is not None:
            del _children[pid]


def start_time(pid: int) -> str | None:
    """The start time of a live process, or None when there is none (or only its zombie)."""
    reap()
    stat = Path(f"/proc/{pid}/stat")
    if not Path("/proc/self/stat").exists():
        return _start_time_from_ps(pid)
    try:
        fields = stat.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, ticks = fields[0], fields[19]
    # Ticks count from boot: the boot's own id keeps two boots apart.
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None if state in "ZX" else f"{boot}/{ticks}"


def _start_time_from_ps(pid: int) -> str | None:
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def observe(name: str, pid: int) -> Process | None:
    """The record of a running process, or None when it does not run."""
    started = start_time(pid)
    return Process(name, pid, started) if started else None


def load(folder: Path, name: str) -> Process | None:
    """The recorded process of that name, whether it still runs or not."""
    try:
        return Process(**json.loads((folder / f"{name}.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def environment(process: Process) -> dict[str, str]:
    """What a process was started with; empty where the system does not tell (Linux does)."""
    try:
        pairs = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return {
        os.fsdecode(name): os.fsdecode(value)
        for name, found, value in (p.partition(b"=") for p in pairs)
        if found
    }


def spawn(
    name: str, command: Sequence[str | Path], *, folder: Path, log: Path, env: dict[str, str], cwd: Path
) -> Process:
    """Start a process in a session of its own, its output appended to `log`, and record it in `folder`.

    Raises:
        OSError: the program cannot be started.
        ProcessLookupError: it ended before it could be looked at.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    _children[child.pid] = child
    process = observe(name, child.pid)
    if process is None:
        raise ProcessLookupError(f"{name} ended at once; see {log}")
    process.save(folder)
    return process


def stop(process: Process | None, *, seconds: float = 10) -> None:
    """End a process: TERM, then KILL after `seconds`; returns when it is gone."""
    if process is None:
        return
    # A stopped process takes its TERM only once it runs again.
    process.signal(signal.SIGTERM)
    process.signal(signal.SIGCONT)
    if not wait_gone(process, seconds):
        process.signal(signal.SIGKILL)
        wait_gone(process, 10)


def wait_gone(process: Process, seconds: float) -> bool:
    """Wait until it has ended; False when it still runs after `seconds`."""
    until = time.monotonic() + seconds
    while process.alive:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def leftovers(state: Path) -> Iterator[Process]:
    """Every process started for the instance of that state folder, recorded or not (Linux only)."""
    wanted = f"{MARKER}={state}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        # Processes end while we look, and those of others are not ours to read.
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                name = (entry / "comm").read_text().strip()
                found = observe(name, int(entry.name))
                if found:
                    yield found


def stop_leftovers(state: Path) -> None:
    """End whatever is left of an instance, also what an interrupted `up` started and did not record."""
    # First who would start others, last whom the others need in order to end quickly.
    order = {"kwokctl": 0, "python": 1, "etcd": 3}
    while found := sorted(leftovers(state), key=lambda process: order.get(process.name, 2)):
        for process in found:
            # An API server that never became ready takes its time, and has nothing to save.
            stop(process, seconds=2)


def write_atomically(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a file so that a reader, or a crash, never meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.touch(mode=mode)
    temporary.write_text(text)
    temporary.replace(path)

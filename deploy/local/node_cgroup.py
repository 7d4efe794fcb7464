"""The control groups of a real node: made before it starts, emptied and removed after it.

Everything that a node runs (containerd, the kubelet, shims, containers) stays
in one subtree whose name follows from the instance. So all of it is found
again, whoever has crashed meanwhile. Both versions of control groups are
handled: the unified tree (2) and one tree for each controller (1).
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
# What the kubelet insists on.
CONTROLLERS = ("cpu", "cpuset", "io", "memory", "pids", "hugetlb")
REQUIRED = {"cpu", "cpuset", "memory", "pids"}
DAEMONS = "daemons"


def is_unified() -> bool:
    """Whether this machine uses version 2."""
    return (MOUNT / "cgroup.controllers").exists()


def hierarchies() -> list[Path]:
    """The root of every tree: one with version 2, one for each mounted controller with version 1."""
    if is_unified():
        return [MOUNT]
    return sorted({place for place, _ in _mounts()})


def problem() -> str | None:
    """Why containers cannot be limited on this machine, or None when they can."""
    if lacking := REQUIRED - _controllers():
        return f"the kernel offers no control group for {', '.join(sorted(lacking))} below {MOUNT}"
    probe = hierarchies()[0] / f"agentjobs-probe-{os.getpid()}"
    try:
        if is_unified():
            _delegate(MOUNT)
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        return f"control groups cannot be made below {MOUNT} ({error.strerror}), as in most containers"
    return None


def create(name: str) -> None:
    """Make the node's subtree, ready for the kubelet and for the node's own daemons."""
    for tree in hierarchies():
        node = tree / name
        if is_unified():
            _delegate(tree)
        node.mkdir(exist_ok=True)
        if is_unified():
            _delegate(node)
        elif (tree / "cpuset.cpus").exists():
            # A new cpuset of version 1 is empty, and nothing can run in it.
            for setting in ("cpuset.cpus", "cpuset.mems"):
                (node / setting).write_text((tree / setting).read_text())
    procs_of_daemons(name).parent.mkdir(exist_ok=True)


def procs_of_daemons(name: str) -> Path:
    """The file into which a daemon writes its process id to belong to the node."""
    tree = MOUNT if is_unified() else next(tree for tree in hierarchies() if (tree / "cgroup.procs").exists())
    return tree / name / DAEMONS / "cgroup.procs"


def kill(name: str, *, seconds: float = 15) -> bool:
    """Kill every process in the subtree; False when some are still there after `seconds`."""
    until = time.monotonic() + seconds
    while members := set(_members(name)):
        if time.monotonic() > until:
            return False
        # Frozen, none can start another one while we go through them (version 1 has no kill switch).
        _write_if_there("freezer.state", name, "FROZEN")
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _write_if_there("cgroup.kill", name, "1")
        _write_if_there("freezer.state", name, "THAWED")
        time.sleep(0.02)
    return True


def remove(name: str, *, seconds: float = 5) -> None:
    """Remove the empty subtree; raises OSError when it is not empty."""
    until = time.monotonic() + seconds
    for tree in hierarchies():
        for folder, _, _ in os.walk(tree / name, topdown=False):
            _remove_folder(Path(folder), until)


def exists(name: str) -> bool:
    """Whether anything is left of the subtree."""
    return any((tree / name).exists() for tree in hierarchies())


def _mounts() -> list[tuple[Path, set[str]]]:
    """Where the trees of version 1 are, with their mount options, the controllers among them."""
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    # Beside the trees of version 1 there is often an empty one of version 2, which containers join too.
    return [
        (Path(fields[1]), set(fields[3].split(","))) for fields in lines if fields[2] in ("cgroup", "cgroup2")
    ]


def _controllers() -> set[str]:
    if is_unified():
        return set((MOUNT / "cgroup.controllers").read_text().split())
    return {option for _, options in _mounts() for option in options}


def _remove_folder(folder: Path, until: float) -> None:
    while True:
        try:
            return folder.rmdir()
        except FileNotFoundError:
            return None
        except OSError:
            # The kernel lets go of the last process a moment after it has ended.
            if time.monotonic() > until:
                raise
        time.sleep(0.02)


def _members(name: str) -> Iterator[int]:
    for tree in hierarchies():
        for folder, _, _ in os.walk(tree / name):
            with contextlib.suppress(OSError):
                yield from (int(line) for line in Path(folder, "cgroup.procs").read_text().split())


def _delegate(folder: Path) -> None:
    """Hand every controller that exists down to the children (version 2); those in use already stay."""
    for controller in CONTROLLERS:
        if controller in (folder / "cgroup.controllers").read_text().split():
            (folder / "cgroup.subtree_control").write_text(f"+{controller}")


def _write_if_there(file: str, name: str, text: str) -> None:
    for tree in hierarchies():
        path = tree / name / file
        if path.exists():
            with contextlib.suppress(OSError):
                path.write_text(text)

"""A real node beside the control plane: kubelet, containerd and runc, in a mount namespace of their own.

Real containers, so that sandbox, exit codes, logs, memory limits and deadlines
are what they are in any cluster. Needs root on Linux. All that is visible
outside: one address on the loopback device, one network link without an
address, one control group; `stop` finds them by names that follow from the
state folder, so it also cleans up after a crash at any point.
"""

import hashlib
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from deploy.local import node_cgroup, node_config, node_host, node_images, node_packages, processes
from deploy.local.cluster import DEFAULT_STATE, Cluster
from deploy.local.controlplane import tail
from deploy.local.errors import LocalError
from deploy.local.kubectl import Kubectl
from deploy.local.node_config import NODE_NAME, PROGRAMS, SOCKET, STATE, Identity

CONTAINERD, KUBELET = "containerd", "kubelet"
START_SECONDS = 60
ENTER = Path(__file__).with_name("node_enter.sh")


def missing() -> str | None:
    """Why a real node is not possible here, and the command that mends it; None when it is possible."""
    return node_host.problem(DEFAULT_STATE)


def install_packages(say: Callable[[str], None] = print) -> None:
    """Provide what comes from the distribution: commands are installed, everything else goes to the cache.

    Raises:
        LocalError: apt-get's own words.
    """
    node_host.install(say)
    node_packages.provide(say)


def start(cluster: Cluster) -> None:
    """Start the node; returns when it is Ready and has the example images. Does nothing when it runs.

    The API server must be ready: the kubelet's patience with one that is not grows to half a minute.

    Raises:
        LocalError: with the end of the log of what did not start.
    """
    if running(cluster):
        return
    identity = identify(cluster.state)
    # When only the kubelet ended, the containers run on, and a new one finds them.
    if not _alive(cluster, CONTAINERD):
        stop(cluster.state)
        install_packages()
        _forget(cluster)
        _prepare(cluster, identity)
        _start_containerd(cluster, identity)
    # Before the kubelet: that it runs then tells that nothing was left out.
    _import_examples(cluster)
    _start_kubelet(cluster, identity)
    _wait_ready(cluster)


def running(cluster: Cluster) -> bool:
    """Whether both programs of the node run."""
    return all(_alive(cluster, name) for name in (CONTAINERD, KUBELET))


def stop(state: Path) -> None:
    """End the node of that state folder and remove every trace of it; does nothing where there is none.

    Containers are killed: whoever wants them to end in order deletes their pods first.

    Raises:
        LocalError: a process did not end, or it is not root who asks.
    """
    identity = identify(state)
    if sys.platform != "linux" or not ((state / "node").exists() or node_cgroup.exists(identity.cgroup)):
        return
    if os.geteuid() != 0:
        raise LocalError(f"the node of {state} was started by root; stop it with sudo")
    for name in (KUBELET, CONTAINERD):
        # They may have been interrupted before they joined the node's control group.
        processes.stop(processes.load(state / "pids", name), seconds=0)
    if not node_cgroup.kill(identity.cgroup):
        raise LocalError(
            f"processes of the control group {identity.cgroup} do not end, even by SIGKILL; reboot"
        )
    node_cgroup.remove(identity.cgroup)
    node_host.release_network(identity)
    if (state / "node").exists():
        shutil.rmtree(state / "node")


def import_images(cluster: Cluster, archives: Sequence[Path]) -> None:
    """Give the node the images of OCI archives, which must lie in `cluster.node`.

    Raises:
        LocalError: an archive is not readable; the message is containerd's.
    """
    for archive in archives:
        inside = f"{STATE}/{archive.relative_to(cluster.node)}"
        ctr = [f"{PROGRAMS}/ctr", "--address", SOCKET, "--namespace", "k8s.io"]
        node_host.run([*_enter(cluster), *ctr, "images", "import", "--local", inside])


def identify(state: Path) -> Identity:
    """The names of what the node of that state folder leaves on this machine."""
    return Identity(hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:8])


def _forget(cluster: Cluster) -> None:
    """Remove what the cluster believes of an earlier node: a new kubelet would run its pods a second time."""
    kubectl = _kubectl(cluster)
    if kubectl.exists("node", NODE_NAME):
        of_node = ("--all-namespaces", "--field-selector", f"spec.nodeName={NODE_NAME}")
        kubectl("delete", "pods", *of_node, "--force", "--grace-period=0", "--wait=false")
        kubectl("delete", "node", NODE_NAME)


def _prepare(cluster: Cluster, identity: Identity) -> None:
    cluster.node.mkdir(parents=True)
    node_cgroup.create(identity.cgroup)
    address = node_host.take_address(identity, cluster.node_address)
    node_config.write(cluster, identity, address)


def _import_examples(cluster: Cluster) -> None:
    archive = cluster.node / "images.tar"
    node_images.write_examples(archive)
    import_images(cluster, [archive])
    archive.unlink()


def _start_containerd(cluster: Cluster, identity: Identity) -> None:
    programs = [cluster.bin / name for name in (CONTAINERD, "containerd-shim-runc-v2", "ctr", KUBELET)]
    procs = node_cgroup.procs_of_daemons(identity.cgroup)
    inside = (procs, cluster.node, node_packages.folder(), " ".join(str(program) for program in programs))
    command = (f"{PROGRAMS}/{CONTAINERD}", "--config", f"{STATE}/containerd.toml", "--log-level", "warn")
    _spawn(cluster, CONTAINERD, ["unshare", "--mount", "sh", ENTER, *inside, *command])
    until = time.monotonic() + START_SECONDS
    while not _listens(cluster):
        _require(cluster, CONTAINERD, until)
        time.sleep(0.02)


def _start_kubelet(cluster: Cluster, identity: Identity) -> None:
    procs = node_cgroup.procs_of_daemons(identity.cgroup)
    join = ("sh", "-c", 'echo $$ > "$0"; exec "$@"', procs)
    options = {
        "config": f"{STATE}/kubelet.yaml",
        "kubeconfig": f"{STATE}/kubeconfig",
        "root-dir": f"{STATE}/kubelet",
        "cert-dir": f"{STATE}/kubelet-certificates",
        "hostname-override": NODE_NAME,
        "node-ip": node_host.address(identity),
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    _spawn(cluster, KUBELET, [*join, *_enter(cluster), f"{PROGRAMS}/{KUBELET}", *flags])


def _spawn(cluster: Cluster, name: str, command: Sequence[str | Path]) -> None:
    environment = cluster.environment()
    environment["PATH"] = f"{PROGRAMS}{os.pathsep}{environment['PATH']}"
    log = cluster.logs / f"{name}.log"
    processes.spawn(name, command, folder=cluster.pids, log=log, env=environment, cwd=Path("/"))


def _enter(cluster: Cluster) -> list[str]:
    """The beginning of a command that is to run inside the node's mount namespace."""
    process = processes.load(cluster.pids, CONTAINERD)
    if process is None or not process.alive:
        raise LocalError(f"the node of {cluster.state} does not run; start it with: make up")
    return ["nsenter", f"--mount=/proc/{process.pid}/ns/mnt", "--"]


def _listens(cluster: Cluster) -> bool:
    process = processes.load(cluster.pids, CONTAINERD)
    if process is None:
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            # The socket is in the node's namespace; this is the way in from outside.
            probe.connect(f"/proc/{process.pid}/root{SOCKET}")
        except OSError:
            return False
    return True


def _wait_ready(cluster: Cluster) -> None:
    kubectl = _kubectl(cluster)
    until = time.monotonic() + START_SECONDS
    for condition in ("create", "condition=Ready"):
        while True:
            try:
                kubectl("wait", f"--for={condition}", f"node/{NODE_NAME}", "--timeout=5s")
                break
            except LocalError:
                _require(cluster, CONTAINERD, until)
                _require(cluster, KUBELET, until)


def _kubectl(cluster: Cluster) -> Kubectl:
    return Kubectl(str(cluster.bin / "kubectl"), cluster.environment())


def _require(cluster: Cluster, name: str, until: float) -> None:
    """Raise LocalError when the program has ended, or the time is over."""
    log = cluster.logs / f"{name}.log"
    if not _alive(cluster, name):
        raise LocalError(f"{name} ended; the end of {log}:\n{tail(log)}")
    if time.monotonic() > until:
        raise LocalError(f"the node is not ready after {START_SECONDS} s; the end of {log}:\n{tail(log)}")


def _alive(cluster: Cluster, name: str) -> bool:
    process = processes.load(cluster.pids, name)
    return process is not None and process.alive

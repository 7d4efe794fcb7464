"""The control plane: etcd, API server, controller manager, scheduler, and simulated nodes.

`kwokctl` makes the certificates and knows the flags; it starts the components
as plain processes and then is gone. From there on they are ours: recorded,
watched, killed, restarted and stopped here.
"""

import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from deploy.local import processes
from deploy.local.cluster import Cluster
from deploy.local.disk import require_space
from deploy.local.errors import LocalError
from deploy.local.ports import LOOPBACK, free_ports
from deploy.local.versions import KUBERNETES

HERE = Path(__file__).parent
SIMULATOR = "kwok-controller"
# In the order in which they are started; the API server is stopped before etcd, since
# without etcd it lingers for over a minute and holds its port.
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", SIMULATOR)
# The clients' own brakes are off: they would be measured instead of the API server. kwokctl's own
# switch for that, --disable-qps-limits, also turns off the API server's priority and fairness, and
# with it the 429s that every client meets in a real cluster; so the flags are given one by one.
UNLIMITED = {"kube-api-qps": "5000", "kube-api-burst": "10000"}


@dataclass(frozen=True)
class Plan:
    """What kind of control plane is wanted."""

    simulated: bool
    """Whether kwok plays the nodes; where a real node runs it must not, since it takes every node."""
    job_controller: bool = True


def start(cluster: Cluster, plan: Plan) -> None:
    """Create the control plane and wait until the API server is ready.

    Raises:
        LocalError: a component did not start; the message carries its last log lines.
    """
    _prepare(cluster, plan)
    command = [str(cluster.bin / "kwokctl"), "create", "cluster", "--name", "agentjobs"]
    # Its kubeconfig is ours alone: it must not add a context to the user's.
    command += ["--config", str(cluster.kwok / "config.yaml"), "--timeout", "60s", "--kubeconfig", ""]
    log, env = cluster.logs / "kwokctl.log", _kwok_environment(cluster)
    with log.open("ab") as output:
        result = subprocess.run(command, stdout=output, stderr=output, env=env, check=False, cwd=cluster.kwok)
    if result.returncode:
        raise LocalError(f"the control plane did not start; the end of {log}:\n{tail(log)}")
    for name in commands(cluster):
        _record(cluster, name)
    shutil.copyfile(cluster.control_plane / "kubeconfig.yaml", cluster.kubeconfig)
    cluster.kubeconfig.chmod(0o600)
    wait_ready(cluster)


def restart(cluster: Cluster, name: str) -> None:
    """Start one component with the very command line it had."""
    component = commands(cluster)[name]
    processes.spawn(
        name,
        [component["binary"], *component["args"]],
        folder=cluster.pids,
        log=cluster.logs / f"{name}.log",
        env=_kwok_environment(cluster),
        cwd=cluster.control_plane,
    )


def stop(cluster: Cluster) -> None:
    """End every component in the reverse order of their start."""
    for name in reversed(COMPONENTS):
        processes.stop(processes.load(cluster.pids, name))


def commands(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """For each component of this instance its `binary` and `args`, in the order of starting."""
    file = cluster.control_plane / "kwok.yaml"
    try:
        documents = list(yaml.safe_load_all(file.read_text()))
    except FileNotFoundError as error:
        raise LocalError(f"{file} is gone; start anew with: make down up") from error
    configuration = next(entry for entry in documents if entry["kind"] == "KwokctlConfiguration")
    found = {entry["name"]: entry for entry in configuration["components"]}
    return {name: found[name] for name in COMPONENTS if name in found}


def healthy(cluster: Cluster, path: str = "/readyz") -> bool:
    """Whether the API server answers 200 within two seconds."""
    try:
        with urllib.request.urlopen(  # noqa: S310  (always our own https address)
            f"{cluster.server}{path}", timeout=2, context=_tls(cluster)
        ) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def wait_ready(cluster: Cluster, *, seconds: float = 60) -> None:
    """Wait until the API server is ready; raise LocalError when it is not in time or ended."""
    until = time.monotonic() + seconds
    while not healthy(cluster):
        for name in ("etcd", "kube-apiserver"):
            process = processes.load(cluster.pids, name)
            if process is None or not process.alive:
                log = cluster.logs / f"{name}.log"
                raise LocalError(f"{name} ended; the end of {log}:\n{tail(log)}")
        if time.monotonic() > until:
            log = cluster.logs / "kube-apiserver.log"
            raise LocalError(
                f"the API server is not ready after {seconds:.0f} s; the end of {log}:\n{tail(log)}"
            )
        time.sleep(0.05)


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log, indented for a message."""
    try:
        text = log.read_text(errors="replace")
    except FileNotFoundError:
        return "    (no log was written)"
    return "\n".join(f"    {line[:300]}" for line in text.splitlines()[-lines:]) or "    (empty)"


def _prepare(cluster: Cluster, plan: Plan) -> None:
    require_space(cluster.state, 1, "the cluster's data", "free some, then repeat it")
    for folder in (cluster.logs, cluster.pids, cluster.control_plane):
        folder.mkdir(parents=True, exist_ok=True)
    # kwokctl logs below its own folder; this way everything lies in one.
    link = cluster.control_plane / "logs"
    if not link.is_symlink():
        link.symlink_to(cluster.logs)
    stages = (HERE / "stages.yaml").read_text()
    text = f"{yaml.safe_dump(_configuration(cluster, plan), sort_keys=False)}---\n{stages}"
    processes.write_atomically(cluster.kwok / "config.yaml", text)
    acting = yaml.safe_dump(_acting_as(cluster, "system:kube-scheduler"))
    processes.write_atomically(_scheduler_kubeconfig(cluster), acting)


def _configuration(cluster: Cluster, plan: Plan) -> dict[str, Any]:
    """What kwokctl is told: every address on loopback, every port chosen beforehand."""
    etcd, peer, manager, scheduler, simulator = free_ports(5)
    certificates = cluster.certificates
    alone = {"leader-elect": "false"}
    controllers = {} if plan.job_controller else {"controllers": "*,-job-controller"}
    extra = {
        "kube-apiserver": {
            # The real node's address is its only way in, and logs are read as the administrator.
            "kubelet-preferred-address-types": "InternalIP",
            "kubelet-client-certificate": str(certificates / "admin.crt"),
            "kubelet-client-key": str(certificates / "admin.key"),
            # Webhooks that name a Service are dialled at its endpoint: there is no kube-proxy.
            "enable-aggregator-routing": "true",
        },
        # Each controller under its own name: the audit log then tells who wrote.
        "kube-controller-manager": {
            **UNLIMITED, **alone, **controllers, "use-service-account-credentials": "true",
        },
        "kube-scheduler": {**UNLIMITED, **alone, "kubeconfig": str(_scheduler_kubeconfig(cluster))},
        # Else a line for each of the four writes of every pod.
        SIMULATOR: {"v": "WARN"},
    }  # fmt: skip
    binaries = {
        "etcdBinary": "etcd",
        "kubeApiserverBinary": "kube-apiserver",
        "kubeControllerManagerBinary": "kube-controller-manager",
        "kubeSchedulerBinary": "kube-scheduler",
        "kwokControllerBinary": "kwok",
        "kubectlBinary": "kubectl",
    }
    return {
        "kind": "KwokctlConfiguration",
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "options": {
            "runtime": "binary",
            "kubeVersion": KUBERNETES,
            "bindAddress": LOOPBACK,
            "kubeApiserverPort": cluster.port,
            "etcdPort": etcd,
            "etcdPeerPort": peer,
            "kubeControllerManagerPort": manager,
            "kubeSchedulerPort": scheduler,
            "kwokControllerPort": simulator,
            "kubeAuditPolicy": str(HERE / "audit-policy.yaml"),
            "nodeLeaseDurationSeconds": 0,
            "components": [name for name in COMPONENTS if plan.simulated or name != SIMULATOR],
            **{option: str(cluster.bin / name) for option, name in binaries.items()},
        },
        "componentsPatches": [
            {"name": name, "extraArgs": [{"key": key, "value": value} for key, value in args.items()]}
            for name, args in extra.items()
        ],
    }


def _scheduler_kubeconfig(cluster: Cluster) -> Path:
    return cluster.kwok / "scheduler.kubeconfig"


def _acting_as(cluster: Cluster, user: str) -> dict[str, Any]:
    """A kubeconfig with the administrator's certificate, used to act as somebody and nothing more.

    So rights, guard rails and priorities hold for the scheduler as in any cluster.
    """
    folder = cluster.certificates
    server = {"server": cluster.server, "certificate-authority": str(folder / "ca.crt")}
    credentials = {"client-certificate": str(folder / "admin.crt"), "client-key": str(folder / "admin.key")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": server}],
        "users": [{"name": user, "user": {**credentials, "as": user}}],
        "contexts": [{"name": user, "context": {"cluster": "local", "user": user}}],
        "current-context": user,
    }


def _kwok_environment(cluster: Cluster) -> dict[str, str]:
    return {**cluster.environment(), "KWOK_WORKDIR": str(cluster.kwok), "KWOK_KUBE_VERSION": KUBERNETES}


def _record(cluster: Cluster, name: str) -> None:
    """Take over a process that kwokctl has started."""
    pid = int((cluster.control_plane / "pids" / f"{name}.pid").read_text())
    process = processes.observe(name, pid)
    if process is None:
        log = cluster.logs / f"{name}.log"
        raise LocalError(f"{name} ended at once; the end of {log}:\n{tail(log)}")
    process.save(cluster.pids)


def _tls(cluster: Cluster) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(cluster.certificates / "ca.crt"))
    context.load_cert_chain(cluster.certificates / "admin.crt", cluster.certificates / "admin.key")
    return context

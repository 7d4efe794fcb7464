"""Where everything of one local cluster lies: the record that all parts share."""

import os
import zlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_STATE = ROOT / ".local"

# In the environment of every process that belongs to an instance, with its state
# folder as value: how `down` finds what a killed `up` had no time to record.
MARKER = "AGENTJOBS_LOCAL_STATE"


@dataclass(frozen=True)
class Cluster:
    """One instance of the local cluster: a folder, a port, and what follows from them.

    `state` is an absolute folder: `.local` for the user's own cluster, one
    below it for each further instance (tests, benchmarks), so that several run
    side by side. Nothing is written outside it.
    """

    state: Path
    port: int
    """Port of the API server on 127.0.0.1."""

    @property
    def index(self) -> int:
        """1 for the user's own cluster, else 2 to 253: keeps addresses and links of instances apart."""
        if self.state == DEFAULT_STATE:
            return 1
        return 2 + zlib.crc32(str(self.state).encode()) % 252

    @property
    def node_address(self) -> str:
        """The real node's own address, on the loopback device: 10.77.0.1 for the user's own cluster."""
        return f"10.77.0.{self.index}"

    @property
    def bin(self) -> Path:
        """Links to the chosen programs: etcd, kube-*, kubelet, kubectl, kwok, containerd, ctr …"""
        return self.state / "bin"

    @property
    def logs(self) -> Path:
        """One file a component, `<component>.log`, and the audit log."""
        return self.state / "logs"

    @property
    def audit_log(self) -> Path:
        """One JSON object a line for every write that reached the API server."""
        return self.logs / "audit.log"

    @property
    def pids(self) -> Path:
        """One record a process that was started: see `deploy.local.processes`."""
        return self.state / "pids"

    @property
    def kwok(self) -> Path:
        """The folder that kwokctl calls its work directory."""
        return self.state / "kwok"

    @property
    def control_plane(self) -> Path:
        """The control plane's own folder: etcd's data, certificates, the command of each component."""
        return self.kwok / "clusters" / "agentjobs"

    @property
    def certificates(self) -> Path:
        """ca.crt, admin.crt and admin.key (an administrator, also the API server's client to kubelets)."""
        return self.control_plane / "pki"

    @property
    def node(self) -> Path:
        """The real node's own folder."""
        return self.state / "node"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.state / "kubeconfig"

    @property
    def operator_kubeconfig(self) -> Path:
        """The kubeconfig of the operator's own service account."""
        return self.state / "operator.kubeconfig"

    @property
    def operator_pid(self) -> Path:
        """The operator's present process id, rewritten at each restart."""
        return self.state / "operator.pid"

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """What every process of this instance is started with."""
        return {
            **os.environ,
            MARKER: str(self.state),
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.state / "kubectl-cache"),
            "PATH": f"{self.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }

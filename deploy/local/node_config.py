"""What the programs of a real node are told: containerd, its network, the kubelet.

Paths are those inside the node's mount namespace, see `node_enter.sh`.
"""

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from deploy.local.cluster import Cluster
from deploy.local.node_images import PAUSE

NODE_NAME = "real-node"
STATE = "/run/agentjobs/state"
TOOLS = "/run/agentjobs/tools"
PROGRAMS = "/run/agentjobs/bin"
SOCKET = "/run/containerd/containerd.sock"
KUBELET_PORT = 10250


@dataclass(frozen=True)
class Identity:
    """The names by which a node's traces on this machine are found, whoever crashed meanwhile."""

    key: str
    """Eight hexadecimal digits that follow from the instance's state folder."""

    @property
    def cgroup(self) -> str:
        """The control group of everything the node runs."""
        return f"agentjobs-{self.key}"

    @property
    def bridge(self) -> str:
        """The network link that its pods hang on; 15 characters are the most."""
        return f"aj{self.key}"

    @property
    def address_label(self) -> str:
        """The label of its address on the loopback device; 15 characters are the most."""
        return f"lo:aj{self.key}"


def write(cluster: Cluster, identity: Identity, address: str) -> None:
    """Write every configuration file into the node's folder."""
    pods = f"10.88.{address.rpartition('.')[2]}.0/24"
    files = {
        "containerd.toml": containerd(),
        "cni/10-pods.conflist": json.dumps(network(identity, pods), indent=2),
        "kubelet.yaml": yaml.safe_dump(kubelet(identity, address), sort_keys=False),
        "kubeconfig": json.dumps(kubeconfig(cluster)),
        "ca.crt": (cluster.certificates / "ca.crt").read_text(),
    }
    for name, text in files.items():
        path = cluster.node / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(text)


def containerd() -> str:
    """containerd's configuration, version 3: no plugin directory, socket or file outside the node."""
    return f"""\
version = 3
root = "{STATE}/containerd"
state = "/run/containerd"
imports = []
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.image-verifier.v1.bindir"]

[grpc]
  address = "{SOCKET}"

[plugins."io.containerd.internal.v1.opt"]
  path = "/run/containerd/opt"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{PAUSE}"

[plugins."io.containerd.cri.v1.runtime"]
  # Neither profiles nor the right to lower a score are to be had everywhere.
  disable_apparmor = true
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["{TOOLS}/cni"]
  conf_dir = "{STATE}/cni"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "{TOOLS}/runc"
  SystemdCgroup = false
"""


def network(identity: Identity, pods: str) -> dict[str, Any]:
    """The pods' network: a bridge without an address, a gateway or a way out."""
    bridge = {
        "type": "bridge",
        "bridge": identity.bridge,
        "isGateway": False,
        "ipMasq": False,
        "ipam": {"type": "host-local", "dataDir": "/run/agentjobs/addresses", "ranges": [[{"subnet": pods}]]},
    }
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}


def kubelet(identity: Identity, address: str) -> dict[str, Any]:
    """The kubelet's configuration: it listens on the node's address alone and changes nothing around it."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "port": KUBELET_PORT,
        "readOnlyPort": 0,
        "healthzPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{STATE}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "podLogsDir": f"{STATE}/pod-logs",
        "volumePluginDir": f"{STATE}/volume-plugins",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{identity.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        # No name resolution: there is no way out. A server's address is still needed, or every
        # pod gets an event that it is missing.
        "resolvConf": "",
        "clusterDNS": ["10.96.0.10"],
        "clusterDomain": "cluster.local",
        "seccompDefault": True,
        "podPidsLimit": 1024,
        # A developer's disk is often nearly full, and that alone is no reason to refuse pods.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "500Mi",
            "imagefs.available": "500Mi",
        },
        "imageGCHighThresholdPercent": 100,
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
    }


def kubeconfig(cluster: Cluster) -> dict[str, Any]:
    """The kubelet's credentials: the administrator's, used to act as this node and nothing more.

    So the Node authorizer and admission see a kubelet as in any cluster, and no
    certificate of its own has to be requested and signed first.
    """
    certificates = cluster.certificates
    user = {
        "client-certificate-data": _encoded(certificates / "admin.crt"),
        "client-key-data": _encoded(certificates / "admin.key"),
        "as": f"system:node:{NODE_NAME}",
        "as-groups": ["system:nodes", "system:authenticated"],
    }
    server = {"server": cluster.server, "certificate-authority-data": _encoded(certificates / "ca.crt")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": server}],
        "users": [{"name": "kubelet", "user": user}],
        "contexts": [{"name": "kubelet", "context": {"cluster": "local", "user": "kubelet"}}],
        "current-context": "kubelet",
    }


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()

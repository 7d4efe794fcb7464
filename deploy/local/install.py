"""What is put into a cluster, whichever it is: CRDs, namespaces, RBAC, the default pool."""

import base64
import json
from pathlib import Path
from typing import Any

import yaml

from deploy.local.cluster import ROOT
from deploy.local.kubectl import Kubectl, retry
from deploy.local.processes import write_atomically

SYSTEM_NAMESPACE = "agentjobs-system"
SERVICE_ACCOUNT = "agentjobs-operator"
POD_SECURITY = "v1.37"
CRDS = ROOT / "crds"
BASE = ROOT / "deploy" / "base"
POOL = ROOT / "deploy" / "local" / "pool.yaml"
TOKEN_HOURS = 24 * 365


def custom_resources(kubectl: Kubectl) -> int:
    """Apply the CRDs and wait until the API server serves them; returns how many they are."""
    files = sorted(CRDS.glob("*.yaml"))
    if not files:
        return 0
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))
    kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(CRDS))
    return len(files)


def system(kubectl: Kubectl) -> None:
    """The operator's namespace, service account and rights."""
    kubectl.apply(namespace(SYSTEM_NAMESPACE))
    if (BASE / "rbac.yaml").exists():
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(BASE / "rbac.yaml"))


def workload_namespace(kubectl: Kubectl, name: str = "default") -> None:
    """The namespace where runs go: its pods are held to the strictest Pod Security standard."""
    kubectl.apply(namespace(name, restricted=True))


def namespace(name: str, *, restricted: bool = False) -> dict[str, Any]:
    """A Namespace; `restricted` pins the standard's version, so that an upgrade changes nothing by itself."""
    labels = {}
    if restricted:
        for mode in ("enforce", "audit", "warn"):
            labels[f"pod-security.kubernetes.io/{mode}"] = "restricted"
            labels[f"pod-security.kubernetes.io/{mode}-version"] = POD_SECURITY
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def pool(kubectl: Kubectl, slots: int) -> None:
    """The default pool with that many execution slots."""
    manifest = yaml.safe_load(POOL.read_text())
    manifest["spec"]["maxConcurrency"] = slots
    # A kind whose CRD is new is known to discovery, and answers, a moment later.
    retry(lambda: kubectl.apply(manifest), seconds=20)


def simulated_nodes(kubectl: Kubectl, count: int) -> None:
    """Exactly `count` nodes for kwok to play, Ready when this returns."""
    wanted = [f"simulated-{number}" for number in range(1, count + 1)]
    existing = kubectl("get", "nodes", "-l", "type=simulated", "-o", "name").split()
    surplus = [name for name in existing if name.removeprefix("node/") not in wanted]
    if surplus:
        kubectl("delete", *surplus)
    kubectl.apply(
        *(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"type": "simulated", "kubernetes.io/hostname": name}},
            }
            for name in wanted
        )
    )
    kubectl("wait", "--for=condition=Ready", "--timeout=30s", *(f"node/{name}" for name in wanted))


def operator_kubeconfig(kubectl: Kubectl, path: Path) -> None:
    """Write a kubeconfig that speaks as the operator's service account, never as an administrator."""
    current = json.loads(kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
    cluster = current["clusters"][0]["cluster"]
    token = retry(
        lambda: kubectl(
            "create", "token", SERVICE_ACCOUNT, "-n", SYSTEM_NAMESPACE, f"--duration={TOKEN_HOURS}h"
        ).strip(),
        seconds=10,
    )
    name = SERVICE_ACCOUNT
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": SYSTEM_NAMESPACE}}
        ],
        "current-context": name,
    }
    write_atomically(path, yaml.safe_dump(config, sort_keys=False), mode=0o600)


def token_account(kubeconfig: Path) -> str | None:
    """The account a kubeconfig's token speaks for, None when there is no such file or token."""
    try:
        token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
        claims = token.split(".")[1]
        return str(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"])
    except (OSError, LookupError, ValueError, TypeError):
        return None

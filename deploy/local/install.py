"""What is put into a cluster, whichever it is: CRDs, namespaces, rights and guard rails, the default pool."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from deploy.local.cluster import ROOT
from deploy.local.errors import LocalError
from deploy.local.kubectl import Kubectl, retry
from deploy.local.processes import write_atomically

SYSTEM_NAMESPACE = "agentjobs-system"
SERVICE_ACCOUNT = "agentjobs-operator"
POD_SECURITY = "v1.37"
CRDS = ROOT / "crds"
BASE = ROOT / "deploy" / "base"
# admission.yaml goes its own way: it needs an operator that answers.
SYSTEM = (BASE / "rbac.yaml", BASE / "guardrails.yaml", BASE / "flowcontrol.yaml")
POOL = ROOT / "deploy" / "local" / "pool.yaml"
TOKEN_HOURS = 24 * 365


@dataclass(frozen=True)
class Object:
    """One object in a cluster, by kind, name and namespace."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.namespace, self.kind, self.name) if part)

    @classmethod
    def parse(cls, text: str) -> "Object":
        """The object that `str` gave as `kind/name` or `namespace/kind/name`."""
        *namespace, kind, name = text.split("/")
        return cls(kind, name, *namespace)

    @property
    def _arguments(self) -> tuple[str, ...]:
        return (
            self.kind,
            self.name,
            "--ignore-not-found",
            *(("-n", self.namespace) if self.namespace else ()),
        )

    def exists(self, kubectl: Kubectl) -> bool:
        """Whether it is there; of a kind that the cluster does not know nothing is."""
        try:
            return bool(kubectl("get", *self._arguments, "-o", "name").strip())
        except LocalError as error:
            if "doesn't have a resource type" in str(error):
                return False
            raise

    def delete(self, kubectl: Kubectl) -> None:
        """Delete it and wait until it is gone; an absent one is no error."""
        try:
            kubectl("delete", *self._arguments, timeout=120)
        except LocalError as error:
            if "doesn't have a resource type" not in str(error):
                raise


def objects() -> list[Object]:
    """What is installed into a cluster that is not ours, in the order of installing."""
    manifests = [namespace(SYSTEM_NAMESPACE)]
    for path in (*sorted(CRDS.glob("*.yaml")), *SYSTEM, POOL):
        manifests += [manifest for manifest in yaml.safe_load_all(path.read_text()) if manifest]
    return [
        Object(entry["kind"], entry["metadata"]["name"], entry["metadata"].get("namespace", ""))
        for entry in manifests
    ]


def custom_resources(kubectl: Kubectl) -> int:
    """Apply the CRDs and wait until the API server serves them; returns how many they are."""
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))
    kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(CRDS))
    return len(list(CRDS.glob("*.yaml")))


def system(kubectl: Kubectl) -> None:
    """The operator's namespace, accounts, rights, guard rails, and its share of the API server."""
    kubectl.apply(namespace(SYSTEM_NAMESPACE))
    files = [argument for path in SYSTEM for argument in ("-f", str(path))]
    kubectl("apply", "--server-side", "--force-conflicts", *files)


def free_lease(kubectl: Kubectl) -> None:
    """A Lease as a leader leaves it: the first one of a new cluster need not wait for one that never was."""
    manifest = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": SERVICE_ACCOUNT, "namespace": SYSTEM_NAMESPACE},
        "spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": "1970-01-01T00:00:00.000000Z"},
    }
    kubectl.apply(manifest)


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


def pool_in_force(kubectl: Kubectl) -> None:
    """Wait until the operator knows the default pool as it is: before, it would refuse runs for it."""
    generation = kubectl("get", "agentpool", "default", "-o", "jsonpath={.metadata.generation}")
    seen = f"--for=jsonpath={{.status.observedGeneration}}={generation}"
    kubectl("wait", "agentpool/default", seen, "--timeout=30s")


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

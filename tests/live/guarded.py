"""Runs, and people who try to get at them: what the tests of the guard rails share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.live.api import Api, Object
from tests.live.lab import Lab, Run, unique
from tests.live.support import eventually

RBAC = "/apis/rbac.authorization.k8s.io/v1"
OPERATOR = "system:serviceaccount:agentjobs-system:agentjobs-operator"
OURS = {"agentjobs.dev/run-uid": "0f8fad5b-d9cb-469f-a165-70867728950e"}
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


@dataclass
class Scene:
    """A namespace with a run that goes on, one whose pod has no node, and a Job and a pod of nobody's."""

    lab: Lab
    namespace: str
    running: Run
    waiting: Run
    foreign_job: str = "foreign"
    foreign_pod: str = "foreign"
    users: dict[str, Api] = field(default_factory=dict)

    @classmethod
    def set(cls, lab: Lab) -> Scene:
        """Build one; what waits waits for a node that there is not."""
        namespace = lab.namespace()
        nowhere = lab.pool(sandbox={"nodeSelector": {"kubernetes.io/hostname": "nowhere"}})
        # So long a name is cut in that of the Job, and the pod's is found by its end all the same.
        long = unique("long-" + "x" * 80)
        running = lab.submit(lab.pool(), name=long, namespace=namespace, duration="1h")
        waiting = lab.submit(nowhere, namespace=namespace)
        scene = cls(lab, namespace, running, waiting)
        lab.api.create(scene.jobs, job("foreign", suspend=True))
        lab.api.create(scene.pods, {"metadata": {"name": "foreign"}, "spec": pod_spec()})
        running.reaches("RUNNING")
        waiting.pod()
        return scene

    @property
    def jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    @property
    def job(self) -> str:
        """Path of the running run's Job."""
        return self.running.job_path

    @property
    def pod(self) -> str:
        """Path of the running run's pod."""
        return f"{self.pods}/{self.running.pod()['metadata']['name']}"

    def user(self, name: str, group: str = "") -> Api:
        """Requests of a user."""
        if name not in self.users:
            self.users[name] = Api(self.lab.cluster, name, group)
        return self.users[name]

    def person(self, *rules: Object, everywhere: bool = False) -> Api:
        """Requests of a new user with these rights, in the scene's namespace or everywhere."""
        name = unique("person")
        grant(self.lab, name, *rules, namespace=None if everywhere else self.namespace)
        return self.user(name)

    def evidence(self) -> Object:
        """What must not change of the runs' Jobs and pods, whatever is tried."""
        return {
            path: {
                "labels": stored["metadata"]["labels"],
                "deleted": stored["metadata"].get("deletionTimestamp"),
                "spec": stored["spec"],
                "phase": stored["status"].get("phase"),
                "conditions": [c["type"] for c in stored["status"].get("conditions", ())],
            }
            for path in (self.job, self.pod, self.waiting.job_path)
            for stored in [self.lab.api.request("GET", path)]
        }


def grant(lab: Lab, user: str, *rules: Object, namespace: str | None) -> None:
    """Give a user rights in one namespace, or in all of them."""
    base, kind = (RBAC, "ClusterRole") if namespace is None else (f"{RBAC}/namespaces/{namespace}", "Role")
    metadata = {"name": user}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": user}
    lab.make(f"{base}/{kind.lower()}s", {"metadata": metadata, "rules": list(rules)})
    lab.make(f"{base}/{kind.lower()}bindings", {"metadata": metadata, "roleRef": role, "subjects": [subject]})


def rule(group: str, resources: str, verbs: str) -> Object:
    """An RBAC rule from words: resources and verbs are separated by blanks."""
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


def job(
    name: str, labels: Object | None = None, template_labels: Object | None = None, **spec: Any
) -> Object:
    """The manifest of a Job."""
    template = {"metadata": {"labels": template_labels or {}}, "spec": pod_spec()}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"backoffLimit": 0, "template": template, **spec},
    }


def pod_spec(**more: Any) -> Object:
    return {"restartPolicy": "Never", "containers": [{"name": "main", "image": "agent:dev"}], **more}


def labels(value: Object) -> Object:
    """A merge patch that sets labels; None removes one."""
    return {"metadata": {"labels": value}}


def node(lab: Lab) -> str:
    """A simulated node of a test's own, Ready when this returns."""
    name = unique("node")
    labels = {"type": "simulated", "kubernetes.io/hostname": name}
    # Tainted, so that what belongs to other tests stays away.
    taints = [{"key": "example.com/own", "effect": "NoSchedule"}]
    lab.make("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}})

    def ready() -> bool:
        conditions = lab.api.request("GET", f"/api/v1/nodes/{name}").get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    eventually(ready)
    return name


def run_on(lab: Lab, node: str, namespace: str, **spec: Any) -> Run:
    """A run that goes on, on that node."""
    own = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
    }
    run = lab.submit(lab.pool(sandbox=own), namespace=namespace, duration="1h", **spec)
    run.reaches("RUNNING")
    return run


Attempt = Callable[[Scene, Api], object]

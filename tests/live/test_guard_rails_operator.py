"""What whoever has the operator's token cannot do: its rights, narrowed by the guard rails."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentjobs.runs.sandbox import CONTAINER_SECURITY
from tests.live.api import Api, Object, RefusedError
from tests.live.guarded import OPERATOR, OURS, STRATEGIC_PATCH, Attempt, Scene, job, labels, pod_spec
from tests.live.lab import Lab
from tests.live.support import eventually


@pytest.fixture(scope="module")
def scene(lab: Lab) -> Scene:
    return Scene.set(lab)


@pytest.fixture(scope="module")
def account(scene: Scene) -> Iterator[Api]:
    """Whoever has the operator's token."""
    with scene.user(OPERATOR) as api:
        yield api


def sandboxed(**changes: Any) -> Object:
    """A Job as the operator creates it, but for these changes of its pod."""
    spec = pod_spec(automountServiceAccountToken=False, securityContext={"runAsNonRoot": True}, **changes)
    for container in spec["containers"]:
        container.setdefault("securityContext", CONTAINER_SECURITY)
    owner = {"apiVersion": "agentjobs.dev/v1alpha1", "kind": "AgentJob", "name": "x", "uid": "1"}
    made = job("operators", OURS, OURS)
    made["metadata"]["ownerReferences"] = [owner]
    made["spec"]["template"]["spec"] = spec
    return made


def without(made: Object, *path: str) -> Object:
    *folders, last = path
    part = made
    for folder in folders:
        part = part[folder]
    del part[last]
    return made


ONLY_RUNS: dict[str, Attempt] = {
    "a foreign pod stopped": lambda s, api: api.patch(
        f"{s.pods}/{s.foreign_pod}", {"spec": {"activeDeadlineSeconds": 1}}
    ),
    "a foreign pod taken over": lambda s, api: api.patch(f"{s.pods}/{s.foreign_pod}", labels(OURS)),
    "a foreign Job deleted": lambda s, api: api.request("DELETE", f"{s.jobs}/{s.foreign_job}"),
    "a Job without labels": lambda s, api: api.create(
        s.jobs, {**sandboxed(), "metadata": job("operators", {"app": "x"})["metadata"]}
    ),
}
ONLY_DEADLINE: dict[str, Attempt] = {
    "another image": lambda s, api: api.request(
        "PATCH", s.pod, {"spec": {"containers": [{"name": "agent", "image": "evil:1"}]}}, STRATEGIC_PATCH
    ),
    "another image and a deadline": lambda s, api: api.request(
        "PATCH",
        s.pod,
        {"spec": {"activeDeadlineSeconds": 5, "containers": [{"name": "agent", "image": "evil:1"}]}},
        STRATEGIC_PATCH,
    ),
    "another label": lambda s, api: api.patch(s.pod, labels({"agentjobs.dev/team": "other"})),
    "an annotation": lambda s, api: api.patch(s.pod, {"metadata": {"annotations": {"a": "b"}}}),
    "a finalizer": lambda s, api: api.patch(s.pod, {"metadata": {"finalizers": ["example.com/keep"]}}),
    "no owner": lambda s, api: api.patch(s.pod, {"metadata": {"ownerReferences": None}}),
    "a toleration": lambda s, api: api.patch(
        s.pod,
        {"spec": {"tolerations": [*s.running.pod()["spec"]["tolerations"], {"operator": "Exists"}]}},
    ),
}  # fmt: skip
ONLY_SANDBOXES: dict[str, Attempt] = {
    "a privileged container": lambda s, api: api.create(
        s.jobs,
        sandboxed(containers=[{"name": "a", "image": "a:1", "securityContext": {"privileged": True}}]),
    ),
    "a privileged first container": lambda s, api: api.create(
        s.jobs,
        sandboxed(initContainers=[{"name": "a", "image": "a:1", "securityContext": {"privileged": True}}]),
    ),
    "the node's files": lambda s, api: api.create(
        s.jobs, sandboxed(volumes=[{"name": "root", "hostPath": {"path": "/"}}])
    ),
    "a token in a volume": lambda s, api: api.create(
        s.jobs,
        sandboxed(
            volumes=[{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]
        ),
    ),
    "the node's network": lambda s, api: api.create(s.jobs, sandboxed(hostNetwork=True)),
    "a token": lambda s, api: api.create(
        s.jobs, without(sandboxed(), "spec", "template", "spec", "automountServiceAccountToken")
    ),
    "root": lambda s, api: api.create(
        s.jobs, without(sandboxed(), "spec", "template", "spec", "securityContext")
    ),
    "no owner": lambda s, api: api.create(s.jobs, without(sandboxed(), "metadata", "ownerReferences")),
    "pods without labels": lambda s, api: api.create(
        s.jobs, without(sandboxed(), "spec", "template", "metadata", "labels")
    ),
}  # fmt: skip


def cases(**tables: dict[str, Attempt]) -> Callable[[Any], Any]:
    """Parametrize by tables of attempts, and what each table's are told."""
    return pytest.mark.parametrize(
        ("attempt", "said"),
        [
            pytest.param(attempt, said.replace("_", " "), id=name)
            for said, table in tables.items()
            for name, attempt in table.items()
        ],
    )


@cases(
    touches_no_other_Jobs_and_pods=ONLY_RUNS,
    activeDeadlineSeconds_and_nothing_else=ONLY_DEADLINE,
    nothing_but_sandboxes=ONLY_SANDBOXES,
)
def test_the_operators_account_does_nothing_else(
    scene: Scene, account: Api, attempt: Attempt, said: str
) -> None:
    before = scene.evidence()
    with pytest.raises(RefusedError, match=said) as refused:
        attempt(scene, account)
    assert refused.value.code == 403
    assert scene.evidence() == before
    assert scene.lab.api.get(f"{scene.jobs}/operators") is None


def test_the_operators_account_does_its_work(scene: Scene, account: Api) -> None:
    account.create(f"{scene.jobs}?dryRun=All", sandboxed())
    run = scene.lab.submit(scene.lab.pool(), namespace=scene.namespace, duration="1h")
    run.reaches("RUNNING")
    pod = f"{scene.pods}/{run.pod()['metadata']['name']}"
    account.patch(pod, {"spec": {"activeDeadlineSeconds": 1}})
    eventually(lambda: run.pod()["status"]["phase"] == "Failed")


def test_the_operators_network_policies_only(scene: Scene, account: Api) -> None:
    path = f"/apis/networking.k8s.io/v1/namespaces/{scene.namespace}/networkpolicies"
    body: Object = {"metadata": {"name": "deny"}, "spec": {"podSelector": {}}}
    scene.lab.api.create(path, body)
    with pytest.raises(RefusedError, match="no other network policies than its own"):
        account.request("PUT", f"{path}/deny", body)
    with pytest.raises(RefusedError, match="no other network policies than its own"):
        account.create(path, {**body, "metadata": {"name": "allow"}})
    account.create(f"{path}?dryRun=All", {**body, "metadata": {"name": "agentjobs-x"}})

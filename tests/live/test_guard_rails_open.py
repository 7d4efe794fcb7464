"""What the guard rails must not be in the way of: Kubernetes' own work on the Jobs and pods of runs."""

import json
from collections.abc import Iterator

import pytest

from deploy.local.install import workload_namespace
from deploy.local.local import LocalCluster
from tests.live.api import Object, RefusedError
from tests.live.guarded import OURS, Scene, grant, job, labels, node, pod_spec, rule, run_on
from tests.live.lab import Lab, Run, unique
from tests.live.support import eventually

CONTROLLER = "system:serviceaccount:kube-system:"
KUBERNETES = ("system:kube-", "system:node:", CONTROLLER)


@pytest.fixture(scope="module")
def scene(lab: Lab) -> Scene:
    return Scene.set(lab)


@pytest.fixture(scope="module", autouse=True)
def stranded(lab: Lab, scene: Scene) -> tuple[Run, str]:
    """A run and its pod, whose node is taken away: first, since such pods are sought only now and then."""
    place = node(lab)
    run = run_on(lab, place, scene.namespace)
    pod = pod_path(run)
    lab.api.delete(f"/api/v1/nodes/{place}")
    return run, pod


@pytest.fixture(scope="module", autouse=True)
def nobody_was_refused(lab: Lab) -> Iterator[None]:
    """Of all that Kubernetes' own parts did while these tests ran, nothing was refused."""
    before = len(lab.audit.writes())
    yield
    seen = [write for write in lab.audit.writes()[before:] if write.user.startswith(KUBERNETES)]
    assert {write.user for write in seen} >= {
        f"{CONTROLLER}job-controller",
        f"{CONTROLLER}generic-garbage-collector",
        f"{CONTROLLER}namespace-controller",
        f"{CONTROLLER}node-controller",
        f"{CONTROLLER}pod-garbage-collector",
        "system:kube-scheduler",
    }
    ours = ("jobs", "pods", "jobs/status", "pods/status", "pods/binding", "pods/eviction")
    assert [write for write in seen if write.resource in ours and write.code in (403, 422)] == []


def gone(run: Run) -> bool:
    """Whether nothing is left of it."""
    return run.job() is None and run.pods() == []


def pod_path(run: Run) -> str:
    return f"/api/v1/namespaces/{run.namespace}/pods/{run.pod()['metadata']['name']}"


def removed(run: Run, pod: str) -> bool:
    """Whether a pod is gone; another may have come in its place."""
    return run.api.get(pod) is None


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_deleting_an_agentjob_takes_all_of_it(scene: Scene, propagation: str) -> None:
    run = delete_one(scene, propagation)
    eventually(lambda: gone(run))


def test_deleting_an_agentjob_may_leave_an_orphan(scene: Scene) -> None:
    run = delete_one(scene, "Orphan")

    def orphaned() -> bool:
        job = run.job()
        return job is not None and not job["metadata"].get("ownerReferences")

    eventually(orphaned)
    assert run.pod()["status"]["phase"] == "Running"


def delete_one(scene: Scene, propagation: str) -> Run:
    """Have somebody who may just that delete an AgentJob that runs."""
    run = scene.lab.submit(scene.lab.pool(), namespace=scene.namespace, duration="1h")
    run.reaches("RUNNING")
    with scene.person(rule("agentjobs.dev", "agentjobs", "delete")) as owner:
        owner.delete(run.path, propagation)
    return run


def test_a_namespace_is_deleted_with_its_runs(lab: Lab) -> None:
    namespace = lab.namespace()
    lab.submit(lab.pool(), namespace=namespace, duration="1h").reaches("RUNNING")
    lab.api.delete(f"/api/v1/namespaces/{namespace}")
    eventually(lambda: lab.api.get(f"/api/v1/namespaces/{namespace}") is None, seconds=60)


@pytest.mark.parametrize("by", ["an administrator", "a keeper of nodes"])
def test_a_node_is_drained(scene: Scene, by: str) -> None:
    lab, place = scene.lab, node(scene.lab)
    run = run_on(lab, place, scene.namespace)
    keeper = unique("keeper")
    grant(
        lab,
        keeper,
        rule("", "nodes", "get list patch"),
        rule("", "pods", "get list"),
        rule("", "pods/eviction", "create"),
        namespace=None,
    )
    who = ["--as", keeper] if by == "a keeper of nodes" else []
    drain = ["drain", place, "--delete-emptydir-data", "--timeout=30s", *who]
    out = lab.cluster.kubectl(*drain)
    assert f"evicting pod {scene.namespace}/{run.job_name}" in out
    assert f"node/{place} drained" in out


def test_an_administrator_may_still_delete_a_pod(scene: Scene) -> None:
    run = scene.lab.submit(scene.lab.pool(), namespace=scene.namespace, duration="1h")
    run.reaches("RUNNING")
    pod = pod_path(run)
    scene.lab.api.request("DELETE", pod)
    eventually(lambda: removed(run, pod))


def test_a_taint_evicts(scene: Scene) -> None:
    lab, place = scene.lab, node(scene.lab)
    run = run_on(lab, place, scene.namespace)
    pod = pod_path(run)
    taint = {"key": "example.com/broken", "effect": "NoExecute"}
    lab.api.patch(f"/api/v1/nodes/{place}", {"spec": {"taints": [taint]}})
    eventually(lambda: removed(run, pod))


def test_the_scheduler_preempts(scene: Scene) -> None:
    """What is more urgent than every run, such as a daemon of the node's, takes the place of one."""
    lab, place = scene.lab, node(scene.lab)
    run = run_on(lab, place, scene.namespace, resources={"gpuCount": 1})
    pod, urgent = pod_path(run), unique("urgent")
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    lab.make(classes, {"metadata": {"name": urgent}, "value": 1000000})
    gpus = lab.api.request("GET", f"/api/v1/nodes/{place}")["status"]["allocatable"]["nvidia.com/gpu"]
    spec = pod_spec(
        priorityClassName=urgent,
        containers=[{"name": "all", "image": "all:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}}],
        nodeSelector={"kubernetes.io/hostname": place},
        tolerations=[{"operator": "Exists"}],
    )
    lab.api.create(scene.pods, {"metadata": {"name": place}, "spec": spec})
    eventually(lambda: lab.api.request("GET", f"{scene.pods}/{place}")["spec"].get("nodeName"))
    eventually(lambda: removed(run, pod))


@pytest.mark.parametrize(
    ("who", "patch"),
    [
        ("job-controller", {"metadata": {"finalizers": None}}),
        ("generic-garbage-collector", {"metadata": {"ownerReferences": None}}),
        ("ttl-after-finished-controller", None),
        ("namespace-controller", None),
        ("pod-garbage-collector", None),
        ("node-controller", None),
    ],
)
def test_controllers_have_their_way(scene: Scene, who: str, patch: Object | None) -> None:
    """By the rails; whether RBAC gives them so much is Kubernetes' own business."""
    path = f"{scene.job if who.startswith('ttl') else scene.pod}?dryRun=All"
    with scene.user(f"{CONTROLLER}{who}") as controller:
        if patch is None:
            controller.request("DELETE", path)
        else:
            controller.patch(path, patch)


def test_a_network_plugin_writes_into_the_status_of_pods(scene: Scene) -> None:
    """An account that may do so everywhere annotates; our labels are beyond it."""
    status = rule("", "pods/status", "patch")
    with scene.person(status, everywhere=True) as plugin, scene.person(status) as neighbour:
        note = {"metadata": {"annotations": {"cni.example.com/address": "10.0.0.1/32"}}}
        plugin.patch(f"{scene.pod}/status", note)
        for api, body in ((plugin, labels({"agentjobs.dev/team": "other"})), (neighbour, note)):
            with pytest.raises(RefusedError, match="mark the Jobs and pods of runs"):
                api.patch(f"{scene.pod}/status", body)


def test_a_real_kubelet_runs_and_ends_what_is_ours(real_cluster: LocalCluster) -> None:
    """It acts as a node, and reports, finishes and removes the pod of a Job with our labels."""
    namespace = unique("guarded")
    workload_namespace(real_cluster.kubectl, namespace)
    kubectl = real_cluster.kubectl
    kubectl("wait", "--for=create", "serviceaccount/default", "--namespace", namespace)
    spec = pod_spec(
        automountServiceAccountToken=False,
        securityContext={
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        terminationGracePeriodSeconds=1,
        containers=[
            {
                "name": "agent",
                "image": "agentjobs.local/compute:dev",
                "command": ["python3", "-c", "import sys, time; time.sleep(float(sys.argv[1]))", "0"],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    )
    for name, seconds in (("ends", "0"), ("endless", "3600")):
        made = job(name, OURS, OURS)
        spec["containers"][0]["command"][-1] = seconds
        made["spec"]["template"]["spec"] = spec
        manifest = {"apiVersion": "batch/v1", "kind": "Job", **made}
        kubectl("create", "-f", "-", "--namespace", namespace, stdin=json.dumps(manifest))
    kubectl("wait", "--for=condition=Complete", "job/ends", "--timeout=60s", "--namespace", namespace)
    kubectl(
        "wait", "--for=jsonpath={.status.ready}=1", "job/endless", "--timeout=60s", "--namespace", namespace
    )
    kubectl("delete", "jobs", "--all", "--namespace", namespace)
    kubectl("wait", "--for=delete", "pods", "--all", "--timeout=60s", "--namespace", namespace)


def test_a_pod_whose_node_is_gone_is_collected(stranded: tuple[Run, str]) -> None:
    eventually(lambda: removed(*stranded), seconds=120)

"""Who may do what, asked of a real API server: the operator, the gateway, and people by their roles."""

from collections.abc import Iterator

import pytest

from deploy.local.local import LocalCluster
from tests.live.api import Api
from tests.live.guarded import OPERATOR, RBAC
from tests.live.lab import unique
from tests.live.support import eventually

GATEWAY = "system:serviceaccount:agentjobs-system:agentjobs-gateway"
GROUPS = {
    **dict.fromkeys(("agentjobs", "agentpools", "agentteams"), "agentjobs.dev"),
    "jobs": "batch",
    "networkpolicies": "networking.k8s.io",
    "leases": "coordination.k8s.io",
    "endpointslices": "discovery.k8s.io",
    "validatingwebhookconfigurations": "admissionregistration.k8s.io",
    "validatingadmissionpolicies": "admissionregistration.k8s.io",
    "flowschemas": "flowcontrol.apiserver.k8s.io",
    "clusterroles": "rbac.authorization.k8s.io",
    "rolebindings": "rbac.authorization.k8s.io",
    "tokenreviews": "authentication.k8s.io",
    "subjectaccessreviews": "authorization.k8s.io",
    "runs": "agentjobs.dev",
}
CLUSTER_WIDE = ("agentpools", "agentteams", "runs")


@pytest.fixture
def api(cluster: LocalCluster) -> Iterator[Api]:
    with Api(cluster) as api:
        yield api


def allowed(api: Api, user: str, namespace: str, request: str) -> bool:
    """Whether a user may do what words say: `patch pods/status`, `get leases name`."""
    verb, what, *name = request.split()
    resource, _, subresource = what.partition("/")
    asked = {
        "namespace": "" if resource in CLUSTER_WIDE else namespace,
        "verb": verb,
        "group": GROUPS.get(resource, ""),
        "resource": resource,
        "subresource": subresource,
        "name": "".join(name),
    }
    groups = ["system:authenticated"]
    review = {"spec": {"user": user, "groups": groups, "resourceAttributes": asked}}
    answer = api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    found: bool = answer["status"]["allowed"]
    return found


@pytest.mark.parametrize(
    ("namespace", "requests"),
    [
        (
            "default",
            [
                *("list agentjobs", "watch agentpools", "get agentteams", "patch agentjobs/status"),
                *("patch agentpools/status", "patch agentteams/status", "create jobs", "delete jobs"),
                *("watch jobs", "patch pods", "list pods", "create events", "get networkpolicies"),
                *("create networkpolicies", "update networkpolicies"),
                "update validatingwebhookconfigurations agentjobs",
            ],
        ),
        (
            "agentjobs-system",
            [
                *("create leases", "get leases agentjobs-operator", "update leases agentjobs-operator"),
                *("create endpointslices", "update endpointslices agentjobs-admission"),
            ],
        ),
    ],
)
def test_the_operator_may(api: Api, namespace: str, requests: list[str]) -> None:
    assert [request for request in requests if not allowed(api, OPERATOR, namespace, request)] == []


@pytest.mark.parametrize("namespace", ["default", "kube-system", "agentjobs-system", ""])
def test_the_operator_may_not(api: Api, namespace: str) -> None:
    requests = [
        *("get secrets", "list secrets", "get configmaps", "create pods", "delete pods", "update pods"),
        *("create pods/exec", "get pods/log", "create pods/eviction", "patch pods/status"),
        *("patch pods/ephemeralcontainers", "update jobs", "patch jobs", "deletecollection jobs"),
        *("create agentjobs", "update agentjobs", "patch agentjobs", "delete agentjobs"),
        *("update agentpools", "patch agentteams", "delete networkpolicies", "patch nodes"),
        *("update leases other", "delete leases agentjobs-operator", "patch leases agentjobs-operator"),
        *("update endpointslices other", "create validatingwebhookconfigurations"),
        *("update validatingwebhookconfigurations other", "update validatingadmissionpolicies"),
        *("delete validatingwebhookconfigurations agentjobs", "update flowschemas", "bind clusterroles"),
        *("create rolebindings", "impersonate users", "create serviceaccounts/token", "create tokenreviews"),
        *("update runs/jobs", "create runs/pods", "delete runs/pods"),
    ]
    assert [request for request in requests if allowed(api, OPERATOR, namespace, request)] == []
    beyond = ["create leases", "get leases agentjobs-operator", "create endpointslices"]
    if namespace != "agentjobs-system":
        assert [request for request in beyond if allowed(api, OPERATOR, namespace, request)] == []


def test_the_gateway_reads_and_asks_who_is_there(api: Api) -> None:
    may = [
        *("list agentjobs", "watch agentjobs", "get agentpools", "watch agentteams", "get pods/log"),
        *("create tokenreviews", "create subjectaccessreviews"),
    ]
    may_not = [
        *("create agentjobs", "patch agentjobs", "delete agentjobs", "patch agentjobs/status", "get pods"),
        *("create jobs", "get secrets", "create pods/exec", "impersonate users", "update agentteams"),
    ]
    assert [request for request in may if not allowed(api, GATEWAY, "default", request)] == []
    assert [request for request in may_not if allowed(api, GATEWAY, "default", request)] == []


READS = ["get agentjobs", "list agentjobs", "watch agentjobs"]
WRITES = [f"{verb} agentjobs" for verb in ("create", "update", "patch", "delete", "deletecollection")]
SETS_LIMITS = ["create agentpools", "patch agentteams", "delete agentpools"]
LOOKS_AT_LIMITS = ["list agentpools", "watch agentteams"]
NEVER = ["patch agentjobs/status", "patch agentteams/status", "create runs/jobs", "update runs/pods"]


@pytest.mark.parametrize(
    ("role", "everywhere", "may", "may_not"),
    [
        ("view", False, READS, [*WRITES, *LOOKS_AT_LIMITS, *SETS_LIMITS]),
        ("view", True, [*READS, *LOOKS_AT_LIMITS], [*WRITES, *SETS_LIMITS]),
        ("edit", False, [*READS, *WRITES], [*LOOKS_AT_LIMITS, *SETS_LIMITS]),
        ("edit", True, [*READS, *WRITES, *LOOKS_AT_LIMITS], SETS_LIMITS),
        ("admin", False, [*READS, *WRITES], [*LOOKS_AT_LIMITS, *SETS_LIMITS]),
        ("admin", True, [*READS, *WRITES, *LOOKS_AT_LIMITS, *SETS_LIMITS], []),
    ],
)
@pytest.mark.parametrize("prefix", ["", "agentjobs-"])
def test_people(
    api: Api, prefix: str, role: str, everywhere: bool, may: list[str], may_not: list[str]
) -> None:
    """The role of Kubernetes and ours of the same name give the same."""
    person = unique("person")
    binding = {
        "metadata": {"name": person},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": prefix + role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": person}],
    }
    kind = "clusterrolebindings" if everywhere else "namespaces/default/rolebindings"
    api.create(f"{RBAC}/{kind}", binding)
    # Kubernetes collects roles into its own a moment after they came.
    eventually(lambda: [r for r in may if not allowed(api, person, "default", r)] == [])
    assert [r for r in (*may_not, *NEVER) if allowed(api, person, "default", r)] == []
    api.delete(f"{RBAC}/{kind}/{person}")

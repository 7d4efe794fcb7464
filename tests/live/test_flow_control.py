"""Lanes of the API server: a flood of creates waits in its own, never in the operator's."""

import contextlib
import re

import pytest

from deploy.local.local import LocalCluster
from tests.live.api import AGENTS, Api, RefusedError
from tests.live.guarded import OPERATOR

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
ROBOT = "system:serviceaccount:ci:robot"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/agentjobs-system/leases/agentjobs-operator"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/agentjobs"


LANES = {
    "agentjobs-operator": "agentjobs-operator",
    "agentjobs-leadership": "leader-election",
    "agentjobs-submissions": "agentjobs-submissions",
    "global-default": "global-default",
}


@pytest.mark.parametrize(
    ("user", "method", "path", "schema"),
    [
        (OPERATOR, "GET", f"{AGENTS}/agentjobs", "agentjobs-operator"),
        (OPERATOR, "POST", "/apis/batch/v1/namespaces/default/jobs", "agentjobs-operator"),
        (OPERATOR, "PATCH", f"{AGENTS}/agentpools/default/status", "agentjobs-operator"),
        (OPERATOR, "GET", "/version", "agentjobs-operator"),
        (OPERATOR, "GET", LEASE, "agentjobs-leadership"),
        (OPERATOR, "GET", HOOKS, "agentjobs-leadership"),
        ("jane", "POST", f"{AGENTS}/namespaces/default/agentjobs", "agentjobs-submissions"),
        (ROBOT, "PATCH", f"{AGENTS}/namespaces/ci/agentjobs/x", "agentjobs-submissions"),
        ("jane", "GET", f"{AGENTS}/namespaces/default/agentjobs", "global-default"),
    ],
)
def test_lanes(cluster: LocalCluster, user: str, method: str, path: str, schema: str) -> None:
    """Told by the answer's headers, whatever becomes of the request: its lane is chosen first."""
    with Api(cluster, user) as api, Api(cluster) as admin:
        with contextlib.suppress(RefusedError):
            api.request(method, path, None if method == "GET" else {})
        lanes = {
            "X-Kubernetes-PF-FlowSchema-UID": f"{FLOW}/flowschemas/{schema}",
            "X-Kubernetes-PF-PriorityLevel-UID": f"{FLOW}/prioritylevelconfigurations/{LANES[schema]}",
        }
        for header, lane in lanes.items():
            assert api.headers[header] == admin.request("GET", lane)["metadata"]["uid"], header


def test_every_lane_has_seats(cluster: LocalCluster) -> None:
    text = cluster.kubectl("get", "--raw", "/metrics")
    pattern = r'^apiserver_flowcontrol_nominal_limit_seats{priority_level="(agentjobs-\w+)"} (\d+)'
    seats = {level: int(count) for level, count in re.findall(pattern, text, re.MULTILINE)}
    assert seats.keys() == {"agentjobs-operator", "agentjobs-submissions"}
    assert min(seats.values()) >= 10

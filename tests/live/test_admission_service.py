"""Admission as in a cluster: the API server finds the leader through a Service without selector."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from deploy.local import admission, install, node, node_host
from deploy.local.cluster import ROOT
from deploy.local.local import LocalCluster
from deploy.local.ports import free_ports
from tests.live.api import AGENTS, Api, NoAnswerError, Object, RefusedError
from tests.live.lab import agentjob, unique
from tests.live.support import eventually

AGENTJOBS = f"{AGENTS}/namespaces/default/agentjobs"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/agentjobs-system/endpointslices/agentjobs-admission"


@pytest.fixture
def address(real_cluster: LocalCluster) -> Iterator[str]:
    """Stands for a pod's: an address that endpoints may have, which those of the loopback network may not."""
    real_cluster.kubectl("apply", "-f", str(admission.MANIFEST))
    address = node_host.address(node.identify(real_cluster.state))
    assert address is not None
    yield address
    real_cluster.kubectl("delete", "-f", str(admission.MANIFEST))


@pytest.fixture
def leader(real_cluster: LocalCluster, address: str) -> Iterator[subprocess.Popen[bytes]]:
    """An operator with a pod's settings."""
    config = real_cluster.cluster.operator_kubeconfig
    install.operator_kubeconfig(real_cluster.kubectl, config)
    reviews, numbers = free_ports(2)
    environment = {
        **real_cluster.cluster.environment(),
        "KUBECONFIG": str(config),
        "AGENTJOBS_POD_IP": address,
        "AGENTJOBS_ADMISSION_ADDRESS": f"{address}:{reviews}",
        "AGENTJOBS_METRICS_ADDRESS": f"127.0.0.1:{numbers}",
    }
    with (real_cluster.cluster.logs / "service-operator.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "agentjobs"], env=environment, stdout=log, stderr=log, cwd=ROOT
        )
    yield process
    process.kill()
    process.wait()


def test_the_leader_is_asked_through_the_service(
    real_cluster: LocalCluster, address: str, leader: subprocess.Popen[bytes]
) -> None:
    with Api(real_cluster) as api:

        def submit(**spec: object) -> Object:
            manifest = agentjob(unique("served"), "default", "1s", "", 0, spec)
            return api.create(f"{AGENTJOBS}?dryRun=All", manifest)

        eventually(submit, seconds=60)
        with pytest.raises(RefusedError, match=r"spec\.inputPayload") as refused:
            submit(inputPayload={"text": "x" * 70_000})
        assert refused.value.code == 422
        endpoints = api.request("GET", SLICE)["endpoints"]
        assert [endpoint["addresses"] for endpoint in endpoints] == [[address]]
        leader.terminate()
        assert leader.wait(timeout=20) == 0
        assert api.request("GET", SLICE).get("endpoints") in (None, [])
        with pytest.raises(NoAnswerError, match=admission.UNANSWERED):
            submit()

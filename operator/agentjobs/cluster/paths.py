"""Where objects are found on the API server."""

from __future__ import annotations

from agentjobs.apis.names import API_VERSION

AGENTJOBS = f"/apis/{API_VERSION}/agentjobs"
AGENTPOOLS = f"/apis/{API_VERSION}/agentpools"
AGENTTEAMS = f"/apis/{API_VERSION}/agentteams"
JOBS = "/apis/batch/v1/jobs"
PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"


def agentjob(namespace: str, name: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/{namespace}/agentjobs/{name}"


def jobs(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def events(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/events"


def network_policies(namespace: str) -> str:
    return f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"


def lease(namespace: str, name: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"


def webhook_configuration(name: str) -> str:
    return f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}"


def endpoint_slice(namespace: str, name: str) -> str:
    return f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/{name}"

"""The NetworkPolicy of a pool's runs in a namespace: nothing in, and out only what the pool's mode allows."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Address
from typing import Any

from agentjobs.apis.names import LABEL_POOL, LABEL_RUN_UID
from agentjobs.apis.sandbox import Egress, Sandbox

# Never reachable from a sandbox, whatever the mode: private and link-local ranges, carrier-grade NAT
# (clusters use it for pods) and the metadata services of the large clouds.
FORBIDDEN_IPV4 = (
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
)
# A gateway between the families (NAT64) reaches each of them under another name.
_TRANSLATED = tuple(
    f"{IPv6Address(int(IPv6Address('64:ff9b::')) + int(network.network_address))}/{96 + network.prefixlen}"
    for network in map(IPv4Network, FORBIDDEN_IPV4)
)
FORBIDDEN_IPV6 = ("::1/128", "64:ff9b:1::/48", "fc00::/7", "fe80::/10", *_TRANSLATED)


def policy_name(pool: str) -> str:
    """Return the name of a pool's NetworkPolicy; the same in every namespace."""
    return f"agentjobs-{pool}"


def network_policy(namespace: str, pool: str, sandbox: Sandbox) -> dict[str, Any]:
    """Return the NetworkPolicy that must exist before the first Job of a pool in a namespace.

    It selects only pods that carry our labels, so other workloads of the namespace are untouched.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": policy_name(pool),
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "agentjobs", LABEL_POOL: pool},
        },
        "spec": {
            "podSelector": {
                "matchLabels": {LABEL_POOL: pool},
                "matchExpressions": [{"key": LABEL_RUN_UID, "operator": "Exists"}],
            },
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": _egress(sandbox),
        },
    }


def _egress(sandbox: Sandbox) -> list[dict[str, Any]]:
    match sandbox.egress:
        case Egress.NONE:
            return []
        case Egress.DNS:
            return [_dns()]
        case Egress.INTERNET:
            return [_dns(), _internet()]
        case Egress.PROXY:
            assert sandbox.proxy is not None  # the schema requires it with this mode
            return [
                {
                    "to": [{"ipBlock": {"cidr": sandbox.proxy.cidr}}],
                    "ports": [{"protocol": "TCP", "port": sandbox.proxy.port}],
                }
            ]


def _dns() -> dict[str, Any]:
    # Only the cluster's own resolver: a rule without `to` would mean every address.
    return {
        "to": [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
                "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
            }
        ],
        "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
    }


def _internet() -> dict[str, Any]:
    return {
        "to": [
            {"ipBlock": {"cidr": "0.0.0.0/0", "except": list(FORBIDDEN_IPV4)}},
            {"ipBlock": {"cidr": "::/0", "except": list(FORBIDDEN_IPV6)}},
        ]
    }

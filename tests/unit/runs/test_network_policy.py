"""The NetworkPolicy of each egress mode."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from agentjobs.apis.sandbox import Sandbox
from agentjobs.runs.network import network_policy

JSON = dict[str, Any]

DNS = {
    "to": [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
        }
    ],
    "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
}
PROXY = {"egress": "proxy", "proxy": {"cidr": "10.1.2.3/32", "port": 3128}}


def egress(sandbox: JSON) -> list[JSON]:
    spec = network_policy("agents", "gpu", Sandbox.model_validate(sandbox))["spec"]
    rules: list[JSON] = spec["egress"]
    return rules


@pytest.mark.parametrize("sandbox", [{}, {"egress": "dns"}, {"egress": "internet"}, PROXY])
def test_it_selects_the_pools_runs_alone_and_lets_nothing_in(sandbox: JSON) -> None:
    made = network_policy("agents", "gpu", Sandbox.model_validate(sandbox))
    assert made["metadata"] == {
        "name": "agentjobs-gpu",
        "namespace": "agents",
        "labels": {"app.kubernetes.io/managed-by": "agentjobs", "agentjobs.dev/pool": "gpu"},
    }
    assert made["spec"]["podSelector"] == {
        "matchLabels": {"agentjobs.dev/pool": "gpu"},
        "matchExpressions": [{"key": "agentjobs.dev/run-uid", "operator": "Exists"}],
    }
    assert made["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert made["spec"]["ingress"] == []


@pytest.mark.parametrize("sandbox", [{"egress": "dns"}, {"egress": "internet"}, PROXY])
def test_no_rule_is_open_to_everywhere(sandbox: JSON) -> None:
    assert all(rule["to"] for rule in egress(sandbox))


def test_none_lets_nothing_out() -> None:
    assert egress({}) == []


def test_dns_lets_out_to_the_clusters_name_servers() -> None:
    assert egress({"egress": "dns"}) == [DNS]


def test_proxy_lets_out_to_the_proxy_alone() -> None:
    to = [{"ipBlock": {"cidr": "10.1.2.3/32"}}]
    assert egress(PROXY) == [{"to": to, "ports": [{"protocol": "TCP", "port": 3128}]}]


@pytest.mark.parametrize(
    ("address", "reachable"),
    [
        ("1.1.1.1", True),
        ("10.0.0.1", False),
        ("100.64.0.1", False),
        ("127.0.0.1", False),
        ("168.63.129.16", False),
        ("168.63.129.17", True),
        ("169.254.169.254", False),
        ("172.16.0.1", False),
        ("172.32.0.1", True),
        ("192.168.1.1", False),
        ("2606:4700::1111", True),
        ("::1", False),
        ("fd00::1", False),
        ("fe80::1", False),
        ("fd00:ec2::254", False),
        # What a gateway between the families makes of 169.254.169.254, 10.0.0.1 and 1.1.1.1.
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b::a00:1", False),
        ("64:ff9b::101:101", True),
    ],
)
def test_internet_lets_out_to_public_addresses_alone(address: str, reachable: bool) -> None:
    dns, internet = egress({"egress": "internet"})
    assert dns == DNS
    ip = ipaddress.ip_address(address)
    blocks = [to["ipBlock"] for to in internet["to"]]
    for block in blocks:
        whole = ipaddress.ip_network(block["cidr"])
        for part in block["except"]:
            assert ipaddress.ip_network(part).subnet_of(whole)  # type: ignore[arg-type]
    inside = [
        ip in ipaddress.ip_network(block["cidr"])
        and not any(ip in ipaddress.ip_network(part) for part in block["except"])
        for block in blocks
    ]
    assert any(inside) == reachable

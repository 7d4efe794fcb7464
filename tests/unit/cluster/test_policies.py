"""The NetworkPolicies that stand before the first Job: written once, and again where they differ."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from agentjobs.apis.sandbox import Sandbox
from agentjobs.cluster import network
from agentjobs.cluster.network import NetworkPolicies
from agentjobs.cluster.session import Session
from agentjobs.errors import ApiError
from agentjobs.runs.network import network_policy
from tests.unit.cluster.fake_api import FakeApi, RefusedError

NONE = network_policy("agents", "default", Sandbox())
INTERNET = network_policy("agents", "default", Sandbox.model_validate({"egress": "internet"}))


def writes(api: FakeApi) -> list[str]:
    return [request.verb.split()[0] for request in api.requests if not request.verb.startswith("get")]


async def test_it_is_created_once_for_many_runs(api: FakeApi, session: Session) -> None:
    policies = NetworkPolicies(session)
    await asyncio.gather(*(policies.ensure(NONE) for _ in range(5)))
    assert writes(api) == ["create"]
    assert len(api.requests) == 2


async def test_it_follows_the_pool_and_outlives_the_operator(api: FakeApi, session: Session) -> None:
    for wanted in (NONE, INTERNET, INTERNET):
        # As the API server stores it: empty lists are left out.
        await NetworkPolicies(session).ensure(wanted)
        stored = api.get("networkpolicies", "agentjobs-default")
        spec = {key: value for key, value in stored["spec"].items() if value != []}
        api.put("networkpolicies", {**stored, "spec": spec})
    assert writes(api) == ["create", "update"]
    assert api.get("networkpolicies", "agentjobs-default")["spec"]["egress"] == INTERNET["spec"]["egress"]


async def test_what_somebody_removed_is_back_within_a_minute(
    api: FakeApi, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(network, "time", SimpleNamespace(monotonic=lambda: now))
    policies = NetworkPolicies(session)
    await policies.ensure(NONE)
    api.delete("networkpolicies", "agentjobs-default")
    now = 59.0
    await policies.ensure(NONE)
    assert writes(api) == ["create"]
    now = 61.0
    await policies.ensure(NONE)
    assert writes(api) == ["create", "create"]


async def test_what_cannot_be_read_is_an_error_and_not_remembered(api: FakeApi, session: Session) -> None:
    policies = NetworkPolicies(session)
    api.refuse("get networkpolicies", RefusedError(503))
    with pytest.raises(ApiError):
        await policies.ensure(NONE)
    await policies.ensure(NONE)
    assert writes(api) == ["create"]

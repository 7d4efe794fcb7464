"""How often the reflector asks a server that refuses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from agentjobs.cluster import reflector
from tests.unit.cluster.fake_api import FakeApi, HungUpError, RefusedError
from tests.unit.cluster.followed import Followed, synced


@pytest.mark.parametrize(
    "refusal",
    [
        RefusedError(500, "InternalError", "etcdserver: request timed out"),
        RefusedError(403, "Forbidden", "not yours"),
        RefusedError(410, "Expired", "too old resource version"),
        HungUpError(),
    ],
    ids=["error", "forbidden", "expired", "hung up"],
)
@pytest.mark.parametrize("verb", ["list jobs", "watch jobs"])
async def test_refusals_are_answered_by_longer_and_longer_pauses(
    api: FakeApi, followed: Followed, pauses: list[float], verb: str, refusal: Exception
) -> None:
    # The client itself asks twice before it takes a connection for broken.
    api.refuse(verb, refusal, times=16 if isinstance(refusal, HungUpError) else 8)
    async with followed.running():
        await synced(api, followed)
    assert pauses == [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]


async def test_a_watch_that_ends_at_once_is_not_begun_at_once(
    api: FakeApi, followed: Followed, pauses: list[float]
) -> None:
    async with followed.running():
        for number in range(1, 5):
            await api.until(lambda number=number: api.count("watch jobs") == number)  # type: ignore[misc]
            api.say("jobs", None)
        await api.until(lambda: api.count("watch jobs") == 5)
    assert pauses == [0, 0.1, 0.2, 0.4, 0.8]


async def test_after_a_good_connection_the_pause_is_short_again(
    api: FakeApi, followed: Followed, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(reflector, "time", SimpleNamespace(monotonic=lambda: now))
    api.refuse("list jobs", RefusedError(500), times=5)
    async with followed.running():
        await synced(api, followed)
        now = 300.0
        api.say("jobs", None)
        await api.until(lambda: api.count("watch jobs") == 2)
    assert pauses == [0, 0.1, 0.2, 0.4, 0.8, 1.6, 0.1]


async def test_what_the_server_asks_to_wait_is_waited(
    api: FakeApi, followed: Followed, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "random", SimpleNamespace(uniform=min))
    api.refuse("list jobs", RefusedError(429, "TooManyRequests", "later", {"Retry-After": "7"}))
    async with followed.running():
        await synced(api, followed)
    assert pauses == [0, 7]

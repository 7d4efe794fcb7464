"""The fake API server over HTTP, and a session with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace

import kopf
import pytest

from agentjobs.cluster import reflector
from agentjobs.cluster import session as sessions
from agentjobs.cluster.session import Session
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.fake_server import served
from tests.unit.cluster.followed import Followed


@pytest.fixture
async def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
async def session(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Session]:
    async with served(api) as url, Session() as session:
        monkeypatch.setattr(sessions, "log_in", lambda: kopf.ConnectionInfo(server=url))
        yield session


@pytest.fixture
def followed(session: Session) -> Followed:
    return Followed(session)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before each connect, in seconds; none of them is waited for, and none is jittered."""
    paused: list[float] = []

    async def sleep(seconds: float) -> None:
        paused.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(reflector, "asyncio", SimpleNamespace(sleep=sleep, Event=asyncio.Event))
    monkeypatch.setattr(reflector, "random", SimpleNamespace(uniform=lambda low, high: (low + high) / 2))
    return paused

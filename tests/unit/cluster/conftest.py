"""The fake API server over HTTP, and a session with it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import kopf
import pytest

from agentjobs.cluster import session as sessions
from agentjobs.cluster.session import Session
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.fake_server import served


@pytest.fixture
async def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
async def session(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Session]:
    async with served(api) as url, Session() as session:
        monkeypatch.setattr(sessions, "log_in", lambda: kopf.ConnectionInfo(server=url))
        yield session

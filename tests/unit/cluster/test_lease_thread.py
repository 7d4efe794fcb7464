"""The Lease's own thread: it works, and ends the process, while everything else hangs."""

from __future__ import annotations

import asyncio
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import NoReturn

import kopf
import pytest

from agentjobs.cluster import lease as leases
from agentjobs.cluster import session as sessions
from agentjobs.cluster.lease import Lease
from agentjobs.cluster.session import Session
from tests.unit.cluster.candidates import released
from tests.unit.cluster.fake_api import FakeApi, HungUpError, Request
from tests.unit.cluster.fake_server import served


class Elsewhere:
    """The fake API server in a thread of its own."""

    def __init__(self) -> None:
        self.url = ""
        self.renewed = threading.Semaphore(0)
        self.hangs_up = False
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        self._loop, self._done = asyncio.get_running_loop(), asyncio.Event()
        api = FakeApi()
        released(api)
        api.rules.append(self._rule)
        async with served(api) as self.url:
            self._ready.set()
            await self._done.wait()

    def _rule(self, request: Request) -> None:
        if self.hangs_up:
            raise HungUpError
        if request.method == "PUT":
            self.renewed.release()

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(10)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    server = Elsewhere()
    server.start()
    monkeypatch.setattr(sessions, "log_in", lambda: kopf.ConnectionInfo(server=server.url))
    monkeypatch.setattr(leases, "_RENEW_SECONDS", 0.05)
    yield server
    server.stop()


async def no_floor(_: Session) -> int:
    return 0


def test_it_is_renewed_and_its_loss_told_while_no_event_loop_turns(
    elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "HELD_SECONDS", 1.0)
    lost = queue.Queue[str]()

    def end(reason: str) -> NoReturn:
        lost.put(reason)
        while True:
            threading.Event().wait()

    lease = Lease("a", no_floor, lost=end)
    lease.start()
    asyncio.run(lease.acquired())
    for _ in range(5):
        assert elsewhere.renewed.acquire(timeout=10)
    assert lease.held
    elsewhere.hangs_up = True
    assert lost.get(timeout=10).startswith("the Lease was not renewed")


def test_it_is_given_back_at_the_request_of_another_loop(elsewhere: Elsewhere) -> None:
    lease = Lease("a", no_floor)

    async def story() -> None:
        lease.start()
        await lease.acquired()
        await lease.release()

    asyncio.run(story())
    assert not lease.held


def test_the_end_does_not_wait_for_a_thread_that_has_the_log() -> None:
    program = """
import logging, threading
from agentjobs.cluster.lease import end_process
logging.basicConfig()
threading.Thread(target=lambda: end_process("lost")).start()
with logging.getLogger().handlers[0].lock:
    threading.Event().wait()
"""
    ended = subprocess.run([sys.executable, "-c", program], timeout=30, check=False)
    assert ended.returncode == 1

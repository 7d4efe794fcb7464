"""Operators that stand for election, in virtual time, each with a clock and a network of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from agentjobs.apis import names
from agentjobs.cluster.lease import Lease, Term
from agentjobs.cluster.leaseobject import NAME
from agentjobs.cluster.session import Session
from tests.unit.cluster.fake_api import JSON, FakeApi
from tests.unit.controller.harness import MemorySession


class EndedError(Exception):
    """The process has ended."""


class Candidate:
    """One operator's process, as far as the Lease is concerned.

    Attributes:
        asleep: seconds that its clock is ahead: so long it stood still, frozen or on a machine that slept.
        ended: why the process ended, "" while it runs.
        term: once it is elected.
    """

    def __init__(
        self, api: FakeApi, identity: str, *, floor: Callable[[], int] = lambda: 0, stands: bool = True
    ) -> None:
        self.session = MemorySession(api)
        self.asleep = 0.0
        self.ended = ""
        self.term: Term | None = None
        self._floor_epoch = floor
        self.lease = Lease(identity, self._floor, lost=self._lost, clock=self.clock, started=self.clock())
        self.running = asyncio.create_task(self._run())
        self._standing = asyncio.create_task(self._stand()) if stands else None

    def clock(self) -> float:
        return asyncio.get_running_loop().time() + self.asleep

    async def _floor(self, _: Session) -> int:
        return self._floor_epoch()

    def _lost(self, reason: str) -> NoReturn:
        self.ended = reason
        raise EndedError

    async def _run(self) -> None:
        with suppress(EndedError):
            await self.lease.run(self.session)

    async def _stand(self) -> None:
        self.term = await self.lease.acquired()

    def stand(self) -> None:
        self._standing = asyncio.create_task(self._stand())

    async def kill(self) -> None:
        """End it as SIGKILL would: it does nothing any more."""
        for task in (self.running, self._standing):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def cut(self) -> None:
        """Cut its network: requests hang."""
        for verb in ("get leases", "create leases", "update leases"):
            self.session.gates[verb] = asyncio.Event()

    async def elected(self, *, within: float) -> Term:
        """Wait until it is elected, `within` so many seconds."""
        await until(lambda: self.term is not None, within)
        assert self.term is not None
        return self.term


async def until(condition: Callable[[], bool], within: float) -> None:
    """Return once a condition holds, looked at a hundred times a second, `within` so many seconds."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110  (time is virtual)
            await asyncio.sleep(0.01)


def stored(api: FakeApi) -> JSON:
    """Return the Lease's spec."""
    spec: JSON = api.get("leases", NAME, namespace=names.SYSTEM_NAMESPACE)["spec"]
    return spec


def store(api: FakeApi, **spec: object) -> None:
    """Write the Lease as a person would."""
    api.put("leases", {"metadata": {"name": NAME}, "spec": spec}, namespace=names.SYSTEM_NAMESPACE)


def delete(api: FakeApi) -> None:
    """Delete the Lease by hand."""
    api.delete("leases", NAME, namespace=names.SYSTEM_NAMESPACE)


def released(api: FakeApi, **spec: object) -> None:
    """Store a Lease that was given back."""
    free = {"holderIdentity": "", "renewTime": "2026-03-02T12:00:00.000000Z", "leaseDurationSeconds": 1}
    store(api, **{**free, **spec})

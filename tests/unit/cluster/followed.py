"""A reflector that is watched: what it tells, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec

from agentjobs.apis import names
from agentjobs.apis.jobrecords import JobRecord
from agentjobs.cluster import paths
from agentjobs.cluster.reflector import Reflector
from agentjobs.cluster.session import Session
from tests.unit.cluster.fake_api import JSON, FakeApi


class Followed:
    """A reflector of Jobs, and what it told, as `+name`, `~name`, `-name`."""

    def __init__(self, session: Session) -> None:
        self.told: list[str] = []
        self.reflector = Reflector(
            session, paths.JOBS, JobRecord, self._changed, selector=names.LABEL_RUN_UID
        )
        self._moved = asyncio.Event()

    def _changed(self, old: JobRecord | None, new: JobRecord | None) -> None:
        record = new or old
        assert record is not None
        self.told.append(("~" if old and new else "+" if new else "-") + record.name)
        self._moved.set()

    @property
    def names(self) -> set[str]:
        return {record.name for record in self.reflector.objects.values()}

    async def until(self, *told: str) -> None:
        """Return when exactly this was told, in this order."""
        async with asyncio.timeout(10):
            while len(self.told) < len(told):
                self._moved.clear()
                await self._moved.wait()
        assert self.told == list(told)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.reflector.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def a_job(name: str, **metadata: object) -> JSON:
    return {"metadata": {"name": name, "labels": {names.LABEL_RUN_UID: name}, **metadata}}


async def synced(api: FakeApi, followed: Followed) -> None:
    async with asyncio.timeout(10):
        await followed.reflector.synced.wait()
    await api.until(lambda: api.watchers)


def encoded(body: JSON) -> bytes:
    return msgspec.json.encode(body)

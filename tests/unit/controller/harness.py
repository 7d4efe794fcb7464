"""The whole operator without kopf and network: its loop, a fake API server in memory, and virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from unittest.mock import patch

import msgspec

from agentjobs.apis import names, times
from agentjobs.apis.records import SettingsRecord
from agentjobs.cluster.lease import Term
from agentjobs.cluster.session import REQUEST_SECONDS, Session
from agentjobs.controller import loop as loops
from agentjobs.controller.loop import Loop
from agentjobs.errors import ApiError
from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.policies import Policy
from tests.unit.cluster.fake_api import JSON, FakeApi, HungUpError, RefusedError, Request
from tests.unit.runs.objects import CREATED

READS = ("get", "list", "watch")
STATUS = "patch agentjobs/status"
CANCELED, CANCELING = "CANCELED CancelRequested", "CANCELING CancelRequested"


def clock() -> int:
    """The time of day: virtual time began at CREATED."""
    return CREATED + round(asyncio.get_running_loop().time() * times.SECOND)


class MemorySession(Session):
    """Speaks to the fake API server without a network.

    Attributes:
        gates: a request of a verb named here is served only once its event is set.
        held: likewise its answer arrives only then.
        lost: the next request of a verb named here is served, but its answer never arrives.
        dies_at: at this request, counted from 1, the process dies: before it is served, or after.
    """

    def __init__(self, api: FakeApi) -> None:
        super().__init__()
        self.api = api
        self.gates: dict[str, asyncio.Event] = {}
        self.held: dict[str, asyncio.Event] = {}
        self.lost: list[str] = []
        self.dies_at: tuple[int, str] | None = None
        self.died = asyncio.Event()
        self._count = 0

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: dict[str, str] | None = None,
        seconds: float = REQUEST_SECONDS,
        **_: Any,
    ) -> bytes:
        request = Request(method, path, params or {}, msgspec.json.decode(msgspec.json.encode(body)))
        try:
            async with asyncio.timeout(seconds):
                return await self._answer(request)
        except TimeoutError as error:
            raise ApiError(0, "NoAnswer", f"{request.verb}: no answer within {seconds} s") from error

    async def _answer(self, request: Request) -> bytes:
        self._count += 1
        await self._die_at(self._count, "before")
        if gate := self.gates.get(request.verb):
            await gate.wait()
        await asyncio.sleep(0)
        try:
            content = self.api.answer(request)
        except RefusedError as refused:
            after = refused.headers.get("Retry-After")
            raise ApiError(
                refused.status, refused.reason, refused.message, float(after) if after else None
            ) from refused
        except HungUpError as error:
            raise ApiError(0, "NoAnswer", "hung up") from error
        if gate := self.held.get(request.verb):
            await gate.wait()
        await self._die_at(self._count, "after")
        if request.verb in self.lost:
            self.lost.remove(request.verb)
            raise ApiError(0, "NoAnswer", "the answer was lost")
        return content

    async def watch(self, path: str, params: dict[str, str], **_: Any) -> AsyncIterator[bytes]:
        try:
            watcher = self.api.watch(Request("GET", path, {**params, "watch": "true"}))
        except RefusedError as refused:
            raise ApiError(refused.status, refused.reason, refused.message) from refused
        try:
            async for line in watcher.run():
                yield line
        finally:
            self.api.close(watcher)

    async def _die_at(self, count: int, moment: str) -> None:
        if self.died.is_set() or self.dies_at == (count, moment):
            self.died.set()
            await asyncio.Event().wait()


class Leading:
    """Takes the place of the Lease.

    Attributes:
        free: whether the operator is elected as soon as it stands for election.
        opens_in: seconds after its election when it may answer admission.
    """

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.free.set()
        self.opens_in = 0.0

    def clock(self) -> float:
        return asyncio.get_running_loop().time()

    async def acquired(self) -> Term:
        await self.free.wait()
        return Term(1, self.clock() + self.opens_in)


class Cluster:
    """What stands around the operator: users, an administrator, a node. Names are those of AgentJobs."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.api.clock = lambda: times.second(clock())
        self.session = MemorySession(self.api)
        self.loop: Loop
        self.leadership = Leading()
        self.make_policy: Callable[[], Policy] = FairShare
        self.pool(maxConcurrency=1)

    @asynccontextmanager
    async def operator(self, **session: Any) -> AsyncIterator[None]:
        """Run the operator as long as the block, from whatever is stored now."""
        self.session = MemorySession(self.api)
        for name, value in session.items():
            setattr(self.session, name, value)
        with patch.object(loops, "now_micros", clock):
            self.loop = Loop(self.session, self.make_policy, self.leadership)
            task = asyncio.create_task(self.loop.run())
            await self.calm()
            assert not task.done(), task.exception()
            yield
            assert not task.done(), task.exception()
            task.cancel()
            await asyncio.wait([task])

    async def die(self, death: tuple[int, str], seconds: float) -> None:
        """Run an operator until it dies at a request, or as long as this; see `MemorySession.dies_at`."""
        async with self.operator(dies_at=death):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.session.died.wait()
            assert sum("status" not in job for job in self.jobs()) <= 2

    async def calm(self) -> None:
        """Return when nothing happens any more but by time."""
        await asyncio.sleep(0.001)

    # -- administrator and users -----------------------------------------------------------------

    def pool(self, name: str = "default", **spec: Any) -> None:
        body = {"metadata": {"name": name}, "spec": {"requireTeams": False, **spec}}
        self.api.put("agentpools", body)

    def team(self, name: str, **spec: Any) -> None:
        self.api.put("agentteams", {"metadata": {"name": name}, "spec": spec})

    def submit(self, name: str, **spec: Any) -> JSON:
        namespace = spec.pop("namespace", "agents")
        body = {"metadata": {"name": name}, "spec": {"agentImage": "agent:1", "teamId": "blue", **spec}}
        return self.api.put("agentjobs", body, namespace=namespace)

    def stored(self, name: str, **status: Any) -> JSON:
        """Store an AgentJob as an operator before this one has left it."""
        return self.api.put("agentjobs", {**self.submit(name), "status": {"observedGeneration": 1, **status}})

    def cancel(self, name: str) -> None:
        self.edit(name, cancel=True)

    def edit(self, name: str, **spec: Any) -> None:
        """Change fields of the spec of a stored AgentJob."""
        stored = self.api.get("agentjobs", name)
        self.api.put("agentjobs", {**stored, "spec": {**stored["spec"], **spec}})

    def status(self, name: str) -> JSON:
        status: JSON = self.api.get("agentjobs", name).get("status", {})
        return status

    def phase(self, name: str) -> str:
        """Phase and reason, such as `PENDING NoFreeSlot`."""
        status = self.status(name)
        return f"{status.get('phase', 'PENDING')} {status.get('reason', '')}".strip()

    # -- Job controller and node -----------------------------------------------------------------

    def jobs(self) -> list[JSON]:
        return list(self.api.objects.get("jobs", {}).values())

    def job(self, name: str) -> JSON:
        (found,) = [
            job for job in self.jobs() if job["metadata"].get("ownerReferences", [{}])[0].get("name") == name
        ]
        return found

    def pod(self, name: str, state: JSON | None = None, **status: Any) -> JSON:
        """Store the pod of a run with its agent's container in this state; the node is `node-1`."""
        job = self.job(name)
        template = job["spec"]["template"]
        containers = {"containerStatuses": [{"name": "agent", "state": state}]} if state else {}
        known = self.api.objects.get("pods", {}).get(f"agents/{name}-pod", {})
        return self.api.put(
            "pods",
            {
                "metadata": {"name": f"{name}-pod", "labels": template["metadata"]["labels"]},
                "spec": {**template["spec"], "nodeName": "node-1", **known.get("spec", {})},
                "status": {**status, **containers},
            },
        )

    def starts(self, name: str) -> None:
        self.pod(name, {"running": {"startedAt": times.second(clock())}}, phase="Running")

    def ends(self, name: str, code: int = 0, message: str = "", **status: Any) -> None:
        now = times.second(clock())
        known = self.api.objects["pods"][f"agents/{name}-pod"]["status"]["containerStatuses"][0]["state"]
        begun = known.get("running", {}).get("startedAt", now)
        state = {"exitCode": code, "message": message, "startedAt": begun, "finishedAt": now}
        self.pod(name, {"terminated": state}, phase="Failed" if code else "Succeeded", **status)
        kind = "Failed" if code else "Complete"
        self.api.put("jobs", {**self.job(name), "status": {"conditions": [{"type": kind, "status": "True"}]}})

    def stops(self, name: str, code: int = 143, message: str = "") -> None:
        """What the node makes of a pod whose time is over."""
        self.ends(name, code, message, reason="DeadlineExceeded")

    async def runs(self, name: str, code: int = 0, message: str = "") -> None:
        """Let a run's pod start and end, with time for the operator in between."""
        await self.calm()
        self.starts(name)
        await self.calm()
        self.ends(name, code, message)
        await self.calm()

    # -- what was written ------------------------------------------------------------------------

    @property
    def writes(self) -> list[str]:
        """Every request of the operator that changes something in runs."""
        apart = ("networkpolicies", "agentpools/status", "agentteams/status")
        verbs = [request.verb.split() for request in self.api.requests]
        return [f"{verb} {kind}" for verb, kind in verbs if verb not in READS and kind not in apart]

    def patches(self, verb: str) -> list[JSON]:
        return [request.body for request in self.api.requests if request.verb == verb]


def conditions(status: JSON) -> dict[str, str]:
    return {each["type"]: each["status"] for each in status["conditions"]}


def record(body: JSON) -> SettingsRecord:
    """A pool or a team as a watch tells of it."""
    return SettingsRecord(msgspec.json.encode(body))


def our_labels(uid: str) -> dict[str, str]:
    return {names.LABEL_RUN_UID: uid, names.LABEL_ATTEMPT: "1"}

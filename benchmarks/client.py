"""A load generator's HTTP client: as light as can be, it shares the machine with what it measures."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, TypeVar

import aiohttp
import msgspec
import uvloop
import yaml

from agentjobs.apis.names import API_VERSION
from agentjobs.apis.runstatus import TERMINAL_PHASES
from deploy.local.cluster import Cluster

T = TypeVar("T")

NAMESPACE = "default"
AGENTJOBS = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/agentjobs"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
IN_FLIGHT = 16


class Named(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str
    creation_timestamp: str


class Phased(msgspec.Struct):
    phase: str = "PENDING"


class Stored(msgspec.Struct):
    """What the generators need of an AgentJob's answer."""

    metadata: Named
    status: Phased = msgspec.field(default_factory=Phased)


class _Event(msgspec.Struct):
    object: Stored


STORED = msgspec.json.Decoder(Stored)
_EVENT = msgspec.json.Decoder(_Event)


class Client:
    """Requests to the API server of a local cluster: as its administrator, or with the operator's token."""

    def __init__(self, cluster: Cluster, *, as_operator: bool = False) -> None:
        tls = ssl.create_default_context(cafile=str(cluster.certificates / "ca.crt"))
        headers = {}
        if as_operator:
            config = yaml.safe_load(cluster.operator_kubeconfig.read_text())
            headers["Authorization"] = f"Bearer {config['users'][0]['user']['token']}"
        else:
            tls.load_cert_chain(cluster.certificates / "admin.crt", cluster.certificates / "admin.key")
        self._server = cluster.server
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=0),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=60),
        )

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()

    async def send(
        self, method: str, path: str, body: bytes | None = None, content_type: str = "application/json"
    ) -> bytes:
        """Return the answer's body; RuntimeError when it is an error: a benchmark then means nothing."""
        headers = {"Content-Type": content_type}
        async with self._http.request(method, self._server + path, data=body, headers=headers) as response:
            content = await response.read()
            if response.status >= 400:
                raise RuntimeError(f"{method} {path}: {response.status} {content[:500].decode()}")
            return content

    async def ends(self) -> AsyncGenerator[str]:
        """Yield the name of each AgentJob whose stored phase is terminal, some twice, as a watch tells."""
        version = ""
        while True:
            # The API server drops a watch that does not keep up; where it was is then where it goes on.
            url = f"{self._server}{AGENTJOBS}?watch=true&resourceVersion={version}"
            async with self._http.get(url, timeout=aiohttp.ClientTimeout(total=None)) as response:
                rest = b""
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in filter(None, lines):
                        stored = _EVENT.decode(line).object
                        version = stored.metadata.resource_version
                        if stored.status.phase in TERMINAL_PHASES:
                            yield stored.metadata.name


async def ended(ends: AsyncGenerator[str], names: Iterable[str]) -> None:
    """Return when all the named ones were among the ends."""
    waiting = set(names)
    async for name in ends:
        waiting.discard(name)
        if not waiting:
            return


def agentjob(name: str, *, team: str = "bench", duration: str = "1s") -> bytes:
    """Return the JSON of an AgentJob for a simulated node, which takes `duration`."""
    return msgspec.json.encode(
        {
            "apiVersion": API_VERSION,
            "kind": "AgentJob",
            "metadata": {"name": name, "annotations": {"sim.agentjobs.dev/duration": duration}},
            "spec": {
                "agentImage": "agentjobs.local/compute:dev",
                "teamId": team,
                "inputPayload": {"question": name, "duration": 1},
            },
        }
    )


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the fastest event loop there is."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def each(items: Iterable[T], work: Callable[[T], Awaitable[object]], workers: int = IN_FLIGHT) -> None:
    """Do `work` for every item, a fixed number of them at a time."""
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker())

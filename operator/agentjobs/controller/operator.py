"""kopf as the shell: start-up, login, settings, probes, clean-up. Shims without logic."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import kopf

from agentjobs.admission.server import Server
from agentjobs.cluster.certificates import Certificates
from agentjobs.cluster.frontdoor import HOST, Address, FrontDoor, last_epoch
from agentjobs.cluster.lease import Lease
from agentjobs.cluster.session import Session, log_in
from agentjobs.controller.loop import Loop
from agentjobs.controller.serve import serve, unready
from agentjobs.scheduling.policies import Policy
from agentjobs.settings import Settings


def registry(loop: Loop, admission_url: str, finish: Callable[[], Awaitable[None]]) -> kopf.OperatorRegistry:
    """Return kopf's handlers around the loop.

    Args:
        admission_url: where our own server answers admission reviews.
        finish: what is to be done before the process ends.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return log_in()

    @kopf.on.startup(registry=handlers)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.admission.server = admission
        settings.scanning.disabled = True  # it handles no kind, so need not follow which there are
        settings.networking.request_timeout = 15
        settings.networking.error_backoffs = _Endless()

    async def admission(_: Any) -> AsyncIterator[kopf.WebhookClientConfig]:
        """kopf's slot for a server: ours is there already, and stays a little longer than kopf's would."""
        yield kopf.WebhookClientConfig(url=admission_url)
        await asyncio.Event().wait()

    @kopf.on.probe(registry=handlers, id="ready")
    def ready(**_: Any) -> str:
        return unready(loop) or "ok"

    @kopf.on.probe(registry=handlers, id="silence")
    def silence(**_: Any) -> float:
        """Seconds since the quietest watch was last heard."""
        return time.monotonic() - min(reflector.heard for reflector in loop.reflectors)

    @kopf.on.cleanup(registry=handlers)
    async def clean_up(**_: Any) -> None:
        await finish()

    return handlers


class _Endless:
    """Pauses before kopf sends a failed request again, without an end: an API server may be down long."""

    def __iter__(self) -> Iterator[float]:
        pause = 0.5
        while True:
            yield pause
            pause = min(10.0, pause * 2)


async def main(settings: Settings, make_policy: Callable[[], Policy]) -> None:
    """Run the operator until SIGTERM or SIGINT; a part that dies ends the whole, to be started again."""
    lease = Lease(settings.identity, last_epoch)
    certificates = Certificates([HOST, settings.dialled_host], settings.tls_dir)
    async with Session(lambda: lease.held) as session:
        address = Address(settings.dialled_host, settings.admission_port, pod=bool(settings.pod_ip))
        door = FrontDoor(session, lease, certificates, address)
        loop = Loop(session, make_policy, lease)

        def closed() -> str | None:
            return loop.boundary.closed() if lease.held else "this is not the leader"

        server = Server(loop.boundary.hooks, lambda: door.prefix, closed)
        parts: list[asyncio.Task[None]] = []
        servers = AsyncExitStack()

        async def finish() -> None:
            await loop.stop(settings.shutdown_seconds)
            await door.leave()
            await lease.release()
            # What of these is younger than kopf it would wait for.
            await servers.aclose()
            for part in parts:
                part.cancel()

        endpoints = serve(loop, door, settings.metrics_host, settings.metrics_port)
        # Around kopf: while the last creates settle, reviews are still refused in words.
        reviews = server.listening(settings.admission_host, settings.admission_port, certificates.ssl_context)
        async with servers, asyncio.TaskGroup() as group:
            await servers.enter_async_context(endpoints)
            port = await servers.enter_async_context(reviews)
            lease.start()
            # Before kopf: at its end it cancels every task that is younger than itself.
            parts += [group.create_task(part) for part in (loop.run(), certificates.run(), _open(door, loop))]
            await loop.started.wait()
            handlers = registry(loop, f"https://{settings.dialled_host}:{port}", finish)
            await kopf.operator(registry=handlers, clusterwide=True, standalone=True)


async def _open(door: FrontDoor, loop: Loop) -> None:
    """Lead API servers here once this process leads."""
    await loop.elected.wait()
    await door.run()

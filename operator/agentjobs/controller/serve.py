"""The operator's own endpoints: /metrics for Prometheus, /healthz and /readyz for the kubelet, and /explain.

The last tells of runs and teams by name, so it answers this machine or pod alone: `kubectl port-forward`, for
which Kubernetes asks for rights, comes from there.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from agentjobs.cluster.frontdoor import FrontDoor
from agentjobs.controller.explain import explained
from agentjobs.controller.loop import Loop, now_micros

_DEAF_SECONDS = 180.0  # no word from a watch for so long: even its silence detection has failed


@asynccontextmanager
async def serve(loop: Loop, door: FrontDoor, host: str, port: int) -> AsyncIterator[None]:
    """Serve the endpoints as long as the block runs.

    Raises:
        OSError: when the address is taken; the message names it.
    """

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        problem = unready(loop)
        role = "opening" if loop.role == "leader" and not door.written.is_set() else loop.role
        return web.Response(text=f"{problem or 'ok'}\nrole: {role}\n", status=503 if problem else 200)

    async def explain(request: web.Request) -> web.Response:
        if not is_near(request.remote):
            return _told(403, "only this machine or pod is answered; use kubectl port-forward")
        if loop.role != "leader":
            return _told(503, f"this operator does not decide, it is: {loop.role}; ask the leader")
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        found = explained(loop, namespace, name, now_micros())
        return web.json_response(found) if found else _told(404, f"there is no AgentJob {namespace}/{name}")

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz), web.get("/readyz", readyz)])
    app.add_routes([web.get("/explain/{namespace}/{name}", explain)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield
    finally:
        await runner.cleanup()


def is_near(remote: str | None) -> bool:
    """Whether an address is this machine's or pod's own."""
    try:
        return ipaddress.ip_address(remote or "").is_loopback
    except ValueError:
        return False


def _told(status: int, message: str) -> web.Response:
    return web.json_response({"message": message}, status=status)


def unready(loop: Loop) -> str | None:
    """Return why the operator should not be relied on now, or None; one that stands by can be relied on."""
    if loop.stopping:
        return "shutting down"
    if not loop.synced.is_set():
        return "the first lists are not complete"
    for reflector in loop.reflectors:
        if time.monotonic() - reflector.heard > _DEAF_SECONDS:
            return f"no word of {reflector.kind} for {_DEAF_SECONDS:.0f} s"
    return None

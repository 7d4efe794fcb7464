"""The fake API server over HTTP, on a loopback port of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from tests.unit.cluster.fake_api import FakeApi, HungUpError, RefusedError, Request


@asynccontextmanager
async def served(api: FakeApi) -> AsyncIterator[str]:
    """Serve as long as the block runs; yields the URL."""

    async def handle(http: web.Request) -> web.StreamResponse:
        content = await http.read()
        body = msgspec.json.decode(content) if content else None
        request = Request(http.method, http.path, dict(http.query), body)
        try:
            if "watch" in request.params:
                return await _watch(api, request, http)
            return web.Response(body=api.answer(request), content_type="application/json")
        except RefusedError as refusal:
            return web.Response(
                status=refusal.status,
                body=refusal.content,
                headers=refusal.headers,
                content_type="application/json",
            )
        except HungUpError:
            assert http.transport is not None
            http.transport.abort()
            return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        for plural in {watcher.plural for watcher in api.watchers}:
            api.say(plural, None)
        await runner.cleanup()


async def _watch(api: FakeApi, request: Request, http: web.Request) -> web.StreamResponse:
    watcher = api.watch(request)
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    try:
        await response.prepare(http)
        async for line in watcher.run():
            await response.write(line + b"\n")
    finally:
        api.close(watcher)
    return response

"""The webhook's server: TLS, one path for each kind, and an answer in bounded time whatever is sent."""

from __future__ import annotations

import asyncio
import hmac
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from agentjobs import metrics
from agentjobs.admission.review import Answer, MalformedError, Request, read, unavailable, written

_log = logging.getLogger(__name__)

Hook = Callable[[Request], Answer]

# An edit carries two objects, each of at most what the API server takes in one request: 3 MiB.
BODY_BYTES = 8 * 1024 * 1024
BODY_SECONDS = 3.0  # what the webhook configuration allows for the whole answer
FIRST_REQUEST_SECONDS = 10.0  # from connecting to the end of the first request's head, TLS included
UNSURE_SECONDS = 0.15  # a watch tells of a deletion, or of a new team, long before that
IDLE_SECONDS = 120.0  # API servers keep a connection for 90 s: it must not be we who close it


class Server:
    """Answers AdmissionReviews.

    Args:
        hooks: what answers for each last segment of the path.
        prefix: returns what stands before it now, `/secret/epoch`; nothing else is answered.
        closed: returns why no question can be answered now, None when they can.
    """

    def __init__(
        self, hooks: Mapping[str, Hook], prefix: Callable[[], str], closed: Callable[[], str | None]
    ) -> None:
        self._hooks = hooks
        self._prefix = prefix
        self._closed = closed
        # Connections that have not sent a whole request's head yet, and what will end them.
        self._silent: dict[object, asyncio.TimerHandle] = {}

    @asynccontextmanager
    async def listening(self, host: str, port: int, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
        """Listen while the block runs; gives the port.

        Raises:
            OSError: the address cannot be used; the message names it.
        """
        app = web.Application(client_max_size=BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, keepalive_timeout=IDLE_SECONDS, lingering_time=1.0)
        await runner.setup()
        loop = asyncio.get_running_loop()

        def connected() -> asyncio.Protocol:
            assert runner.server is not None
            protocol = runner.server()
            self._silent[protocol] = loop.call_later(FIRST_REQUEST_SECONDS, self._give_up, protocol)
            return protocol

        handshake = FIRST_REQUEST_SECONDS if tls is not None else None
        try:
            server = await loop.create_server(
                connected, host, port, ssl=tls, backlog=1024, ssl_handshake_timeout=handshake
            )
            try:
                yield server.sockets[0].getsockname()[1]
            finally:
                server.close()
        finally:
            await runner.cleanup()

    def _give_up(self, protocol: web.RequestHandler) -> None:
        """Close a connection on which nobody asks anything: someone only holds it."""
        del self._silent[protocol]
        protocol.force_close()

    async def _handle(self, http: web.Request) -> web.Response:
        if (timer := self._silent.pop(http.protocol, None)) is not None:
            timer.cancel()
        began = time.perf_counter()
        prefix, _, kind = http.path.rpartition("/")
        ours = self._prefix()
        known = ours and hmac.compare_digest(prefix.encode(), ours.encode())
        hook = self._hooks.get(kind) if known else None
        if hook is None and self._closed() is None:
            return _plain(
                404, "nothing is answered at this path; the webhook configuration has the right one"
            )
        if http.method != "POST":
            return _plain(405, "send an AdmissionReview by POST")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                request = read(await http.read())
        except (MalformedError, web.RequestPayloadError) as error:
            return _plain(400, str(error))
        except web.HTTPRequestEntityTooLarge:
            return _plain(413, f"the body has more than {BODY_BYTES} bytes")
        except TimeoutError:
            return _plain(408, f"the body did not come within {BODY_SECONDS:g} s")
        answer = self._answer(hook, request)
        if answer.unsure:
            await asyncio.sleep(UNSURE_SECONDS)
            answer = self._answer(hook, request)
        outcome = "allowed" if answer.allowed else answer.reason
        metrics.REVIEWS.labels(kind if kind in self._hooks else "other", outcome).inc()
        metrics.REVIEW_SECONDS.observe(time.perf_counter() - began)
        return web.Response(body=written(request.uid, answer), content_type="application/json")

    def _answer(self, hook: Hook | None, request: Request) -> Answer:
        """Decide; after the body has come, since until then this process may have lost its right to."""
        reason = self._closed()
        if reason is not None or hook is None:
            return unavailable(f"{reason or 'this is not the leader'}; try again in a few seconds")
        try:
            return hook(request)
        except Exception:
            # A fault of ours is no verdict on what was asked: the asker may try again, and we must be told.
            _log.exception("a review of %s %s/%s failed", request.operation, request.namespace, request.name)
            return unavailable("the operator could not check this, see its log; try again later")


def _plain(status: int, message: str) -> web.Response:
    return web.json_response({"message": message}, status=status)

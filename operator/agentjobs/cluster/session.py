"""One HTTP session with the API server, and its errors as one exception."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any

import aiohttp
import kopf
import msgspec

from agentjobs import metrics
from agentjobs.errors import ApiError

_log = logging.getLogger(__name__)

MERGE_PATCH = "application/merge-patch+json"
REQUEST_SECONDS = 15.0
_MESSAGE_LIMIT = 2000


class _Status(msgspec.Struct):
    """The Status object of a refused request."""

    message: str = ""
    reason: str = ""


def log_in() -> kopf.ConnectionInfo:
    """Return how to reach the API server: the pod's service account, else the kubeconfig.

    A kubeconfig that needs a plugin of its cloud is left to the official client, which knows them all.

    Raises:
        ApiError: when neither is there; the message says what was looked for.
    """
    logger = logging.getLogger("agentjobs.login")
    how: dict[str, Any] = {"logger": logger, "settings": kopf.OperatorSettings()}
    info = kopf.login_with_service_account(**how) or kopf.login_with_kubeconfig(**how)
    if info is None or not (info.token or info.certificate_data or info.certificate_path or info.username):
        try:
            info = kopf.login_via_client(**how) or info
        except kopf.LoginError as error:
            raise ApiError(0, "NoCredentials", str(error)) from error
    if info is None:
        raise ApiError(0, "NoCredentials", "no service account and no kubeconfig; set KUBECONFIG")
    return info


class Session:
    """Requests to the API server: JSON in, bytes out, every failure an `ApiError`.

    A 401 makes the next request log in anew: service-account tokens are renewed on disk every hour.

    Args:
        may_write: asked right before each write; one that may not be sent is an `ApiError` NotLeader.
    """

    def __init__(self, may_write: Callable[[], bool] = lambda: True) -> None:
        self._may_write = may_write
        self._http: aiohttp.ClientSession | None = None
        self._server = ""

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._forget()

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        content_type: str = "application/json",
        params: dict[str, str] | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> bytes:
        """Send one request and return the body of its answer.

        Args:
            body: anything msgspec can encode as JSON.
            seconds: how long the whole request may take.

        Raises:
            ApiError: any status of 400 or more, no answer, or none in time.
        """
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type} if data is not None else None
        try:
            async with (
                asyncio.timeout(seconds),
                (await self._session()).request(
                    method, self._server + path, data=data, headers=headers, params=params
                ) as response,
            ):
                content = await response.read()
                if response.status >= 400:
                    raise await self._refused(response, content)
                return content
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ApiError(0, "NoAnswer", f"{method} {path}: {error or type(error).__name__}") from error

    async def write(self, verb: str, resource: str, method: str, path: str, **how: Any) -> bytes:
        """Send a request that changes something, counted by verb, resource and status code."""
        code = "0"
        try:
            if not self._may_write():
                raise ApiError(0, "NotLeader", f"{method} {path}: not sent, this operator is not the leader")
            content = await self.request(method, path, **how)
            code = "2xx"
            return content
        except ApiError as error:
            code = str(error.status)
            raise
        finally:
            metrics.API_WRITES.labels(verb, resource, code).inc()

    async def watch(self, path: str, params: dict[str, str], *, silence: float) -> AsyncIterator[bytes]:
        """Yield the lines of a watch until the server ends it.

        Args:
            silence: seconds without a byte (bookmarks count) after which the watch is given up.

        Raises:
            ApiError: as `request`.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_SECONDS, sock_read=silence)
        try:
            async with (await self._session()).get(
                self._server + path, params={**params, "watch": "true"}, timeout=timeout
            ) as response:
                if response.status >= 400:
                    raise await self._refused(response, await response.read())
                rest = b""
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
                    for line in lines:
                        if line:
                            yield line
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ApiError(0, "NoAnswer", f"watch {path}: {error or type(error).__name__}") from error

    async def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            info = await asyncio.to_thread(log_in)
            if self._http is None:
                self._server = info.server.rstrip("/")
                self._http = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=info.as_ssl_context(), limit=0),
                    headers={**info.as_http_headers(), "User-Agent": "agentjobs-operator"},
                    timeout=aiohttp.ClientTimeout(total=None),
                    proxy=info.proxy_url,
                )
        return self._http

    async def _refused(self, response: aiohttp.ClientResponse, content: bytes) -> ApiError:
        if response.status == 401:
            await self._forget()
        try:
            status = msgspec.json.decode(content, type=_Status)
        except (msgspec.DecodeError, UnicodeDecodeError):
            status = _Status(message=content.decode(errors="replace"))
        after = response.headers.get("Retry-After", "")
        return ApiError(
            response.status,
            status.reason,
            status.message[:_MESSAGE_LIMIT] or f"HTTP {response.status}",
            float(after) if after.isdecimal() else None,
        )

    async def _forget(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.close()

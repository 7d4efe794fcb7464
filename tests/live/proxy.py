"""A network that can be cut: a TCP proxy on loopback."""

import asyncio
import threading
from types import TracebackType
from typing import Self, cast

from deploy.local.ports import LOOPBACK


class Proxy:
    """Passes bytes on to a port of this machine, in a thread of its own, until it is cut.

    A cut is silent, as a cable's is: what is open stays open, what is opened meets nobody who answers, and
    nothing gets through in either direction.
    """

    def __init__(self, port: int) -> None:
        self.port = 0
        self.sides: set[_Side] = set()
        self.whole = True
        self._behind = port
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(10)

    def cut(self) -> None:
        """Let nothing through from now on."""
        self._loop.call_soon_threadsafe(self._switch, False)

    def heal(self) -> None:
        """Let everything through again, also what has waited."""
        self._loop.call_soon_threadsafe(self._switch, True)

    def _switch(self, whole: bool) -> None:
        self.whole = whole
        for side in self.sides:
            side.flow()

    async def _serve(self) -> None:
        self._loop, self._done = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(lambda: _Side(self, self._behind), LOOPBACK, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._done.wait()
        server.close()
        for side in list(self.sides):
            side.transport.abort()
        await asyncio.sleep(0.01)  # the transports say good-bye


class _Side(asyncio.Protocol):
    """One end of a connection; an accepted one opens the other end, at the port `behind`."""

    transport: asyncio.Transport

    def __init__(self, proxy: Proxy, behind: int = 0, other: "_Side | None" = None) -> None:
        self._proxy = proxy
        self._behind = behind
        self._other = other

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._proxy.sides.add(self)
        if self._other is None:
            self._opening = asyncio.create_task(self._open())
        self.flow()

    async def _open(self) -> None:
        try:
            loop, there = asyncio.get_running_loop(), _Side(self._proxy, other=self)
            await loop.create_connection(lambda: there, LOOPBACK, self._behind)
        except OSError:
            self.transport.close()
            return
        self._other = there
        self.flow()

    def flow(self) -> None:
        """Read what comes only while it can be passed on."""
        if self._proxy.whole and self._other is not None:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        assert self._other is not None
        self._other.transport.write(data)

    def connection_lost(self, _: Exception | None) -> None:
        self._proxy.sides.discard(self)
        if self._other is not None:
            self._other.transport.close()

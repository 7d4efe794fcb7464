"""One bounded writer: which runs need a write, the most urgent first, one write of a run at a time.

It holds keys, not requests: what is to be written is worked out when a worker is free, from what is
true then. So transitions that follow each other while the writer is busy share one request, and a
write that failed is not repeated but decided anew.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)

WORKERS = 16
# So many writes begun in so short a time: from then on it is worth while to let transitions share one.
BUSY_WRITES, BUSY_SECONDS = 20, 2.0
_RETRY_SECONDS = (0.2, 10.0)
_TRIES_COUNTED = 20  # the pause has long been the longest by then


class Writer:
    """A queue of keys with a fixed number of workers.

    Args:
        write: does whatever the key needs now and returns how many seconds to wait before it should be
            looked at again, None when it is done. It must not raise; what it raises all the same is
            logged and tried again.
    """

    def __init__(self, write: Callable[[str], Awaitable[float | None]], workers: int = WORKERS) -> None:
        self._write = write
        self._workers = workers
        self._queue: list[tuple[int, int, str]] = []
        self._urgency: dict[str, int] = {}
        self._busy: set[str] = set()
        self._again: dict[str, int] = {}
        self._ready = asyncio.Semaphore(0)
        self._order = itertools.count()
        self._delayed: dict[str, asyncio.TimerHandle] = {}
        self._tries: dict[str, int] = {}
        self._begun: deque[float] = deque(maxlen=BUSY_WRITES)
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def depth(self) -> int:
        """How many keys wait for a worker or are being written."""
        return len(self._urgency) + len(self._busy)

    @property
    def loaded(self) -> bool:
        """Whether more waits than the workers can take at once, or many writes were begun just now."""
        if len(self._urgency) > self._workers:
            return True
        now = asyncio.get_running_loop().time()
        return len(self._begun) == BUSY_WRITES and now - self._begun[0] < BUSY_SECONDS

    def add(self, key: str, urgency: int) -> None:
        """Ask for a look at a key; the smaller `urgency` goes first. Asking twice is asking once."""
        if key in self._busy:
            self._again[key] = min(urgency, self._again.get(key, urgency))
            return
        known = self._urgency.get(key)
        if known is not None and known <= urgency:
            return
        if key in self._delayed and key in self._tries:
            return  # it failed just now and is to be left alone until its pause is over
        self._idle.clear()
        self._urgency[key] = urgency
        heapq.heappush(self._queue, (urgency, next(self._order), key))
        self._ready.release()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def drain(self) -> None:
        """Return when nothing waits and nothing is being written."""
        await self._idle.wait()

    async def _work(self) -> None:
        while True:
            await self._ready.acquire()
            urgency, _, key = heapq.heappop(self._queue)
            if self._urgency.get(key) != urgency or key in self._busy:
                self._note_idle()
                continue  # it was asked for again with more urgency
            del self._urgency[key]
            self._busy.add(key)
            self._begun.append(asyncio.get_running_loop().time())
            try:
                after = await self._write(key)
            except Exception:
                _log.exception("a write of run %s went wrong; it is tried again", key)
                after = 0.0
            self._busy.discard(key)
            self._finish(key, urgency, after)
            self._note_idle()

    def _finish(self, key: str, urgency: int, after: float | None) -> None:
        again = self._again.pop(key, None)
        if after is None:
            self._tries.pop(key, None)
            if again is not None:
                self.add(key, again)
            return
        first, longest = _RETRY_SECONDS
        tries = self._tries[key] = min(self._tries.get(key, 0) + 1, _TRIES_COUNTED)
        pause = max(after, min(longest, first * 2 ** (tries - 1)))
        timer = asyncio.get_running_loop().call_later(pause, self._retry, key, urgency)
        self._delayed[key] = timer

    def _retry(self, key: str, urgency: int) -> None:
        del self._delayed[key]
        self.add(key, urgency)

    def _note_idle(self) -> None:
        if not self._urgency and not self._busy:
            self._idle.set()

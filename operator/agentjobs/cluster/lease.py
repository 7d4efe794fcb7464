"""The Lease: who holds it schedules, writes and answers admission, and nobody else does.

That rests on two spans of time, measured by each process on its own clock. The holder gives up HELD_SECONDS
after the start of its last renewal that was answered. Another takes the Lease only after it has seen it
unchanged for LEASE_SECONDS, by a write that fails when it has changed after all. What lies between the two is
longer than a webhook may take, so the former holder's answers are over before the next one gives its first.

A Lease that is missing is first made without a holder, and then taken like any other: so no row of deletions
by hand can make two holders. Only a Lease that its holder gave back is free at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NoReturn

from agentjobs import CLOCK, STARTED
from agentjobs.cluster import leaseobject as store
from agentjobs.cluster.leaseobject import ATTEMPT_SECONDS, LEASE_SECONDS, StoredLease
from agentjobs.cluster.session import Session
from agentjobs.errors import ApiError

_log = logging.getLogger(__name__)

WEBHOOK_SECONDS = 3.0  # timeoutSeconds of our webhooks: no admission request waits longer for its answer
HELD_SECONDS = 4.5
_RENEW_SECONDS = 1.0
_LOOK_SECONDS = 0.5
_RETRY_SECONDS = 0.2


def boottime() -> float:
    """Return seconds of a clock that never goes back and, where the system has one, counts sleep."""
    return time.clock_gettime(CLOCK)


def end_process(reason: str) -> NoReturn:
    """End this process at once, whatever its other threads do; whoever runs it starts it again."""
    # Told by a thread of its own: one that hangs may have the log's lock.
    teller = threading.Thread(target=_log.error, args=("%s; this process ends", reason), daemon=True)
    teller.start()
    teller.join(0.5)
    os._exit(1)


@dataclass(frozen=True)
class Term:
    """One time of holding the Lease.

    Attributes:
        epoch: larger than that of every term before.
        opens_at: when the first admission request may be answered, by `boottime`.
    """

    epoch: int
    opens_at: float


class Lease:
    """One candidate, in a thread with an event loop and a session of its own: whatever keeps the others busy
    must not cost the Lease, and its loss must end the process even where they hang.

    Args:
        identity: of this process and of those it was started to replace; they must have ended.
        floor: reads the highest epoch that is stored elsewhere, for when the Lease with its own was deleted.
        lost: ends the process.
        clock: seconds, as `boottime`.
        started: when this process began, by that clock.
    """

    def __init__(
        self,
        identity: str,
        floor: Callable[[Session], Awaitable[int]],
        *,
        lost: Callable[[str], NoReturn] = end_process,
        clock: Callable[[], float] = boottime,
        started: float = STARTED,
    ) -> None:
        self.identity = identity
        self.end = lost
        self.clock = clock
        self._floor = floor
        self._started = started
        self._until = float("-inf")
        self._stands: Future[None] = Future()
        self._leaves: Future[None] = Future()
        self._left: Future[None] = Future()
        self._term: Future[Term] = Future()
        self._seen: tuple[tuple[str, str], float] | None = None  # uid and version, and since when
        self._highest = -1  # leaseTransitions seen so far
        self._mine: StoredLease | None = None  # as stored last; None when that has to be read

    # -- for every thread ------------------------------------------------------------------------

    @property
    def held(self) -> bool:
        """Whether this process may act at this moment."""
        return self.clock() < self._until

    @property
    def epoch(self) -> int:
        """The present term's; 0 before the first."""
        return self._term.result().epoch if self._term.done() else 0

    def start(self) -> None:
        """Begin to watch the Lease."""
        threading.Thread(target=self._work, name="lease", daemon=True).start()

    async def acquired(self) -> Term:
        """Stand for election, and return when elected."""
        if not self._stands.done():
            self._stands.set_result(None)
        return await asyncio.shield(asyncio.wrap_future(self._term))

    async def release(self) -> None:
        """Stand down: give back a Lease that is held, and never take it again."""
        if not self._leaves.done():
            self._leaves.set_result(None)
        await asyncio.shield(asyncio.wrap_future(self._left))

    # -- the thread ------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            asyncio.run(self._run_apart())
        except BaseException as error:  # whatever it is: without this thread nothing holds
            _log.exception("the Lease")
            self.end(f"the Lease is not looked after any more: {error!r}")

    async def _run_apart(self) -> None:
        async with Session() as session:
            await self.run(session)

    async def run(self, session: Session) -> None:
        """Wait for the Lease, take it, and keep it until it is to be released."""
        try:
            if await self._contend(session):
                await self._keep(session)
                await self._give_back(session)
        finally:
            self._until = float("-inf")
            self._left.set_result(None)

    async def _contend(self, session: Session) -> bool:
        """Look again and again until the Lease is taken; return False when it is not wanted any more."""
        stands, leaves = asyncio.wrap_future(self._stands), asyncio.wrap_future(self._leaves)
        problem = ""
        while not self._leaves.done():
            pause = _LOOK_SECONDS
            try:
                pause = await self._look(session)
                problem = ""
            except ApiError as error:
                if str(error) != problem:
                    _log.warning("the Lease cannot be had: %s", error)
                problem = str(error)
            if self._term.done():
                return True
            signals = [leaves] if stands.done() else [leaves, stands]
            await asyncio.wait(signals, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        return False

    async def _look(self, session: Session) -> float:
        """Look at the Lease and take it where that may be; return the seconds until the next look."""
        stored = await store.read(session)
        now = self.clock()
        if stored is None:
            # Without a holder and a time: it is held by whoever may have held the one that is gone.
            await store.create(session, {})
            return 0.0
        if self._seen is None or self._seen[0] != stored.version:
            self._seen = (stored.version, now)
        self._highest = max(self._highest, stored.transitions)
        ripe = self._seen[1] + max(LEASE_SECONDS, stored.seconds)
        own = stored.holder == self.identity
        if not (own or stored.released or now >= ripe):
            return min(_LOOK_SECONDS, ripe - now)
        if self._stands.done() and not self._leaves.done():
            await self._take(session, stored, wait=own and now < ripe)
        return _LOOK_SECONDS

    async def _take(self, session: Session, stored: StoredLease, *, wait: bool) -> None:
        transitions = max(self._highest + 1, await self._floor(session))
        began = self.clock()
        taken = await store.update(session, stored, store.spec_of(self.identity, transitions, acquired=True))
        self._mine, self._until = taken, began + HELD_SECONDS
        # The former process of this identity ended before this one began, but what it allowed last may have
        # been on its way to the store then.
        opens_at = max(self.clock(), self._started + WEBHOOK_SECONDS if wait else 0.0)
        _log.info("the Lease is taken by %s, epoch %d", self.identity, transitions + 1)
        self._term.set_result(Term(transitions + 1, opens_at))

    async def _keep(self, session: Session) -> None:
        """Renew the Lease until it is to be released; its loss ends the process."""
        leaves = asyncio.wrap_future(self._leaves)
        pause, problem = _RENEW_SECONDS, "this process stood still"
        while True:
            await asyncio.wait([leaves], timeout=min(pause, max(0.0, self._until - self.clock())))
            if self._leaves.done():
                return
            left = self._until - self.clock()
            if left <= 0:
                self.end(f"the Lease was not renewed for {HELD_SECONDS} s: {problem}")
            try:
                await self._renew(session, min(left, ATTEMPT_SECONDS))
                pause, problem = _RENEW_SECONDS, "this process stood still"
            except ApiError as error:
                pause, problem = _RETRY_SECONDS, str(error)
                _log.warning("the Lease is not renewed: %s", error)
                if error.status in (404, 409):
                    self._mine = None

    async def _renew(self, session: Session, seconds: float) -> None:
        began = self.clock()
        mine = self._mine or await store.read(session, seconds)
        spec = store.spec_of(self.identity, self.epoch - 1)
        if mine is None:
            # Deleted by hand. Nobody else can have taken one that is younger than LEASE_SECONDS.
            self._mine = await store.create(session, spec, seconds)
        elif mine.holder in ("", self.identity) and mine.transitions in (0, self.epoch - 1):
            self._mine = await store.update(session, mine, spec, seconds)
        else:
            self.end(f"the Lease is held by {mine.holder or 'nobody'}, not by {self.identity}")
        self._until = began + HELD_SECONDS

    async def _give_back(self, session: Session) -> None:
        self._until = float("-inf")
        free = store.released_spec(self.epoch - 1)
        for _ in range(2):
            try:
                mine = self._mine or await store.read(session)
                if mine is not None and mine.holder == self.identity:
                    await store.update(session, mine, free)
                    _log.info("the Lease is given back")
                return
            except ApiError as error:
                _log.warning("the Lease is not given back: %s", error)
                self._mine = None

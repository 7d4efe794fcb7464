"""Clients that create AgentJobs at a steady pace, whatever becomes of the operator, and note each answer."""

import asyncio
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import aiohttp

from deploy.local.local import LocalCluster
from tests.live.api import AGENTS
from tests.live.lab import agentjob, unique

PER_SECOND = 20
_LONGEST_SECONDS = 30


@dataclass(frozen=True)
class Create:
    """One create and its answer.

    Attributes:
        began, seconds: when it was sent, by `time.monotonic`, and how long its answer took.
        code: HTTP status; 0 when no answer came.
    """

    team: str
    began: float
    seconds: float
    code: int
    message: str

    @property
    def allowed(self) -> bool:
        return self.code == 201


class Callers:
    """Creates `PER_SECOND` AgentJobs a second while the block runs, one team's after the other's."""

    def __init__(self, cluster: LocalCluster, pool: str, teams: Iterable[str]) -> None:
        self.creates: list[Create] = []
        self._cluster = cluster
        self._pool = pool
        self._teams = list(teams)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._call()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(2 * _LONGEST_SECONDS)

    def of(self, team: str) -> list[Create]:
        """The answered creates of a team so far, by when they were sent."""
        return sorted((each for each in self.creates if each.team == team), key=lambda each: each.began)

    async def _call(self) -> None:
        certificates = self._cluster.cluster.certificates
        tls = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        tls.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
        timeout = aiohttp.ClientTimeout(total=_LONGEST_SECONDS)
        connector = aiohttp.TCPConnector(ssl=tls, limit=0)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as http,
            asyncio.TaskGroup() as group,
        ):
            began, count = time.monotonic(), 0
            while not self._stop.is_set():
                group.create_task(self._create(http, self._teams[count % len(self._teams)]))
                count += 1
                await asyncio.sleep(max(0.0, began + count / PER_SECOND - time.monotonic()))

    async def _create(self, http: aiohttp.ClientSession, team: str) -> None:
        url = f"{self._cluster.cluster.server}{AGENTS}/namespaces/default/agentjobs"
        manifest = agentjob(unique("call"), self._pool, "1s", "", 0, {"teamId": team})
        began = time.monotonic()
        try:
            async with http.post(url, json=manifest) as answer:
                code, message = answer.status, json.loads(await answer.read()).get("message", "")
        except (aiohttp.ClientError, TimeoutError) as error:
            code, message = 0, repr(error)
        self.creates.append(Create(team, began, time.monotonic() - began, code, message))


@dataclass(frozen=True)
class Outage:
    """What the callers of a team that has room saw of a change of leader.

    Attributes:
        seconds: from when the first create that was refused was sent to when the first after it that was
            allowed was; 0 where none was refused.
        refusals: how many there were, by code.
        slowest: the longest wait for a refusal, in seconds.
        messages: of each code the refusals' first one.
    """

    seconds: float
    refusals: Counter[int]
    slowest: float
    messages: dict[int, str]

    @classmethod
    def of(cls, creates: list[Create]) -> "Outage":
        """Judge creates of one team, in the order in which they were sent."""
        refused = [each for each in creates if not each.allowed]
        if not refused:
            return cls(0.0, Counter(), 0.0, {})
        last = max(each.began for each in refused)
        after = [each.began for each in creates if each.allowed and each.began > last]
        assert after, f"nothing was allowed after the outage: {refused[-1]}"
        messages: dict[int, str] = {}
        for each in refused:
            messages.setdefault(each.code, each.message)
        return cls(
            min(after) - refused[0].began,
            Counter(each.code for each in refused),
            max(each.seconds for each in refused),
            messages,
        )

    def __str__(self) -> str:
        counts = ", ".join(f"{count} of {code}" for code, count in sorted(self.refusals.items()))
        told = "".join(f"\n    {code}: {message[:230]}" for code, message in sorted(self.messages.items()))
        return f"{self.seconds:.1f} s, {counts or 'no refusal'}, the slowest {self.slowest:.2f} s{told}"

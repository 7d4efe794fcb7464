"""A pool in a few words: seconds instead of microseconds, `held` for who holds, `why` for the reason."""

from __future__ import annotations

from typing import Any

from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.model import SECOND, Holding, Plan, PoolSettings, Run, TeamSettings
from agentjobs.scheduling.policies import Policy
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts, Bounds

CRITICAL, HIGH, DEFAULT, LOW = 10, 20, 30, 40
START = 1_000_000  # seconds since the epoch, when every scene begins


def amounts(slots: int = 1, cpu: int = 0, memory: int = 0, gpus: int = 0) -> Amounts:
    return Amounts(slots, cpu, memory, gpus)


def team(
    weight: int = 1,
    guaranteed: Amounts | None = None,
    limit: Bounds | None = None,
    critical_limit: Bounds | None = None,
) -> TeamSettings:
    return TeamSettings(weight, guaranteed or Amounts(), limit or Bounds(), critical_limit or Bounds())


class Scene:
    """One pool and its clock."""

    def __init__(self, policy: Policy | None = None, **settings: Any) -> None:
        self.pool = Pool("pool", policy or FairShare())
        self.settings: dict[str, Any] = {}
        self.now = START
        self._count = 0
        self.configure(**settings)

    def configure(self, **settings: Any) -> None:
        """Edit the pool: `slots` and `gpus` for short, else fields of PoolSettings."""
        self.settings |= settings
        given = dict(self.settings)
        short = [given.pop(name, None) for name in ("slots", "cpu", "memory", "gpus")]
        self.pool.configure(PoolSettings(capacity=Bounds(*short), **given))

    def submit(
        self,
        name: str,
        weight: int = DEFAULT,
        request: Amounts | None = None,
        timeout: int = 600,
        count: int = 1,
    ) -> None:
        """Runs `name` of team `name` up to the dash, as in red-1; several are numbered from there on."""
        owner, _, number = name.partition("-")
        for index in range(count):
            self._count += 1
            uid = f"{owner}-{int(number) + index}"
            request = request or amounts()
            created = self.now * SECOND
            run = Run(
                uid, "default", owner, weight, weight == CRITICAL, created, self._count, request, timeout, uid
            )
            self.pool.wait(run)

    def running(
        self,
        name: str,
        request: Amounts | None = None,
        ends_in: int | None = 600,
        node: str | None = None,
        critical: bool = False,
    ) -> None:
        """A run that holds since before; it ends in so many seconds at the latest."""
        until = None if ends_in is None else (self.now + ends_in) * SECOND
        self.pool.hold(Holding(name, name.partition("-")[0], critical, request or amounts(), until, node))

    def finish(self, *names: str) -> None:
        for name in names:
            self.pool.leave(name, ended=self.now * SECOND)

    def look(self, after: int = 0) -> list[str]:
        """Let so many seconds pass, decide, and return who started, in order."""
        self.now += after
        return [start.run.uid for start in self.plan().starts]

    def plan(self) -> Plan:
        plan = self.pool.decide(self.now * SECOND)
        assert self.pool.fault == ""
        return plan

    def why(self, name: str) -> str | None:
        wait = self.pool.why(name, self.now * SECOND)
        return None if wait is None else wait.reason.value

    def message(self, name: str) -> str:
        wait = self.pool.why(name, self.now * SECOND)
        assert wait is not None
        return wait.message

    @property
    def promise(self) -> tuple[str, int] | None:
        """Who holds the reservation, and in how many seconds from the beginning it starts at the latest."""
        held = self.pool.books.reservation
        return None if held is None else (held.uid, held.before // SECOND - START)

"""The admission of this process: what it counts, when it answers, and the search for what was never seen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from functools import partial

from agentjobs import metrics
from agentjobs.admission.administration import PoolReviews, TeamReviews
from agentjobs.admission.admission import Admission, pending_limit
from agentjobs.admission.forecast import forecast
from agentjobs.admission.ledger import Ledger, Reservation
from agentjobs.admission.server import Hook
from agentjobs.apis.agentjob import AgentJobSpec
from agentjobs.apis.records import AgentJobRecord
from agentjobs.apis.sharing import policy_run
from agentjobs.cluster import paths
from agentjobs.cluster.reflector import Reflector
from agentjobs.cluster.session import Session
from agentjobs.controller.state import State
from agentjobs.errors import ApiError

_LOOK_SECONDS = 0.25
# A read that took longer says that the store is slow: a create may still be on its way to it.
_PROMPT_SECONDS = 1.0
_READ_SECONDS = 5.0
_LOOKERS = 8  # so few that whoever floods with creates that fail does not flood the API server through us


class Boundary:
    """Answers for AgentJobs, AgentTeams and AgentPools from what the operator knows.

    Args:
        state: runs, pools and the catalogue.
    """

    def __init__(self, session: Session, state: State) -> None:
        self._session = session
        self._state = state
        self._stopping = False
        self._settled = asyncio.Event()
        catalogue = state.catalogue
        limit = partial(pending_limit, catalogue.pools, catalogue.teams)
        self.ledger = Ledger(limit, _over)
        admission = Admission(catalogue.pools, catalogue.teams, self.ledger, self._forecast, time.monotonic)
        teams = TeamReviews(catalogue.pools, catalogue.team_holders, time.monotonic)
        catalogue.team_seen = teams.seen
        self.hooks: Mapping[str, Hook] = {
            "agentjobs": admission.review,
            "agentteams": teams.review,
            "agentpools": PoolReviews(self._held).review,
        }

    def open(self) -> None:
        """Begin to answer: everything stored was listed after the former leader had answered last."""
        self.ledger.live = True

    def closed(self) -> str | None:
        """Return why nothing is answered now, None when it is."""
        if self._stopping:
            return "the operator is shutting down"
        return None if self.ledger.live else "the operator is still reading what is stored"

    async def run(self, agentjobs: Reflector[AgentJobRecord]) -> None:
        """Look for creates that were allowed and not seen, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            metrics.RESERVATIONS.set(self.ledger.reservations)
            due = iter(self.ledger.due(time.monotonic()))
            await asyncio.gather(*(self._look_for(agentjobs, due) for _ in range(_LOOKERS)))
            if self._stopping and not self.ledger.reservations:
                self._settled.set()

    async def close(self) -> None:
        """Answer nothing any more; return when every create that was allowed is stored, or never will be."""
        self._stopping = True
        if self.ledger.reservations:
            await self._settled.wait()

    async def _look_for(self, agentjobs: Reflector[AgentJobRecord], creates: Iterator[Reservation]) -> None:
        """Look for one create after the other."""
        for create in creates:
            began = time.monotonic()
            try:
                content = await self._session.request(
                    "GET", paths.agentjob(*create.name), seconds=_READ_SECONDS
                )
            except ApiError as error:
                if not error.absent or time.monotonic() - began > _PROMPT_SECONDS:
                    continue  # it is looked for again
                if began < create.until:
                    self.ledger.postpone(create.uid)
                    continue
            else:
                agentjobs.take(content)
            self.ledger.release(create.uid)

    def _forecast(self, spec: AgentJobSpec, namespace: str, uid: str) -> str:
        self._state.take_edits()
        pool, settings = self._state.pools.get(spec.pool), self._state.catalogue.pools.get(spec.pool)
        if pool is None or settings is None:
            return f"waits: PoolMissing: there is no AgentPool named {spec.pool}"
        now = time.time_ns() // 1000
        run = policy_run(
            uid=uid,
            namespace=namespace,
            team=spec.team_id,
            priority=spec.priority,
            asked=spec.resources,
            pool=settings,
            created=now,
        )
        return forecast(pool, run, self.ledger.reserved(spec.team_id), now)

    def _held(self, pool: str) -> int:
        books = self._state.pools.get(pool)
        return books.books.held.slots if books is not None else 0


def _over(_team: str) -> None:
    metrics.OVER_LIMIT.inc()

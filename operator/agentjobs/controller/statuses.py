"""Writes the status of pools and teams, at most once a second for each, and only when it has changed.

Level-based: names are remembered, what is to be said is worked out when it is written, and what comes back
is what is compared with the next time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

from agentjobs.apis.records import SettingsRecord
from agentjobs.cluster import paths
from agentjobs.cluster.reflector import Reflector
from agentjobs.cluster.session import MERGE_PATCH, Session
from agentjobs.controller.catalogue import Listed
from agentjobs.controller.standing import Standings
from agentjobs.controller.state import State
from agentjobs.errors import ApiError

_log = logging.getLogger(__name__)

JSON = dict[str, Any]

PERIOD_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 4.0
WORKERS = 4  # so few that the writes of runs are never behind these


class Statuses:
    """Keeps the status of every AgentPool and AgentTeam true. Only the leader may run it.

    Args:
        agentpools, agentteams: are told what was written.
        clock: returns the time in microseconds since the epoch.
    """

    def __init__(
        self,
        session: Session,
        state: State,
        agentpools: Reflector[SettingsRecord],
        agentteams: Reflector[SettingsRecord],
        clock: Callable[[], int],
    ) -> None:
        self._session = session
        self._agentpools = agentpools
        self._agentteams = agentteams
        self._catalogue = state.catalogue
        self._standings = Standings(state, clock)

    async def run(self, leads: asyncio.Event) -> None:
        """Write what has changed, once this process leads; after failures the pauses grow."""
        await leads.wait()
        pause = PERIOD_SECONDS
        while True:
            await asyncio.sleep(pause)
            pools, teams = self._standings.moved()
            left = iter([*((True, name) for name in pools), *((False, name) for name in teams)])
            done = await asyncio.gather(*(self._work(left) for _ in range(WORKERS)))
            pause = PERIOD_SECONDS if all(done) else min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _work(self, left: Iterator[tuple[bool, str]]) -> bool:
        """Write one after the other until none is left or the API server fails; say whether it did not."""
        for is_pool, name in left:
            try:
                await (self._write_pool(name) if is_pool else self._write_team(name))
            except ApiError as error:
                if error.status in (404, 409):
                    continue  # it is gone, or another by that name: we will be told
                _log.warning("status of %s %s: %s", "AgentPool" if is_pool else "AgentTeam", name, error)
                if error.transient:
                    for again_is_pool, again in ((is_pool, name), *left):
                        self._moved(again_is_pool).add(again)
                    return False
        return True

    def _moved(self, is_pool: bool) -> set[str]:
        return self._catalogue.moved_pools if is_pool else self._catalogue.moved_teams

    async def _write_pool(self, name: str) -> None:
        if (listed := self._catalogue.listed_pools.get(name)) is not None:
            path = f"{paths.AGENTPOOLS}/{name}"
            await self._write(self._agentpools, path, listed, self._standings.pool(name))

    async def _write_team(self, name: str) -> None:
        if (listed := self._catalogue.listed_teams.get(name)) is not None:
            path = f"{paths.AGENTTEAMS}/{name}"
            await self._write(self._agentteams, path, listed, self._standings.team(name))

    async def _write(
        self, reflector: Reflector[SettingsRecord], path: str, listed: Listed, status: JSON
    ) -> None:
        """Store what differs."""
        changes = difference(listed.status, status)
        if not changes:
            return
        body = {"metadata": {"uid": listed.uid}, "status": changes}
        resource, path = f"{reflector.kind}/status", f"{path}/status"
        content = await self._session.write(
            "patch", resource, "PATCH", path, body=body, content_type=MERGE_PATCH
        )
        reflector.upsert(SettingsRecord(content))


def difference(old: JSON, new: JSON) -> JSON:
    """Return the merge patch that makes `new` of `old`, empty when they are the same; lists are whole."""
    changes: JSON = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        known = old.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            if inner := difference(known, value):
                changes[key] = inner
        elif value != known:
            changes[key] = value
    return changes

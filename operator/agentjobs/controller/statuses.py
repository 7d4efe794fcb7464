"""Writes the status of pools and teams, at most once a second for each, and only when it has changed.

Level-based: names are remembered, what is to be said is worked out when it is written, and what comes back
is what is compared with the next time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from agentjobs.apis.records import SettingsRecord
from agentjobs.cluster import paths
from agentjobs.cluster.reflector import Reflector
from agentjobs.cluster.session import MERGE_PATCH, Session
from agentjobs.controller.listing import Listing
from agentjobs.controller.standing import Standings
from agentjobs.controller.state import State
from agentjobs.errors import ApiError

_log = logging.getLogger(__name__)

JSON = dict[str, Any]

PERIOD_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 4.0
WORKERS = 4  # so few that the writes of runs are never behind these


class _Kind(NamedTuple):
    """AgentPools or AgentTeams: where they are, and how their status is worked out by name."""

    path: str
    listing: Listing[Any]
    reflector: Reflector[SettingsRecord]
    status_of: Callable[[str], JSON]


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
        self._standings = standings = Standings(state, clock)
        catalogue = state.catalogue
        self._kinds = (
            _Kind(paths.AGENTPOOLS, catalogue.agentpools, agentpools, standings.pool),
            _Kind(paths.AGENTTEAMS, catalogue.agentteams, agentteams, standings.team),
        )

    async def run(self, leads: asyncio.Event) -> None:
        """Write what has changed, once this process leads; after failures the pauses grow."""
        await leads.wait()
        pause = PERIOD_SECONDS
        while True:
            await asyncio.sleep(pause)
            moved = zip(self._kinds, self._standings.moved(), strict=True)
            left = iter([(kind, name) for kind, names in moved for name in names])
            done = await asyncio.gather(*(self._work(left) for _ in range(WORKERS)))
            pause = PERIOD_SECONDS if all(done) else min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _work(self, left: Iterator[tuple[_Kind, str]]) -> bool:
        """Write one after the other until none is left or the API server fails; say whether it did not."""
        for kind, name in left:
            try:
                await self._write(kind, name)
            except ApiError as error:
                if error.status in (404, 409):
                    continue  # it is gone, or another by that name: we will be told
                _log.warning("status of %s %s: %s", kind.listing.kind, name, error)
                if error.transient:
                    for again_kind, again in ((kind, name), *left):
                        again_kind.listing.moved.add(again)
                    return False
        return True

    async def _write(self, kind: _Kind, name: str) -> None:
        """Store what differs."""
        listed = kind.listing.listed.get(name)
        if listed is None:
            return
        changes = difference(listed.status, kind.status_of(name))
        if not changes:
            return
        body = {"metadata": {"uid": listed.uid}, "status": changes}
        resource, path = f"{kind.reflector.kind}/status", f"{kind.path}/{name}/status"
        content = await self._session.write(
            "patch", resource, "PATCH", path, body=body, content_type=MERGE_PATCH
        )
        kind.reflector.upsert(SettingsRecord(content))


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

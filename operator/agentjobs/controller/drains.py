"""Pools that are being emptied: since when, and whether it is time to cancel what is left."""

from __future__ import annotations

from agentjobs.apis import times
from agentjobs.controller.catalogue import Catalogue


class Drains:
    """Follows the drains of all pools. Nothing but `status.drainingSince` is needed after a restart.

    Attributes:
        since: by pool: when its drain was first seen, microseconds since the epoch.
        over: pools of which everything that is left is canceled.
    """

    def __init__(self) -> None:
        self.since: dict[str, int] = {}
        self.over: set[str] = set()
        self._uids: dict[str, str] = {}  # a pool that is made anew is drained anew

    def look(self, catalogue: Catalogue, now: int) -> tuple[set[str], int | None]:
        """Take in the drains that are set; return the pools where one changed, and when to look again."""
        ends: dict[str, int] = {}
        changed: set[str] = set()
        for name, spec in catalogue.pools.items():
            if spec.drain is not None:
                uid = catalogue.agentpools.listed[name].uid
                if name not in self.since or self._uids[name] != uid:
                    self.since[name], self._uids[name] = self._first_seen(catalogue, name, now), uid
                    changed.add(name)
                ends[name] = self.since[name] + spec.drain.timeout_seconds * times.SECOND
        for name in self.since.keys() - ends.keys():
            del self.since[name], self._uids[name]
            changed.add(name)
        over = {name for name, end in ends.items() if end <= now}
        changed |= over ^ self.over
        self.over = over
        return changed, min((end for end in ends.values() if end > now), default=None)

    def _first_seen(self, catalogue: Catalogue, name: str, now: int) -> int:
        """Return when a former leader first saw it; two edits since may have made another drain of it."""
        listed = catalogue.agentpools.listed[name]
        since = times.parse(listed.text("drainingSince"))
        return min(since, now) if since is not None and listed.generation - listed.observed <= 1 else now

"""How pools and teams stand: their status, worked out from the books.

The policy's own numbers are asked for, so there is nothing here that could differ from what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from agentjobs.apis import times
from agentjobs.apis.agentteam import POOLS_MAX
from agentjobs.apis.amounts import MOST
from agentjobs.apis.base import camel
from agentjobs.apis.conditions import ConditionType
from agentjobs.apis.faults import shown
from agentjobs.controller.listing import Listed
from agentjobs.controller.state import State
from agentjobs.scheduling.model import PoolSettings
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import NOTHING, Amounts, Bounds
from agentjobs.scheduling.rules import Standing

JSON = dict[str, Any]

_MESSAGE_LIMIT = 4096


class _Terms(NamedTuple):
    """What shares in a pool follow from, and the policy's numbers for it."""

    settings: PoolSettings
    capacity: Bounds
    standing: Standing


class Standings:
    """The status of each AgentPool and AgentTeam, and which of them may have changed; free of I/O.

    Args:
        clock: returns the time in microseconds since the epoch.
    """

    def __init__(self, state: State, clock: Callable[[], int]) -> None:
        self._state = state
        self._catalogue = state.catalogue
        self._clock = clock
        self._terms: dict[str, _Terms] = {}

    def moved(self) -> tuple[set[str], set[str]]:
        """Take down and return the names of the AgentPools and AgentTeams whose status may be another now."""
        catalogue = self._catalogue
        moved = {name: self._moved_teams(name, pool) for name, pool in self._state.pools.items()}
        pools = catalogue.agentpools.moved | {name for name, teams in moved.items() if teams is not None}
        ids = set[str]().union(*(teams for teams in moved.values() if teams))
        holders = catalogue.team_holders
        teams = catalogue.agentteams.moved | {holders[team] for team in ids & holders.keys()}
        catalogue.agentpools.moved, catalogue.agentteams.moved = set(), set()
        return pools, teams

    def _moved_teams(self, name: str, pool: Pool) -> set[str] | None:
        """Return the ids of the teams that stand differently in a pool; None when nothing has changed."""
        books, known = pool.books, self._terms.get(name)
        moved, books.moved = books.moved, set()
        if known is not None and known.settings is books.settings and known.capacity == books.capacity:
            return moved or None
        standing = Standing(books.settings, books.capacity)
        self._terms[name] = _Terms(books.settings, books.capacity, standing)
        return moved | books.settings.teams.keys() | {team.id for team in books.teams.values() if team.busy}

    # -- pools -----------------------------------------------------------------------------------

    def pool(self, name: str) -> JSON:
        """Return the status of an AgentPool that is stored."""
        listed, pool = self._catalogue.agentpools.listed[name], self._state.pools.get(name)
        since = self._state.drains.since.get(name)
        status: JSON = {
            "pending": pool.waiting if pool is not None else 0,
            "running": len(pool.books.holdings) if pool is not None else 0,
            "usage": _amounts(pool.books.held if pool is not None else NOTHING),
            "observedGeneration": listed.generation,
            "conditions": self._conditions(
                listed, _invalid(listed, name in self._catalogue.pools), self._of_pool(name)
            ),
        }
        if pool is not None and (capacity := _amounts(pool.books.capacity)):
            status["capacity"] = capacity
        if since is not None:
            status["drainingSince"] = times.text(since)
        return status

    def _of_pool(self, name: str) -> tuple[str, str]:
        """Return in a word and in a sentence what a pool does now."""
        spec, drains = self._catalogue.pools.get(name), self._state.drains
        if name in drains.over:
            return "Drained", "new runs are refused, and what was left is canceled"
        if name in drains.since and spec is not None and spec.drain is not None:
            end = times.second(drains.since[name] + spec.drain.timeout_seconds * times.SECOND)
            return "Draining", f"new runs are refused, and what is left is canceled at {end}"
        if spec is not None and spec.hold:
            return "OnHold", "runs are taken and wait; nothing new starts"
        return "Accepted", "runs are taken and started"

    # -- teams -----------------------------------------------------------------------------------

    def team(self, name: str) -> JSON:
        """Return the status of an AgentTeam that is stored, by the object's name."""
        catalogue = self._catalogue
        listed, team = catalogue.agentteams.listed[name], catalogue.team_ids.get(name, "")
        holder = self._catalogue.team_holders.get(team)
        problem = _invalid(listed, holder == name)
        if problem is None and holder is not None and holder != name:
            problem = _taken(team, holder)
        pools = dict(self._pools_of(team)) if holder == name else {}
        idle = {name: not (pool["pending"] or pool["running"]) for name, pool in pools.items()}
        busy_first = sorted(pools, key=lambda name: (idle[name], name))
        return {
            **({"teamId": team} if team else {}),
            "pending": sum(pool["pending"] for pool in pools.values()),
            "running": sum(pool["running"] for pool in pools.values()),
            "pools": {name: pools[name] for name in busy_first[:POOLS_MAX]},
            "observedGeneration": listed.generation,
            "conditions": self._conditions(listed, problem, ("Accepted", "its settings are in force")),
        }

    def _pools_of(self, team: str) -> Iterator[tuple[str, JSON]]:
        """Yield how a team stands in each pool that its AgentTeam names or that it has runs in."""
        spec = self._catalogue.teams.get(team)
        named = spec.pools if spec is not None else {}
        for name, pool in self._state.pools.items():
            books, pending = pool.books.teams.get(team), pool.waiting_of(team)
            running = books.live if books is not None else 0
            if not (pending or running or (pool.exists and name in named)):
                continue
            status = {
                "pending": pending,
                "running": running,
                "usage": _amounts(books.held if books is not None else NOTHING),
            }
            if pool.exists and (terms := self._terms.get(name)) is not None:
                share = terms.standing.thousandths(books.held if books is not None else NOTHING)
                entitlement = _amounts(terms.standing.top(team))
                status |= {"share": share} if share is not None else {}
                status |= {"entitlement": entitlement} if entitlement else {}
            yield name, status

    # -- both ------------------------------------------------------------------------------------

    def _conditions(
        self, listed: Listed, problem: tuple[str, str] | None, well: tuple[str, str]
    ) -> list[JSON]:
        """Return `Ready`, and `Stalled` where the spec is not in force; elsewhere kstatus wants it left out.

        Args:
            problem: reason and message where the spec is not in force.
            well: reason and message where it is.
        """
        reason, message = problem or well
        states = {ConditionType.READY: problem is None, ConditionType.STALLED: problem is not None}
        return [
            {
                "type": kind.value,
                "status": "True" if state else "False",
                "reason": reason,
                "message": message[:_MESSAGE_LIMIT],
                "lastTransitionTime": self._since(listed, kind, state),
                "observedGeneration": listed.generation,
            }
            for kind, state in states.items()
            if state or kind is ConditionType.READY
        ]

    def _since(self, listed: Listed, kind: ConditionType, state: bool) -> str:
        """Return when a condition came to be so: what is stored says it, unless it said otherwise."""
        stored = listed.condition(kind.value)
        since = times.parse(stored.get("lastTransitionTime"))
        same = stored.get("status") == ("True" if state else "False")
        return times.second(since if same and since is not None else self._clock())


def _invalid(listed: Listed, in_force: bool) -> tuple[str, str] | None:
    """Return reason and message of a spec that cannot be used.

    Args:
        in_force: whether settings of the object are, be they of now or of before.
    """
    if not listed.fault:
        return None
    instead = "its former settings stay in force" if in_force else "it is as if it were not there"
    return "Invalid", f"until it is mended {instead}: {listed.fault}"


def _taken(team_id: str, holder: str) -> tuple[str, str]:
    """Return reason and message of an AgentTeam whose id an older one has."""
    return "TeamIdTaken", (
        f"spec.teamId: {shown(team_id)} is the id of AgentTeam {holder}, which came first; while it is, "
        "this one is as if it were not there; choose another id, or delete one of the two"
    )


def _amounts(amounts: Amounts | Bounds) -> JSON:
    """Return amounts as they are stored: without what is not limited, within what the schema allows."""
    named = amounts._asdict().items()
    return {camel(name): min(amount, MOST[name]) for name, amount in named if amount is not None}

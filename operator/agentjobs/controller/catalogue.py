"""The pools and teams as administrators set them: few objects, edited live."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from agentjobs.apis import validation
from agentjobs.apis.agentpool import AgentPool, AgentPoolSpec
from agentjobs.apis.agentteam import AgentTeam, AgentTeamSpec
from agentjobs.apis.base import Model
from agentjobs.apis.names import API_VERSION
from agentjobs.apis.records import SettingsRecord
from agentjobs.apis.root import Resource
from agentjobs.apis.sharing import pool_settings
from agentjobs.scheduling.model import PoolSettings
from agentjobs.scheduling.resources import Amounts

_log = logging.getLogger(__name__)

Spec = TypeVar("Spec", bound=Model)


class Listed(NamedTuple):
    """An AgentPool or AgentTeam as it is stored, but for its spec.

    Attributes:
        version: its resourceVersion as a number.
        created: microseconds since the epoch.
        status: as JSON.
        fault: why its spec cannot be used; "" when it can.
    """

    uid: str
    version: int
    created: int
    generation: int
    status: dict[str, Any]
    fault: str = ""

    @property
    def observed(self) -> int:
        """The generation that its status was computed from; -1 for none."""
        stored = self.status.get("observedGeneration")
        return stored if isinstance(stored, int) else -1

    def condition(self, kind: str) -> dict[str, Any]:
        """Return a condition of its status; an empty one where there is none."""
        stored = self.status.get("conditions")
        found = (each for each in stored if isinstance(each, dict)) if isinstance(stored, list) else ()
        return next((each for each in found if each.get("type") == kind), {})

    def text(self, field: str) -> str:
        """Return a field of its status; "" where it is no text."""
        stored = self.status.get(field)
        return stored if isinstance(stored, str) else ""


class Catalogue:
    """Pools by name and teams by id, told by their reflectors.

    An object that cannot be read keeps the settings it had: an edit past the schema must not
    open or close a pool.

    Attributes:
        teams: by id: the settings in force.
        team_holders: by id: the name of the AgentTeam whose settings these are. Of two with one id, which
            are made only past the webhook, it is the older one.
        team_ids: by name: the id that each AgentTeam asks for.
        listed_pools, listed_teams: everything stored, by name of the object.
        moved_pools, moved_teams: names of objects that were stored or changed since somebody took them down.
        team_seen: called with name and id of every AgentTeam that is stored or edited; whose it is sets it.
    """

    def __init__(self) -> None:
        self.pools: dict[str, AgentPoolSpec] = {}
        self.teams: dict[str, AgentTeamSpec] = {}
        self.team_holders: dict[str, str] = {}
        self.team_ids: dict[str, str] = {}
        self.listed_pools: dict[str, Listed] = {}
        self.listed_teams: dict[str, Listed] = {}
        self.moved_pools: set[str] = set()
        self.moved_teams: set[str] = set()
        self.team_seen: Callable[[str, str], None] = lambda *_: None
        self._claims: dict[
            str, dict[str, AgentTeamSpec]
        ] = {}  # by id and name: every AgentTeam that asks for it

    def pool_stored(self, pool: SettingsRecord) -> bool:
        """An AgentPool was created or changed; return whether its settings may have."""
        name = pool.name
        known = self.listed_pools.get(name)
        if known is not None and known.uid != pool.uid:
            if pool.version < known.version:
                return False  # late news of one that was deleted: another has its name
            self._forget_pool(name)
            known = None
        self.moved_pools.add(name)
        if known is not None and not _edited(known, pool):
            self.listed_pools[name] = _listed(pool, known.fault)
            return False
        spec = _spec(AgentPool, AgentPoolSpec, pool)
        self.listed_pools[name] = _listed(pool, spec if isinstance(spec, str) else "")
        if not isinstance(spec, str):
            self.pools[name] = spec
        return True

    def team_stored(self, team: SettingsRecord) -> bool:
        """An AgentTeam was created or changed; return whether its settings may have."""
        name = team.name
        known = self.listed_teams.get(name)
        if known is not None and known.uid != team.uid:
            if team.version < known.version:
                return False
            self._forget_team(name)
            known = None
        self.moved_teams.add(name)
        if known is not None and not _edited(known, team):
            self.listed_teams[name] = _listed(team, known.fault)
            return False
        spec = _spec(AgentTeam, AgentTeamSpec, team)
        self.listed_teams[name] = _listed(team, spec if isinstance(spec, str) else "")
        if not isinstance(spec, str):
            self._claim(name, spec)
        return True

    def pool_deleted(self, pool: SettingsRecord) -> bool:
        """An AgentPool is gone; return whether that changes anything: another may have its name by now."""
        known = self.listed_pools.get(pool.name)
        if known is None or known.uid != pool.uid:
            return False
        self._forget_pool(pool.name)
        return True

    def team_deleted(self, team: SettingsRecord) -> bool:
        """An AgentTeam is gone; return whether that changes anything: another may have its name by now."""
        known = self.listed_teams.get(team.name)
        if known is None or known.uid != team.uid:
            return False
        self._forget_team(team.name)
        return True

    def _forget_pool(self, name: str) -> None:
        del self.listed_pools[name]
        self.pools.pop(name, None)

    def _forget_team(self, name: str) -> None:
        self._withdraw(name)
        del self.listed_teams[name]

    def _claim(self, name: str, spec: AgentTeamSpec) -> None:
        team_id = spec.team_id or name
        if self.team_ids.get(name) != team_id:
            self._withdraw(name)
        self.team_ids[name] = team_id
        self._claims.setdefault(team_id, {})[name] = spec
        self._award(team_id)
        self.team_seen(name, team_id)

    def _withdraw(self, name: str) -> None:
        """Drop an AgentTeam's claim on its id; another one that asks for the id has it then."""
        team_id = self.team_ids.pop(name, None)
        if team_id is not None:
            del self._claims[team_id][name]
            self._award(team_id)

    def _award(self, team_id: str) -> None:
        """Put the settings of the oldest AgentTeam that asks for an id in force."""
        claims = self._claims[team_id]
        if not claims:
            del self._claims[team_id], self.teams[team_id], self.team_holders[team_id]
            return
        holder = min(claims, key=lambda name: (self.listed_teams[name].created, name))
        if self.team_holders.get(team_id) != holder:
            self.moved_teams |= claims.keys()
        self.team_holders[team_id], self.teams[team_id] = holder, claims[holder]

    def settings(self, pool: str, nodes: Mapping[str, Amounts] | None) -> PoolSettings:
        """Return what a known pool says, as the policy takes it.

        Args:
            nodes: what each of its nodes offers; None when it is not bound to nodes.
        """
        return pool_settings(pool, self.pools[pool], self.teams, nodes)

    def allowed_secrets(self, team: str) -> frozenset[str]:
        """Return the Secrets that a team's runs may use, as namespace/name."""
        spec = self.teams.get(team)
        return frozenset(spec.secrets) if spec else frozenset()


def _listed(record: SettingsRecord, fault: str) -> Listed:
    return Listed(record.uid, record.version, record.created, record.generation, record.status, fault)


def _edited(known: Listed, stored: SettingsRecord) -> bool:
    """Whether the spec may be another: every status that is written comes back as an event as well."""
    return not stored.generation or known.generation != stored.generation


def _spec(kind: type[Resource], model: type[Spec], stored: SettingsRecord) -> Spec | str:
    """Return the spec, or what is wrong with it."""
    try:
        return model.model_validate(stored.spec)
    except ValidationError as error:
        metadata = {"name": stored.name}
        named = {"apiVersion": API_VERSION, "kind": kind.__name__, "metadata": metadata, "spec": stored.spec}
        fault = "; ".join(map(str, validation.validate(named))) or error.errors(include_url=False)[0]["msg"]
        _log.error(
            "%s %s cannot be read and keeps its former settings: %s",
            kind.__name__,
            stored.name,
            fault,
        )
        return fault

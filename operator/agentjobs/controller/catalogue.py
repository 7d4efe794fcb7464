"""The pools and teams as administrators set them: few objects, read whole, edited live."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec
from pydantic import ValidationError

from agentjobs.apis import validation
from agentjobs.apis.agentpool import AgentPool, AgentPoolSpec
from agentjobs.apis.agentteam import AgentTeam, AgentTeamSpec
from agentjobs.apis.base import Model
from agentjobs.apis.names import API_VERSION
from agentjobs.apis.root import Resource
from agentjobs.apis.sharing import pool_settings
from agentjobs.cluster import paths
from agentjobs.cluster.session import Session
from agentjobs.scheduling.model import PoolSettings
from agentjobs.scheduling.resources import Amounts

_log = logging.getLogger(__name__)

Spec = TypeVar("Spec", bound=Model)


class Listed(NamedTuple):
    """An AgentPool or AgentTeam as it is stored, but for its spec.

    Attributes:
        version: its resourceVersion as a number.
        status: as JSON.
        fault: why its spec cannot be used; "" when it can.
    """

    uid: str
    version: int
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
    """Pools by name and teams by id.

    An object that cannot be read keeps the settings it had: an edit past the schema must not
    open or close a pool.

    Attributes:
        team_ids: by name of the AgentTeam.
        listed_pools, listed_teams: everything stored, by name of the object.
        moved_pools, moved_teams: names of objects that were stored or changed since somebody took them down.
        team_seen: called with name and id of every AgentTeam that is stored or edited; whose it is sets it.
    """

    def __init__(self) -> None:
        self.pools: dict[str, AgentPoolSpec] = {}
        self.teams: dict[str, AgentTeamSpec] = {}
        self.team_ids: dict[str, str] = {}
        self.listed_pools: dict[str, Listed] = {}
        self.listed_teams: dict[str, Listed] = {}
        self.moved_pools: set[str] = set()
        self.moved_teams: set[str] = set()
        self.team_seen: Callable[[str, str], None] = lambda *_: None

    async def read(self, session: Session) -> None:
        """Replace everything by what is stored now.

        Raises:
            ApiError: when it cannot be read; then nothing has changed.
        """
        pools = msgspec.json.decode(await session.request("GET", paths.AGENTPOOLS))["items"]
        teams = msgspec.json.decode(await session.request("GET", paths.AGENTTEAMS))["items"]
        for name in self.listed_pools.keys() - {pool["metadata"]["name"] for pool in pools}:
            self.pool_deleted(name)
        for name in self.listed_teams.keys() - {team["metadata"]["name"] for team in teams}:
            self.team_deleted(name)
        for pool in pools:
            self.pool_stored(pool)
        for team in teams:
            self.team_stored(team)

    def pool_stored(self, body: dict[str, Any]) -> bool:
        """An AgentPool was created or changed; return whether its settings may have."""
        name = body["metadata"]["name"]
        known, listed = self.listed_pools.get(name), _listed(body)
        if _late(known, listed):
            return False
        self.moved_pools.add(name)
        edited = _edited(known, listed)
        if edited:
            spec = _spec(AgentPool, AgentPoolSpec, body)
            if isinstance(spec, str):
                listed = listed._replace(fault=spec)
            else:
                self.pools[name] = spec
        elif known is not None:
            listed = listed._replace(fault=known.fault)
        self.listed_pools[name] = listed
        return edited

    def team_stored(self, body: dict[str, Any]) -> bool:
        """An AgentTeam was created or changed; return whether its settings may have."""
        name = body["metadata"]["name"]
        known, listed = self.listed_teams.get(name), _listed(body)
        if _late(known, listed):
            return False
        self.moved_teams.add(name)
        edited = _edited(known, listed)
        if edited:
            team = _spec(AgentTeam, AgentTeamSpec, body)
            if isinstance(team, str):
                listed = listed._replace(fault=team)
            else:
                self._forget_team(name)
                team_id = self.team_ids[name] = team.team_id or name
                self.teams[team_id] = team
                self.team_seen(name, team_id)
        elif known is not None:
            listed = listed._replace(fault=known.fault)
        self.listed_teams[name] = listed
        return edited

    def pool_deleted(self, name: str) -> None:
        """An AgentPool is gone; unknown names are no error."""
        self.pools.pop(name, None)
        self.listed_pools.pop(name, None)

    def team_deleted(self, name: str) -> None:
        """An AgentTeam is gone, by the object's name; unknown names are no error."""
        self._forget_team(name)
        self.listed_teams.pop(name, None)

    def _forget_team(self, name: str) -> None:
        team_id = self.team_ids.pop(name, None)
        if team_id is not None:
            self.teams.pop(team_id, None)

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


def _listed(body: dict[str, Any]) -> Listed:
    metadata, status = body["metadata"], body.get("status")
    version = str(metadata.get("resourceVersion", ""))
    return Listed(
        uid=metadata.get("uid", ""),
        version=int(version) if version.isdecimal() else 0,
        generation=metadata.get("generation", 0),
        status=status if isinstance(status, dict) else {},
    )


def _late(known: Listed | None, listed: Listed) -> bool:
    """Whether an event tells of what has been overtaken."""
    return known is not None and known.uid == listed.uid and 0 < listed.version < known.version


def _edited(known: Listed | None, listed: Listed) -> bool:
    """Whether the spec may be another: every status that is written comes back as an event as well."""
    if known is None or not listed.generation:
        return True
    return known.uid != listed.uid or known.generation != listed.generation


def _spec(kind: type[Resource], model: type[Spec], body: dict[str, Any]) -> Spec | str:
    """Return the spec, or what is wrong with it."""
    spec = body.get("spec") or {}
    try:
        return model.model_validate(spec)
    except ValidationError as error:
        named = {"apiVersion": API_VERSION, "kind": kind.__name__, "metadata": body["metadata"], "spec": spec}
        fault = "; ".join(map(str, validation.validate(named))) or error.errors(include_url=False)[0]["msg"]
        _log.error(
            "%s %s cannot be read and keeps its former settings: %s",
            kind.__name__,
            body["metadata"]["name"],
            fault,
        )
        return fault

"""The pools and teams as administrators set them: few objects, read whole, edited live."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from pydantic import ValidationError

from agentjobs.apis.agentpool import AgentPoolSpec
from agentjobs.apis.agentteam import AgentTeamSpec
from agentjobs.apis.sharing import pool_settings
from agentjobs.cluster import paths
from agentjobs.cluster.session import Session
from agentjobs.scheduling.model import PoolSettings
from agentjobs.scheduling.resources import Amounts

_log = logging.getLogger(__name__)


class Catalogue:
    """Pools by name and teams by id.

    An object that cannot be read keeps the settings it had: an edit past the schema must not
    open or close a pool.
    """

    def __init__(self) -> None:
        self.pools: dict[str, AgentPoolSpec] = {}
        self.teams: dict[str, AgentTeamSpec] = {}
        self.team_ids: dict[str, str] = {}

    async def read(self, session: Session) -> None:
        """Replace everything by what is stored now.

        Raises:
            ApiError: when it cannot be read; then nothing has changed.
        """
        pools = msgspec.json.decode(await session.request("GET", paths.AGENTPOOLS))["items"]
        teams = msgspec.json.decode(await session.request("GET", paths.AGENTTEAMS))["items"]
        for name in self.pools.keys() - {pool["metadata"]["name"] for pool in pools}:
            del self.pools[name]
        for name in self.team_ids.keys() - {team["metadata"]["name"] for team in teams}:
            self.team_deleted(name)
        for pool in pools:
            self.pool_stored(pool)
        for team in teams:
            self.team_stored(team)

    def pool_stored(self, body: dict[str, Any]) -> None:
        """An AgentPool was created or edited."""
        name = body["metadata"]["name"]
        try:
            self.pools[name] = AgentPoolSpec.model_validate(body.get("spec") or {})
        except ValidationError as error:
            _log.error("AgentPool %s cannot be read and keeps its former settings: %s", name, error)

    def team_stored(self, body: dict[str, Any]) -> None:
        """An AgentTeam was created or edited."""
        name = body["metadata"]["name"]
        try:
            team = AgentTeamSpec.model_validate(body.get("spec") or {})
        except ValidationError as error:
            _log.error("AgentTeam %s cannot be read and keeps its former settings: %s", name, error)
            return
        self.team_deleted(name)
        self.team_ids[name] = team.team_id or name
        self.teams[team.team_id or name] = team

    def pool_deleted(self, name: str) -> None:
        """An AgentPool is gone; unknown names are no error."""
        self.pools.pop(name, None)

    def team_deleted(self, name: str) -> None:
        """An AgentTeam is gone, by the object's name; unknown names are no error."""
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

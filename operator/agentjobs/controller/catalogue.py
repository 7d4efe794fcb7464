"""The pools and teams as administrators set them: few objects, edited live."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentjobs.apis.agentpool import AgentPool, AgentPoolSpec
from agentjobs.apis.agentteam import AgentTeam, AgentTeamSpec
from agentjobs.apis.sharing import pool_settings
from agentjobs.controller.listing import Listing
from agentjobs.scheduling.model import PoolSettings
from agentjobs.scheduling.resources import Amounts


class Catalogue:
    """Pools by name and teams by id, told by their reflectors.

    Attributes:
        teams: by id: the settings in force.
        team_holders: by id: the name of the AgentTeam whose settings these are. Of two with one id, which
            are made only past the webhook, it is the older one.
        team_ids: by name: the id that each AgentTeam asks for.
        agentpools, agentteams: everything stored.
        team_seen: called with name and id of every AgentTeam that is stored or edited; whose it is sets it.
    """

    def __init__(self) -> None:
        self.pools: dict[str, AgentPoolSpec] = {}
        self.teams: dict[str, AgentTeamSpec] = {}
        self.team_holders: dict[str, str] = {}
        self.team_ids: dict[str, str] = {}
        self.agentpools = Listing(AgentPool, AgentPoolSpec, self.pools.__setitem__, self._remove)
        self.agentteams = Listing(AgentTeam, AgentTeamSpec, self._claim, self._withdraw)
        self.team_seen: Callable[[str, str], None] = lambda *_: None
        self._claims: dict[
            str, dict[str, AgentTeamSpec]
        ] = {}  # by id and name: every AgentTeam that asks for it

    def _remove(self, name: str) -> None:
        self.pools.pop(name, None)

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
        holder = min(claims, key=lambda name: (self.agentteams.listed[name].created, name))
        if self.team_holders.get(team_id) != holder:
            self.agentteams.moved |= claims.keys()
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

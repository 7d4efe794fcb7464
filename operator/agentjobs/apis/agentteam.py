"""AgentTeam: who may submit for a team, and what the team is owed in each pool."""

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, ValidationInfo, field_validator

from agentjobs.apis.agentjob import Priority
from agentjobs.apis.amounts import RESOURCES, Amounts
from agentjobs.apis.base import (
    MapOf,
    Model,
    NamespacedName,
    NamespaceName,
    PoolName,
    Refusal,
    Runs,
    TeamId,
    Unique,
    Whole,
    camel,
    cel,
    refused,
    refused_all,
    rules,
)
from agentjobs.apis.conditions import Conditions
from agentjobs.apis.root import NOT_OBSERVED, READY_REASON, Column, ObjectMeta, Resource

POOLS_MAX = 32

Identity = Annotated[str, Field(min_length=1, max_length=256)]


class TeamMembers(Model):
    """Who may submit, cancel and re-prioritise runs of the team. One match is enough."""

    users: Unique[Identity] = Field(default_factory=list, max_length=512)
    """User names, as the API server sees them. None by default."""

    groups: Unique[Identity] = Field(default_factory=list, max_length=128)
    """Groups, as the API server sees them. None by default."""

    service_accounts: Unique[NamespacedName] = Field(default_factory=list, max_length=128)
    """Service accounts, as namespace/name. None by default."""


def _within_limit(resource: str) -> dict[str, str]:
    guaranteed, limit = f"self.guaranteed.{resource}", f"self.limit.{resource}"
    return cel(
        "!has(self.guaranteed) || !has(self.limit) || "
        f"!has({guaranteed}) || !has({limit}) || {guaranteed} <= {limit}",
        f"guaranteed.{resource} is above limit.{resource}; lower the one or raise the other",
        field=f".guaranteed.{resource}",
    )


class TeamPool(Model):
    """What the team is owed, and limited to, in one pool."""

    model_config = ConfigDict(
        json_schema_extra=rules(*(_within_limit(camel(resource)) for resource in RESOURCES))
    )

    weight: Whole = Field(default=1, ge=1, le=1000)
    """Share owed relative to other teams: with weight 2 a team may hold twice what one with weight 1
    holds."""

    limit: Amounts | None = None
    """The most the team may hold at a time. A resource that is not named is not limited. None by default."""

    guaranteed: Amounts | None = None
    """What is kept for the team while it has runs waiting. A resource that is not named: 0. None by
    default."""

    critical_limit: Amounts | None = None
    """The most that critical runs of the team may hold at a time. A resource that is not named is not
    limited. None by default."""

    @field_validator("guaranteed")
    @classmethod
    def _guaranteed_is_within_limit(cls, guaranteed: Amounts | None, info: ValidationInfo) -> Amounts | None:
        limit: Amounts | None = info.data.get("limit")
        if guaranteed is None or limit is None:
            return guaranteed
        pairs = ((name, getattr(guaranteed, name), getattr(limit, name)) for name in RESOURCES)
        above = [
            Refusal(
                f"is above limit.{camel(name)}, which is {most}",
                "lower the one or raise the other",
                (camel(name),),
            )
            for name, owed, most in pairs
            if owed is not None and most is not None and owed > most
        ]
        if above:
            raise refused_all(above)
        return guaranteed


class AgentTeamSpec(Model):
    """Who belongs to the team, and what it is owed."""

    team_id: TeamId | None = None
    """The team's id, as runs name it in spec.teamId; unique in the cluster. By default the object's own
    name."""

    max_pending: Annotated[Runs, Field(ge=0, le=100_000)] | None = None
    """How many of the team's runs may wait, over all pools; one more is refused with 429. By default what the
    pool that is submitted to says."""

    members: TeamMembers | None = None
    """Who may act for the team. By default everyone whom RBAC lets create AgentJobs."""

    namespaces: list[NamespaceName] = Field(default_factory=list, max_length=128)
    """Namespaces that the team's runs may be in; HTTP submissions go to the first. All by default."""

    secrets: Unique[NamespacedName] = Field(default_factory=list, max_length=128)
    """Secrets that the team's runs may use, as namespace/name. None by default."""

    max_priority: Priority | None = Field(default=None, strict=False)
    """The most urgent class that the team may use. By default critical: all of them."""

    pools: MapOf[PoolName, TeamPool] = Field(default_factory=dict, max_length=POOLS_MAX)
    """What the team is owed in each pool, by the pool's name. By default weight 1 and no limits."""


class TeamPoolStatus(Model):
    """How the team stands in one pool."""

    pending: Runs = Field(default=0, ge=0)
    """Runs that wait."""

    running: Runs = Field(default=0, ge=0)
    """Runs that hold a slot."""

    usage: Amounts | None = None
    """What they hold."""

    share: Annotated[Whole, Field(ge=0, json_schema_extra={"unit": "thousandths"})] | None = None
    """The largest part that the team holds of any resource of the pool."""

    entitlement: Amounts | None = None
    """What the team may always hold: its share of the pool, or what it is guaranteed where that is more."""


class AgentTeamStatus(Model):
    """How the team stands."""

    team_id: TeamId | None = None
    """The team's id: spec.teamId, or the object's name."""

    pending: Runs = Field(default=0, ge=0)
    """Runs that wait, over all pools."""

    running: Runs = Field(default=0, ge=0)
    """Runs that hold a slot, over all pools."""

    pools: MapOf[PoolName, TeamPoolStatus] = Field(default_factory=dict, max_length=POOLS_MAX)
    """How the team stands in each pool that it names or has runs in, by the pool's name."""

    conditions: Conditions = Field(default_factory=list)
    """How the team stands, in the vocabulary of kubectl wait and kstatus."""

    observed_generation: Whole = Field(default=-1, ge=-1)
    """The metadata.generation that this status was computed from."""


class AgentTeam(Resource):
    """A team that shares the cluster: its members, its limits, and what it is owed in each pool."""

    plural: ClassVar[str] = "agentteams"
    short_name: ClassVar[str] = "agt"
    namespaced: ClassVar[bool] = False
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Team", ".status.teamId"),
        Column("Pending", ".status.pending", type="integer"),
        Column("Running", ".status.running", type="integer"),
        Column("Status", READY_REASON),
        Column("Age", ".metadata.creationTimestamp", type="date"),
    )

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "has(self.spec.teamId) || (size(self.metadata.name) >= 3 && size(self.metadata.name) <= 64)",
                "the name is the team id and has 3 to 64 characters; choose such a name or set spec.teamId",
                field=".spec.teamId",
            )
        )
    )

    spec: AgentTeamSpec = Field(default=AgentTeamSpec(), validate_default=True)
    """Who belongs to the team, and what it is owed."""

    status: AgentTeamStatus = Field(default_factory=AgentTeamStatus, json_schema_extra=NOT_OBSERVED)
    """How the team stands; only the operator writes it."""

    @field_validator("spec")
    @classmethod
    def _id_or_name_of_right_length(cls, spec: AgentTeamSpec, info: ValidationInfo) -> AgentTeamSpec:
        metadata: ObjectMeta | None = info.data.get("metadata")
        if metadata is not None and spec.team_id is None and not 3 <= len(metadata.name) <= 64:
            raise refused(
                f"is not set, and the name has {len(metadata.name)} characters",
                "set an id of 3 to 64 characters",
                at=("teamId",),
            )
        return spec

    @property
    def team_id(self) -> str:
        """The id that runs name."""
        return self.spec.team_id or self.metadata.name

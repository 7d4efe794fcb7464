"""AgentPool: capacity that teams share, and the rules by which they do."""

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, ValidationInfo, field_validator

from agentjobs.apis.agentjob import TTL_MAX_SECONDS
from agentjobs.apis.amounts import Amounts, ComputeAmounts
from agentjobs.apis.base import (
    LabelKey,
    LabelValue,
    MapOf,
    Model,
    NamespaceName,
    Percent,
    Retries,
    Runs,
    Seconds,
    Slots,
    Timestamp,
    Unique,
    Whole,
    cel,
    refused,
    rules,
)
from agentjobs.apis.conditions import Conditions
from agentjobs.apis.root import NOT_OBSERVED, READY_REASON, Column, ObjectMeta, Resource
from agentjobs.apis.sandbox import Sandbox


class NodeSelection(Model):
    """Nodes, by their labels."""

    match_labels: MapOf[LabelKey, LabelValue] = Field(default_factory=dict, max_length=32)
    """Labels that a node must have, all of them. None by default, which selects every node."""


class PoolCapacity(Model):
    """How much there is: a fixed amount, or what the ready nodes of a selection offer."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "has(self.fixed) != has(self.nodes)",
                "capacity is either fixed or that of nodes; set one of both",
            )
        )
    )

    fixed: ComputeAmounts | None = None
    """A fixed amount. A resource that is not named is not limited."""

    nodes: NodeSelection | None = Field(default=None, validate_default=True)
    """What the ready nodes of this selection offer, less what other pods request there."""

    @field_validator("nodes")
    @classmethod
    def _either_fixed_or_nodes(
        cls, nodes: NodeSelection | None, info: ValidationInfo
    ) -> NodeSelection | None:
        if "fixed" in info.data and (info.data["fixed"] is None) == (nodes is None):
            both = nodes is not None
            raise refused(
                "is set beside capacity.fixed" if both else "is not set, and neither is capacity.fixed",
                "set one of both",
            )
        return nodes


class PriorityWeights(Model):
    """Order of the priority classes: the lowest weight goes first."""

    critical: Whole = Field(default=0, ge=0, le=1_000_000)
    """Weight of critical runs."""

    high: Whole = Field(default=10, ge=0, le=1_000_000)
    """Weight of high runs."""

    default: Whole = Field(default=50, ge=0, le=1_000_000)
    """Weight of default runs."""

    low: Whole = Field(default=100, ge=0, le=1_000_000)
    """Weight of low runs."""


class Idempotency(Model):
    """How idempotency keys are handled."""

    required: bool = False
    """Whether a run without a key is refused."""

    strict: bool = False
    """Whether the same key with a different spec is refused with 422, instead of answered with the first
    run."""

    before_backpressure: bool = False
    """Whether a key is looked up before the team's waiting runs are counted, so that a retry succeeds at the
    limit."""


class Drain(Model):
    """Emptying the pool: new runs are refused, waiting ones still start."""

    timeout_seconds: Seconds = Field(ge=0, le=604_800)
    """When, after the drain was set, what is left is canceled. 0 cancels at once."""


class Retention(Model):
    """What is kept of runs that ended, and for how long."""

    ttl_seconds_after_finished: Seconds = Field(default=604_800, ge=0, le=TTL_MAX_SECONDS)
    """How long an AgentJob is kept that does not say so itself."""

    pod_seconds_after_finished: Seconds = Field(default=3600, ge=0, le=604_800)
    """How long its Job and pod are kept, and with them the logs."""

    max_finished_per_team: Runs = Field(default=1000, ge=1, le=100_000)
    """How many ended runs of a team are kept; the oldest go first."""


class AgentPoolSpec(Model):
    """How much there is, who may use it, and how it is shared. Every edit takes effect at once; nothing that
    runs is interrupted by one."""

    max_concurrency: Annotated[Slots, Field(ge=1, le=1_000_000)] | None = None
    """Execution slots: how many runs may hold capacity at the same time. Unset, the default, means
    unlimited."""

    capacity: PoolCapacity | None = None
    """How much there is of each resource. Not limited by default."""

    namespaces: Unique[NamespaceName] = Field(default_factory=list, max_length=256)
    """Namespaces whose runs may use the pool. All by default."""

    priority_weights: PriorityWeights = PriorityWeights()
    """Order of the priority classes: the lowest weight goes first."""

    share_percent: Percent = Field(default=25, ge=1, le=100)
    """What a team may always hold of each resource."""

    headroom_percent: Percent = Field(default=10, ge=0, le=100)
    """What must stay free of each resource when a team goes beyond its share."""

    share_window_seconds: Seconds = Field(default=3600, ge=0, le=604_800)
    """How long after its last run another team still counts: meanwhile no team is alone in the pool, and
    shares apply."""

    max_pending_per_team: Runs = Field(default=50, ge=0, le=100_000)
    """How many runs of a team may wait, where its AgentTeam says nothing; one more is refused with 429."""

    retry_after_seconds: Seconds = Field(default=30, ge=1, le=3600)
    """When a refused submitter is told to try again."""

    start_timeout_seconds: Seconds = Field(default=300, ge=20, le=7200)
    """How long a run may take from the creation of its Job to the start of its container."""

    infra_retries: Retries = Field(default=1, ge=0, le=4)
    """How often a run is started again after its node or pod was lost."""

    require_teams: bool = True
    """Whether an AgentTeam must exist for a run's spec.teamId; if not, anyone may name any team."""

    idempotency: Idempotency = Idempotency()
    """How idempotency keys are handled."""

    hold: bool = False
    """Whether starting is suspended: runs are taken and wait, what runs goes on."""

    drain: Drain | None = None
    """Empties the pool: new runs are refused, waiting ones still start, and what is left at the timeout is
    canceled. Unset by default."""

    sandbox: Sandbox = Sandbox()
    """What every run of the pool is confined to."""

    retention: Retention = Retention()
    """What is kept of runs that ended, and for how long."""


class AgentPoolStatus(Model):
    """How the pool stands."""

    pending: Runs = Field(default=0, ge=0)
    """Runs that wait."""

    running: Runs = Field(default=0, ge=0)
    """Runs that hold a slot."""

    capacity: Amounts | None = None
    """How much there is."""

    usage: Amounts | None = None
    """How much of it is held."""

    draining_since: Timestamp | None = None
    """When the drain was first seen."""

    conditions: Conditions = Field(default_factory=list)
    """How the pool stands, in the vocabulary of kubectl wait and kstatus."""

    observed_generation: Whole = Field(default=-1, ge=-1)
    """The metadata.generation that this status was computed from."""


class AgentPool(Resource):
    """Capacity that teams share: how much there is, who may use it, how it is shared, and what runs are
    confined to."""

    plural: ClassVar[str] = "agentpools"
    short_name: ClassVar[str] = "agp"
    namespaced: ClassVar[bool] = False
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Slots", ".spec.maxConcurrency", type="integer"),
        Column("Pending", ".status.pending", type="integer"),
        Column("Running", ".status.running", type="integer"),
        Column("Status", READY_REASON),
        Column("Age", ".metadata.creationTimestamp", type="date"),
        Column("Egress", ".spec.sandbox.egress", wide=True),
        Column("Runtime", ".spec.sandbox.runtimeClassName", wide=True),
    )

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "size(self.metadata.name) <= 63",
                "the name becomes a label of every run and has at most 63 characters; choose a shorter one",
            )
        )
    )

    spec: AgentPoolSpec = AgentPoolSpec()
    """How much there is, who may use it, and how it is shared."""

    status: AgentPoolStatus = Field(default_factory=AgentPoolStatus, json_schema_extra=NOT_OBSERVED)
    """How the pool stands; only the operator writes it."""

    @field_validator("metadata")
    @classmethod
    def _name_fits_a_label(cls, metadata: ObjectMeta) -> ObjectMeta:
        if len(metadata.name) > 63:
            raise refused(
                f"has {len(metadata.name)} characters, the maximum is 63: it becomes a label of every run",
                "choose a shorter one",
                at=("name",),
            )
        return metadata

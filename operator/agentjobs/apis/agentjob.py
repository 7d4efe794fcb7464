"""AgentJob: one run of an agent. The manifest is the queue entry."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from agentjobs.apis.base import (
    RESERVED,
    Gpus,
    MapOf,
    Mebibytes,
    Millicores,
    Model,
    ObjectName,
    PoolName,
    ProcessText,
    Retries,
    Seconds,
    TeamId,
    cel,
    fits,
    no_duplicates,
    refused,
    rules,
)
from agentjobs.apis.image import Image
from agentjobs.apis.root import NOT_OBSERVED, Column, Resource
from agentjobs.apis.runstatus import TERMINAL_PHASES, AgentJobStatus, Phase

RESERVED_VARIABLES = ("K8S_NAMESPACE", "NODE_NAME", "POD_NAME")
"""Environment variables that the runtime sets, sorted."""

INPUT_MAX_BYTES = 64 * 1024
TTL_MAX_SECONDS = 31_536_000  # a year


class Priority(StrEnum):
    """How urgent a run is."""

    CRITICAL = "critical"
    HIGH = "high"
    DEFAULT = "default"
    LOW = "low"


class SecretExposure(StrEnum):
    """How an agent sees a Secret."""

    FILES = "files"
    ENVIRONMENT = "env"


class ResourceRequirements(Model):
    """The execution slot: how large it is and for how long a run may hold it."""

    cpu_millicores: Millicores = Field(default=1000, ge=100, le=8000)
    """CPU in thousandths of a core, requested and limited alike."""

    memory_mb: Mebibytes = Field(default=2048, ge=128, le=32_768)
    """Memory in MiB, requested and limited alike."""

    gpu_count: Gpus = Field(default=0, ge=0, le=4)
    """Whole GPUs."""

    timeout_seconds: Seconds = Field(default=600, ge=30, le=7200)
    """How long the run itself may take, from the start of its container."""


class SecretUse(Model):
    """A Secret that the agent gets."""

    name: ObjectName
    """Name of a Secret in the namespace of the AgentJob; its team must be allowed to use it."""

    expose_as: SecretExposure = Field(default=SecretExposure.FILES, strict=False)
    """Mounted as a folder of files, one for each key, or set as environment variables named like the keys."""


def _not_reserved(name: str) -> str:
    if name in RESERVED_VARIABLES:
        raise PydanticCustomError(
            RESERVED, "Reserved env vars: {name}; the runtime sets them, choose other names", {"name": name}
        )
    return name


# What Kubernetes takes (since 1.34): every printable ASCII character but the equals sign.
VariableName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=256,
        pattern="^[ -<>-~]+$",
        json_schema_extra={"hint": "use printable ASCII characters other than '='"},
    ),
    AfterValidator(_not_reserved),
]

_found = " + ".join(f"('{name}' in self ? ', {name}' : '')" for name in RESERVED_VARIABLES)
_RESERVED_RULE = cel(
    " && ".join(f"!('{name}' in self)" for name in RESERVED_VARIABLES),
    f"Reserved env vars: {', '.join(RESERVED_VARIABLES)}; the runtime sets them, choose other names",
    expression=f"'Reserved env vars: ' + ({_found}).substring(2)"
    " + '; the runtime sets them, choose other names'",
)


_ALWAYS_PRESENT = ("agentImage", "teamId", "resources", "pool", "retries")  # required, or with a default
_MAY_BE_ABSENT = ("environment", "idempotencyKey", "command", "args", "secrets")

IMMUTABLE = (*_ALWAYS_PRESENT, *_MAY_BE_ABSENT, "inputPayload")
"""Fields of the spec that stay as created. CEL does not see inputPayload: the webhook guards that one."""


def _unchanged(field: str) -> dict[str, str]:
    """Return the rule for a field that is always there."""
    return _immutable(field, f"self.{field} == oldSelf.{field}")


def _unchanged_if_any(field: str) -> dict[str, str]:
    """Return the rule for an optional text, list or map; an empty one is the same as none."""
    size = "(has({0}.{1}) ? size({0}.{1}) : 0)"
    return _immutable(
        field,
        f"{size.format('self', field)} == {size.format('oldSelf', field)} && "
        f"(!has(self.{field}) || !has(oldSelf.{field}) || self.{field} == oldSelf.{field})",
    )


def _immutable(field: str, rule: str) -> dict[str, str]:
    message = f"{field} is immutable after creation; create a new AgentJob"
    return cel(rule, message, field=f".{field}", reason="FieldValueForbidden")


class AgentJobSpec(Model):
    """What to run, for whom, how urgently, how large. Immutable but for cancel, ttlSecondsAfterFinished and,
    while the run is PENDING, priority."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            *map(_unchanged, _ALWAYS_PRESENT),
            *map(_unchanged_if_any, _MAY_BE_ABSENT),
            cel(
                "!has(oldSelf.cancel) || has(self.cancel)",
                "cancel is immutable once it is true: a canceled run never comes back; create a new AgentJob",
                field=".cancel",
                reason="FieldValueForbidden",
            ),
        )
    )

    agent_image: Image
    """Container image of the agent, with a tag or a digest: name:tag, host:port/name:tag,
    name@sha256:digest."""

    team_id: TeamId
    """The team that the run counts for: its share, its limits, its number of waiting runs. Any characters."""

    priority: Priority = Field(default=Priority.DEFAULT, strict=False)
    """How urgent the run is. More urgent classes go first; may be changed while the run is PENDING."""

    resources: ResourceRequirements = ResourceRequirements()
    """The execution slot: how large it is and for how long the run may hold it."""

    environment: MapOf[VariableName, ProcessText] = Field(
        default_factory=dict, max_length=128, json_schema_extra=rules(_RESERVED_RULE)
    )
    """Environment variables of the agent. K8S_NAMESPACE, POD_NAME and NODE_NAME are set by the runtime and
    refused here; so are names that are empty, not printable ASCII, or contain '='. None by default."""

    input_payload: dict[str, Any] = Field(
        default_factory=dict, json_schema_extra={"x-kubernetes-preserve-unknown-fields": True}
    )
    """Any JSON object, at most 64 KiB when serialised; the agent reads it from the file that AGENT_INPUT_FILE
    names. Empty by default."""

    idempotency_key: str = Field(default="", max_length=256)
    """A second AgentJob of the team with the same key is refused, naming the first. Empty, the default, means
    no key."""

    command: list[ProcessText] = Field(default_factory=list, max_length=64)
    """Entry point that replaces the image's, as in a container. The image's by default."""

    args: list[ProcessText] = Field(default_factory=list, max_length=256)
    """Arguments that replace the image's, as in a container. The image's by default."""

    secrets: list[SecretUse] = Field(
        default_factory=list,
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    """Secrets of the namespace that the agent gets; only those that the team allows. None by default."""

    pool: PoolName = "default"
    """Name of the AgentPool whose capacity the run uses."""

    retries: Retries = Field(default=0, ge=0, le=5)
    """How often the run is started again after the agent failed. Losses of infrastructure count apart."""

    cancel: bool | None = Field(
        default=None,
        json_schema_extra=rules(
            cel("self", "cancel is only ever set to true; leave it out to let the run go on")
        ),
    )
    """Set to true to stop the run; it can never be taken back. Unset by default: leave it out, since a false
    in a GitOps repository would undo a cancel made by hand."""

    ttl_seconds_after_finished: Annotated[Seconds, Field(ge=0, le=TTL_MAX_SECONDS)] | None = None
    """How long the AgentJob is kept after it ended, and with it its idempotency key. By default what the pool
    says. May be changed at any time."""

    @field_validator("secrets")
    @classmethod
    def _each_secret_once(cls, secrets: list[SecretUse]) -> list[SecretUse]:
        return no_duplicates(secrets, key=lambda secret: secret.name)

    @field_validator("input_payload")
    @classmethod
    def _input_fits(cls, payload: dict[str, Any]) -> dict[str, Any]:
        fits(payload, INPUT_MAX_BYTES, "pass a reference to the data instead")
        return payload

    @field_validator("cancel")
    @classmethod
    def _cancel_is_true(cls, cancel: bool | None) -> bool | None:
        if cancel is False:
            raise refused("is not a request", "leave it out to let the run go on, set true to cancel")
        return cancel


_TERMINAL = ", ".join(f"'{phase}'" for phase in TERMINAL_PHASES)


class AgentJob(Resource):
    """One run of an AI agent: queued by priority class and its team's fair share, then run once in a
    sandboxed Job of exactly the size asked for."""

    plural: ClassVar[str] = "agentjobs"
    short_name: ClassVar[str] = "aj"
    namespaced: ClassVar[bool] = True
    selectable: ClassVar[tuple[str, ...]] = (".spec.teamId", ".spec.priority", ".status.phase")
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Team", ".spec.teamId"),
        Column("Priority", ".spec.priority"),
        Column("Status", ".status.phase"),
        Column("Reason", ".status.reason"),
        Column("Age", ".metadata.creationTimestamp", type="date"),
        Column("Duration", ".status.duration"),
        Column("Job-ID", ".status.jobId", wide=True),
        Column("Pod", ".status.podName", wide=True),
        Column("Exit", ".status.exitCode", type="integer", wide=True),
        Column("Message", ".status.message", wide=True),
    )

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                f"self.spec.priority == oldSelf.spec.priority || oldSelf.status.phase == '{Phase.PENDING}'",
                "priority is immutable once the run has left PENDING",
                field=".spec.priority",
                reason="FieldValueForbidden",
            ),
            cel(
                f"!(oldSelf.status.phase in [{_TERMINAL}]) || self.status.phase == oldSelf.status.phase",
                "a terminal phase never changes",
                field=".status.phase",
                reason="FieldValueForbidden",
            ),
        )
    )

    spec: AgentJobSpec
    """What to run, for whom, how urgently, how large."""

    status: AgentJobStatus = Field(default_factory=AgentJobStatus, json_schema_extra=NOT_OBSERVED)
    """How the run stands; only the operator writes it."""

"""The status of an AgentJob: every transition stamped, every wait and every failure explained."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, field_validator

from agentjobs.apis.base import MapOf, Model, ObjectName, Timestamp, Whole, fits
from agentjobs.apis.conditions import ConditionReason, Conditions

MESSAGE_MAX_LENGTH = 4096
ERROR_MAX_LENGTH = 8192  # a prefix and a message, or what the agent said
TRACEBACK_MAX_LENGTH = 8192
RESULT_MAX_BYTES = 4096
ATTEMPTS_MAX = 10


class Phase(StrEnum):
    """Where a run is on its way."""

    PENDING = "PENDING"
    """Waiting for a slot, or for its next attempt."""

    SCHEDULED = "SCHEDULED"
    """Holds a slot; its container has not started."""

    RUNNING = "RUNNING"
    """Its container runs."""

    CANCELING = "CANCELING"
    """A cancel was asked for; what runs has not ended yet and holds its slot."""

    SUCCEEDED = "SUCCEEDED"
    """Ended with exit code 0 and a valid result."""

    FAILED = "FAILED"
    """The agent failed, or what ran it was lost."""

    TIMED_OUT = "TIMED_OUT"
    """Took longer than resources.timeoutSeconds."""

    CANCELED = "CANCELED"
    """Stopped because a cancel was asked for."""

    SCHEDULE_FAILED = "SCHEDULE_FAILED"
    """Could not be started; never tried again by itself."""

    @property
    def terminal(self) -> bool:
        """Whether the run has ended."""
        return self in TERMINAL_PHASES


TERMINAL_PHASES = (Phase.SUCCEEDED, Phase.FAILED, Phase.TIMED_OUT, Phase.CANCELED, Phase.SCHEDULE_FAILED)

ExitCode = Annotated[Whole, Field(ge=-(2**31), le=2**31 - 1)]
JobName = Annotated[str, Field(max_length=63)]


class Attempt(Model):
    """One start of the run, after it ended."""

    number: Whole = Field(ge=1, le=2**31 - 1)
    """Which start this was, counted from 1."""

    reason: ConditionReason
    """Why it ended, in one CamelCase word."""

    message: str | None = Field(default=None, max_length=MESSAGE_MAX_LENGTH)
    """Why it ended, in a sentence."""

    exit_code: ExitCode | None = None
    """Exit code of the agent's container, 128 + n after signal n; unset when it never ran."""

    k8s_job_name: JobName | None = None
    """Name of the Job that ran it."""

    node_name: ObjectName | None = None
    """Name of the node that it ran on."""

    scheduled_at: Timestamp | None = None
    """When it was given a slot."""

    started_at: Timestamp | None = None
    """When its container started."""

    completed_at: Timestamp | None = None
    """When it ended."""


class AgentJobStatus(Model):
    """How the run stands. Times are RFC 3339 in UTC with six decimals, never decrease, and are those of the
    last attempt."""

    job_id: str | None = Field(
        default=None,
        max_length=26,
        pattern="^[0-7][0-9A-HJKMNP-TV-Z]{25}$",
        json_schema_extra={"hint": "write an upper-case ULID"},
    )
    """Id of the run for the HTTP API: a ULID made of creationTimestamp and the last 80 bits of
    metadata.uid."""

    phase: Phase = Field(default=Phase.PENDING, strict=False)
    """Where the run is on its way. SUCCEEDED, FAILED, TIMED_OUT, CANCELED and SCHEDULE_FAILED are final."""

    reason: ConditionReason | None = None
    """The cause of the phase, or of the wait, in one CamelCase word, for machines."""

    message: str | None = Field(default=None, max_length=MESSAGE_MAX_LENGTH)
    """The cause in a sentence with numbers, for people."""

    created_at: Timestamp | None = None
    """When admission saw the AgentJob. Until the first write, creationTimestamp stands in."""

    scheduled_at: Timestamp | None = None
    """When the run was given a slot."""

    started_at: Timestamp | None = None
    """When its container started."""

    completed_at: Timestamp | None = None
    """When it ended."""

    starts_before: Timestamp | None = None
    """While the run waits as holder of the pool's reservation: when it starts at the latest."""

    k8s_job_name: JobName | None = None
    """Name of the Job that runs it."""

    pod_name: ObjectName | None = None
    """Name of the pod that runs it."""

    node_name: ObjectName | None = None
    """Name of the node that it runs on."""

    duration: str | None = Field(default=None, max_length=32)
    """How long it ran, such as 42s; written with the terminal phase."""

    result: Any = Field(
        default=None,
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True, "nullable": True},
    )
    """What the agent returned, any JSON of at most 4 KiB. Written by the agent: treat it as hostile."""

    artifact_id: str | None = Field(default=None, max_length=256)
    """Where a larger result is found, as a hook named it."""

    extra: MapOf[
        Annotated[str, Field(min_length=1, max_length=63)], Annotated[str, Field(max_length=1024)]
    ] = Field(default_factory=dict, max_length=16)
    """What hooks keep with the run."""

    error: str | None = Field(default=None, max_length=ERROR_MAX_LENGTH)
    """Why it failed: the last line of the traceback, such as ValueError: no such file."""

    error_traceback: str | None = Field(default=None, max_length=TRACEBACK_MAX_LENGTH)
    """The whole traceback, where the agent gave one."""

    exit_code: ExitCode | None = None
    """Exit code of the agent's container, 128 + n after signal n."""

    attempts: list[Attempt] = Field(default_factory=list, max_length=ATTEMPTS_MAX)
    """The attempts that ended, oldest first; the last ten."""

    conditions: Conditions = Field(default_factory=list)
    """How the run stands, in the vocabulary of kubectl wait and kstatus."""

    observed_generation: Whole = Field(default=-1, ge=-1)
    """The metadata.generation that this status was computed from; -1 until the first write."""

    @field_validator("result")
    @classmethod
    def _result_fits(cls, result: Any) -> Any:
        fits(result, RESULT_MAX_BYTES, "store it as an artifact")
        return result

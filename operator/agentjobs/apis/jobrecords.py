"""The Jobs and pods of runs."""

from __future__ import annotations

import msgspec

from agentjobs.apis import nesting
from agentjobs.apis.names import ANNOTATION_RUN, LABEL_ATTEMPT, LABEL_RUN_UID
from agentjobs.apis.records import OBJECT, SPEC_FIELDS, Record, Wire, lenient


class JobCondition(Wire):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class JobStatus(Wire):
    conditions: list[JobCondition] = msgspec.field(default_factory=list)


class JobRecord(Record):
    """A `batch/v1` Job that carries our labels."""

    __slots__ = ("annotation", "attempt", "finished", "run_uid")

    def __init__(self, raw: bytes | msgspec.Raw) -> None:
        found = nesting.decode(raw, OBJECT, SPEC_FIELDS)
        super().__init__(found.metadata)
        self.run_uid = found.metadata.labels.get(LABEL_RUN_UID, "")
        self.attempt = found.metadata.labels.get(LABEL_ATTEMPT, "")
        self.annotation = found.metadata.annotations.get(ANNOTATION_RUN, "")
        conditions = lenient(found.status, JobStatus).conditions
        self.finished = next(
            (c for c in conditions if c.type in ("Complete", "Failed") and c.status == "True"), None
        )


class Running(Wire):
    started_at: str | None = None


class Waiting(Wire):
    reason: str | None = None
    message: str | None = None


class Terminated(Wire):
    exit_code: int = 0
    reason: str | None = None
    message: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Wire):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Wire):
    name: str = ""
    state: ContainerState = msgspec.field(default_factory=ContainerState)


class PodCondition(Wire):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class PodStatus(Wire):
    phase: str = ""
    reason: str | None = None
    message: str | None = None
    conditions: list[PodCondition] = msgspec.field(default_factory=list)
    container_statuses: list[ContainerStatus] = msgspec.field(default_factory=list)


class PodSpec(Wire):
    node_name: str = ""
    active_deadline_seconds: int | None = None


class PodRecord(Record):
    """A pod that carries our labels."""

    __slots__ = ("attempt", "deadline", "node", "run_uid", "status")

    def __init__(self, raw: bytes | msgspec.Raw) -> None:
        found = nesting.decode(raw, OBJECT, SPEC_FIELDS)
        super().__init__(found.metadata)
        self.run_uid = found.metadata.labels.get(LABEL_RUN_UID, "")
        self.attempt = found.metadata.labels.get(LABEL_ATTEMPT, "")
        self.status = lenient(found.status, PodStatus)
        spec = lenient(found.spec, PodSpec)
        self.node, self.deadline = spec.node_name, spec.active_deadline_seconds

    @property
    def terminal(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

"""Stored objects as the operator keeps them: slim, typed, and never trusted to be complete.

An object may come from an older version, from a hand that edited past the schema, or from a server
that has not filled its status yet. So every field has a default, and a part that cannot be read is
taken as absent instead of stopping the reader.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from agentjobs.apis import idempotency, nesting, times
from agentjobs.apis.names import SIMULATION_PREFIX
from agentjobs.apis.runstatus import TERMINAL_PHASES

T = TypeVar("T")


class Wire(msgspec.Struct, rename="camel", gc=False):
    """A part of an object as the API server sends it; unknown fields are skipped."""


class Metadata(Wire):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = "0"
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Attempted(Wire, omit_defaults=True):
    """An attempt that is over, whole, since a list is only ever written whole."""

    number: int = 0
    reason: str = ""
    message: str | None = None
    exit_code: int | None = None
    k8s_job_name: str | None = None
    node_name: str | None = None
    scheduled_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class Stored(Wire):
    """The part of an AgentJob's status that later decisions need."""

    phase: str = "PENDING"
    reason: str | None = None
    observed_generation: int = -1
    job_id: str | None = None
    created_at: str | None = None
    scheduled_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    starts_before: str | None = None
    k8s_job_name: str | None = None
    attempts: list[Attempted] = []
    pod_name: str | None = None
    node_name: str | None = None

    @property
    def last_attempt(self) -> Attempted:
        """The newest attempt that is over; number 0 where there is none."""
        return max(self.attempts, key=lambda attempt: attempt.number, default=Attempted())

    @property
    def terminal(self) -> bool:
        return self.phase in TERMINAL_PHASES


class Head(Wire):
    """The part of an AgentJob's spec that orders it."""

    team_id: str = ""
    priority: str = "default"
    pool: str = "default"
    idempotency_key: str = ""
    cancel: bool | None = None


class Object(Wire):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))
    status: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))


OBJECT = msgspec.json.Decoder(Object)
_WHOLE = msgspec.json.Decoder(dict[str, Any])
_NOTHING: Mapping[str, str] = MappingProxyType({})
SPEC_FIELDS = 3  # their level in an object


class Record:
    """What every kind has. `version` is the resourceVersion as a number: larger is newer."""

    __slots__ = ("created", "deleting", "name", "namespace", "uid", "version")

    def __init__(self, metadata: Metadata) -> None:
        self.uid = metadata.uid
        self.namespace = sys.intern(metadata.namespace)
        self.name = metadata.name
        self.version = int(metadata.resource_version) if metadata.resource_version.isdecimal() else 0
        self.created = times.parse(metadata.creation_timestamp) or 0
        self.deleting = metadata.deletion_timestamp is not None


class AgentJobRecord(Record):
    """An AgentJob.

    Tens of thousands of ended ones are kept, and all that may follow is an edit: of those the `spec`
    (JSON), `simulation` and the rest of the status are dropped, and common strings are shared by all.

    Attributes:
        key, fingerprint: its idempotency key, and what tells its request from another under that key; "" and
            0 where it has none.
        cancel: whether it is to be canceled.
        served, ended: when it was scheduled and when it ended, microseconds since the epoch; 0 for never.
    """

    __slots__ = (
        "cancel",
        "ended",
        "fingerprint",
        "generation",
        "key",
        "pool",
        "priority",
        "served",
        "simulation",
        "spec",
        "status",
        "team",
    )

    def __init__(self, raw: bytes | msgspec.Raw) -> None:
        found = nesting.decode(raw, OBJECT, SPEC_FIELDS)
        super().__init__(found.metadata)
        self.generation = found.metadata.generation
        head = lenient(found.spec, Head)
        self.team, self.priority, self.pool = map(sys.intern, (head.team_id, head.priority, head.pool))
        self.key = head.idempotency_key
        self.cancel = head.cancel is True
        self.fingerprint = idempotency.fingerprint(as_dict(bytes(found.spec))) if self.key else 0
        self.status = lenient(found.status, Stored)
        self.served = times.parse(self.status.scheduled_at) or 0
        self.ended = times.parse(self.status.completed_at) or 0
        self.spec: bytes = b""
        self.simulation: Mapping[str, str] = _NOTHING
        if self.status.terminal:
            phase, reason = sys.intern(self.status.phase), sys.intern(self.status.reason or "") or None
            self.status = Stored(phase, reason, self.status.observed_generation)
        else:
            self.spec = bytes(found.spec)
            self.simulation = simulation(found.metadata.annotations)

    @property
    def told(self) -> bool:
        """Whether its status was worked out from the present spec."""
        return self.status.observed_generation == self.generation


class SettingsRecord(Record):
    """An AgentPool or AgentTeam; there are few, so each is kept whole.

    Attributes:
        spec, status: as JSON, whatever they are.
    """

    __slots__ = ("generation", "spec", "status")

    def __init__(self, raw: bytes | msgspec.Raw) -> None:
        found = nesting.decode(raw, OBJECT, SPEC_FIELDS)
        super().__init__(found.metadata)
        self.generation = found.metadata.generation
        whole = nesting.decode(raw, _WHOLE, SPEC_FIELDS)
        self.spec: Any = whole.get("spec") or {}
        status = whole.get("status")
        self.status: dict[str, Any] = status if isinstance(status, dict) else {}


def lenient(raw: msgspec.Raw, kind: type[T]) -> T:
    """Decode a part of an object; what does not fit the type is taken as absent, field by field."""
    if not raw:
        return kind()
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, RecursionError):
        parts = as_dict(bytes(raw))
    whole = kind()
    for field in msgspec.structs.fields(kind):  # type: ignore[arg-type]
        try:
            value = msgspec.convert(parts[field.encode_name], type=field.type)
        except (KeyError, msgspec.ValidationError):
            continue
        setattr(whole, field.name, value)
    return whole


def simulation(annotations: dict[str, str]) -> dict[str, str]:
    """Return the annotations that simulated nodes read."""
    return {key: value for key, value in annotations.items() if key.startswith(SIMULATION_PREFIX)}


def as_dict(raw: bytes) -> dict[str, Any]:
    """Return a stored JSON object; an empty one where it is something else, or cannot be read."""
    try:
        value = msgspec.json.decode(raw) if raw else {}
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

"""Edits of a stored AgentJob: what is immutable, and which phase may follow which."""

from dataclasses import dataclass
from typing import Any

from tests.unit.apis.bounds import JOB
from tests.unit.apis.rows import Json, minimal, put, with_field


@dataclass(frozen=True)
class Change:
    """An edit of a stored AgentJob, or of its status, and whether it is taken."""

    id: str
    old: Json
    new: Json
    valid: bool
    path: str
    webhook_only: bool = False


FULL = {
    "agentImage": "agent:1",
    "teamId": "red",
    "environment": {"A": "1"},
    "inputPayload": {"n": 1},
    "idempotencyKey": "k",
    "command": ["run"],
    "args": ["x"],
    "secrets": [{"name": "a"}, {"name": "b"}],
}


@dataclass(frozen=True)
class _Edit:
    """A field's value before and after."""

    name: str
    old: Any
    new: Any
    valid: bool = False
    phase: str = "PENDING"
    at: str = ""

    def change(self) -> Change:
        old, new = with_field(JOB, "spec", dict(FULL)), with_field(JOB, "spec", dict(FULL))
        old["status"] = {"phase": self.phase}
        put(old, f"spec.{self.name}", self.old)
        put(new, f"spec.{self.name}", self.new)
        return Change(
            f"{self.phase} spec.{self.name} {self.old} -> {self.new}",
            old,
            new,
            self.valid,
            self.at or f"spec.{self.name}",
            webhook_only=self.name == "inputPayload" and not self.valid,
        )


CHANGES = [
    edit.change()
    for edit in (
        _Edit("agentImage", "agent:1", "agent:2"),
        _Edit("teamId", "red", "blue"),
        _Edit("resources.cpuMillicores", 1000, 1001),
        _Edit("resources.memoryMb", None, 2049),
        _Edit("resources.gpuCount", None, 0, valid=True),  # the default, now written out
        _Edit("resources.timeoutSeconds", 60, None),
        _Edit("resources", {}, None, valid=True),
        _Edit("environment", {"A": "1"}, {"A": "2"}),
        _Edit("environment", {"A": "1"}, {"A": "1", "B": "2"}),
        _Edit("environment", {"A": "1"}, None),
        _Edit("environment", None, {"A": "1"}),
        _Edit("environment", None, {}, valid=True),
        _Edit("environment", {"A": "1", "B": "2"}, {"B": "2", "A": "1"}, valid=True),
        _Edit("inputPayload", {"n": 1}, {"n": 2}),
        _Edit("inputPayload", {"n": 1}, {"n": True}),
        _Edit("inputPayload", {"n": 1}, None),
        _Edit("inputPayload", None, {}, valid=True),
        _Edit("idempotencyKey", "k", "l"),
        _Edit("idempotencyKey", "k", ""),
        _Edit("idempotencyKey", None, "k"),
        _Edit("idempotencyKey", None, "", valid=True),
        _Edit("command", ["run"], ["walk"]),
        _Edit("command", ["a", "b"], ["b", "a"]),
        _Edit("args", ["x"], None),
        _Edit("args", [], None, valid=True),
        _Edit("secrets", [{"name": "a"}], [{"name": "a"}, {"name": "b"}]),
        _Edit("secrets", [{"name": "a"}], [{"name": "a", "exposeAs": "env"}]),
        _Edit("secrets", [{"name": "a"}], [{"name": "a", "exposeAs": "files"}], valid=True),
        _Edit("secrets", [{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}], valid=True),
        _Edit("pool", None, "other"),
        _Edit("pool", None, "default", valid=True),
        _Edit("retries", 1, 2),
        _Edit("cancel", None, True, valid=True),
        _Edit("cancel", True, True, valid=True),
        _Edit("cancel", True, None),
        _Edit("cancel", True, False),
        _Edit("ttlSecondsAfterFinished", None, 60, valid=True),
        _Edit("ttlSecondsAfterFinished", 60, None, valid=True, phase="FAILED"),
        _Edit("priority", None, "critical", valid=True),
        _Edit("priority", "high", None, valid=True),
        *(
            _Edit("priority", "low", "high", phase=phase)
            for phase in ("SCHEDULED", "RUNNING", "CANCELING", "SUCCEEDED", "FAILED", "CANCELED")
        ),
        _Edit("priority", None, "default", valid=True, phase="RUNNING"),
        _Edit("priority", None, "CRITICAL"),
        _Edit("cancel", None, True, valid=True, phase="RUNNING"),
        _Edit("cancel", None, True, valid=True, phase="SUCCEEDED"),
    )
]

_FINAL = ("SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELED", "SCHEDULE_FAILED")
_LIVE = ("PENDING", "SCHEDULED", "RUNNING", "CANCELING")

TRANSITIONS = [
    Change(
        f"status.phase {before} -> {after}",
        {**minimal(JOB), "status": {"phase": before}},
        {**minimal(JOB), "status": status},
        valid,
        "status.phase",
    )
    for before, after, status, valid in (
        *(
            (before, after, {"phase": after}, before in _LIVE or before == after)
            for before in (*_LIVE, *_FINAL)
            for after in (*_LIVE, *_FINAL)
        ),
        ("FAILED", "absent", {}, False),
        ("RUNNING", "absent", {}, True),
        ("FAILED", "FAILED, seen again", {"phase": "FAILED", "observedGeneration": 2}, True),
    )
]

"""Stored objects for tests: Jobs, pods and container states as the API server would send them."""

from __future__ import annotations

from typing import Any

import msgspec

from agentjobs.apis import names, times
from agentjobs.apis.jobrecords import JobRecord, PodRecord
from agentjobs.runs.decision import Decision

UID = "6f0cfb6a-0a0e-4d0c-9d0a-3f2f5b1c7d11"
CREATED = 1_772_452_800 * times.SECOND  # 2026-03-02T12:00:00Z
STARTED = "2026-03-02T12:00:05Z"
ENDED = "2026-03-02T12:00:09Z"
DECISION = Decision(
    attempt=1,
    created=CREATED + 250_000,
    scheduled=CREATED + 300_000,
    pool="default",
    team="blue",
    priority="high",
    cpu_millicores=1000,
    memory_mb=2048,
    gpu_count=0,
    timeout_seconds=600,
)

JSON = dict[str, Any]


def job(*conditions: JSON, deleting: bool = False, **metadata: Any) -> JobRecord:
    """Return a Job of ours with these conditions."""
    return JobRecord(
        msgspec.json.encode(
            {
                "metadata": {
                    "name": "run-1",
                    "namespace": "agents",
                    "uid": "job-uid",
                    "resourceVersion": "10",
                    "creationTimestamp": "2026-03-02T12:00:01Z",
                    "labels": {names.LABEL_RUN_UID: UID, names.LABEL_ATTEMPT: "1"},
                    "annotations": {names.ANNOTATION_RUN: DECISION.annotation()},
                    **({"deletionTimestamp": ENDED} if deleting else {}),
                    **metadata,
                },
                "status": {"conditions": list(conditions)},
            }
        )
    )


def failed(reason: str, message: str = "") -> JSON:
    """Return the condition of a Job that failed."""
    return {"type": "Failed", "status": "True", "reason": reason, "message": message}


def pod(
    *containers: JSON,
    phase: str = "Pending",
    reason: str = "",
    message: str = "",
    conditions: list[JSON] | None = None,
    node: str = "node-1",
    status: JSON | None = None,
    deadline: int | None = None,
    deleting: bool = False,
    **metadata: Any,
) -> PodRecord:
    """Return a pod of ours; `status` replaces the one that the other arguments make."""
    made = {"phase": phase, "reason": reason, "message": message, "conditions": conditions or []}
    return PodRecord(
        msgspec.json.encode(
            {
                "metadata": {
                    "name": "run-1-abcde",
                    "namespace": "agents",
                    "uid": "pod-uid",
                    "resourceVersion": "11",
                    "creationTimestamp": "2026-03-02T12:00:02Z",
                    "labels": {names.LABEL_RUN_UID: UID, names.LABEL_ATTEMPT: "1"},
                    **({"deletionTimestamp": ENDED} if deleting else {}),
                    **metadata,
                },
                "spec": {"nodeName": node, "activeDeadlineSeconds": deadline},
                "status": {**made, "containerStatuses": list(containers)} if status is None else status,
            }
        )
    )


def running(name: str = "agent") -> JSON:
    return {"name": name, "state": {"running": {"startedAt": STARTED}}}


def waiting(reason: str, message: str = "", name: str = "agent") -> JSON:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}}


def ended(code: int = 0, *, message: str = "", reason: str = "", name: str = "agent") -> JSON:
    return {
        "name": name,
        "state": {
            "terminated": {
                "exitCode": code,
                "reason": reason or ("Error" if code else "Completed"),
                "message": message,
                "startedAt": STARTED,
                "finishedAt": ENDED,
            }
        },
    }


def disrupted(reason: str) -> JSON:
    """Return the condition of a pod that was taken away from its run."""
    return {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "by the test"}

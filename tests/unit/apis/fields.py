"""The contract as well: which fields have choices, which must be set, what is stored where one is not."""

from tests.unit.apis.bounds import JOB, POOL, TEAM

ENUMS: list[tuple[str, str, tuple[str, ...]]] = [
    (JOB, "spec.priority", ("critical", "high", "default", "low")),
    (JOB, "spec.secrets.0.exposeAs", ("files", "env")),
    (
        JOB,
        "status.phase",
        (
            "PENDING",
            "SCHEDULED",
            "RUNNING",
            "CANCELING",
            "SUCCEEDED",
            "FAILED",
            "TIMED_OUT",
            "CANCELED",
            "SCHEDULE_FAILED",
        ),
    ),
    (JOB, "status.conditions.0.status", ("True", "False", "Unknown")),
    (TEAM, "status.conditions.0.status", ("True", "False", "Unknown")),
    (POOL, "status.conditions.0.status", ("True", "False", "Unknown")),
    (TEAM, "spec.maxPriority", ("critical", "high", "default", "low")),
    (POOL, "spec.sandbox.egress", ("none", "dns", "internet")),  # proxy: see the cases of two fields
    (POOL, "spec.sandbox.imagePullPolicy", ("Always", "IfNotPresent", "Never")),
    (POOL, "spec.sandbox.tolerations.0.operator", ("Exists", "Equal")),
]

BOOLEANS: list[tuple[str, str]] = [
    (POOL, "spec.requireTeams"),
    (POOL, "spec.idempotency.required"),
    (POOL, "spec.idempotency.strict"),
    (POOL, "spec.idempotency.beforeBackpressure"),
    (POOL, "spec.hold"),
]

REQUIRED: list[tuple[str, str]] = [
    (JOB, "spec"),
    (JOB, "spec.agentImage"),
    (JOB, "spec.teamId"),
    (JOB, "spec.secrets.0.name"),
    (JOB, "status.attempts.0.number"),
    (JOB, "status.attempts.0.reason"),
    *[
        (resource, f"status.conditions.0.{field}")
        for resource in (JOB, TEAM, POOL)
        for field in ("type", "status", "reason", "message", "lastTransitionTime")
    ],
    (POOL, "spec.drain.timeoutSeconds"),
    (POOL, "spec.sandbox.proxy.cidr"),
    (POOL, "spec.sandbox.proxy.port"),
]

# Optional, but in these rows not: a toleration without a key needs another operator.
NEEDED_HERE: list[tuple[str, str]] = [(POOL, "spec.sandbox.tolerations.0.key")]

# Fields whose values are a story of their own: see cases.py.
ELSEWHERE: list[tuple[str, str]] = [
    (JOB, "spec.cancel"),
    (JOB, "spec.inputPayload"),
    (JOB, "status.result"),
    (POOL, "spec.sandbox.proxy.cidr"),
    (POOL, "spec.sandbox.tolerations.0.effect"),
]

DEFAULTS: dict[str, dict[str, object]] = {
    JOB: {
        "spec.priority": "default",
        "spec.resources.cpuMillicores": 1000,
        "spec.resources.memoryMb": 2048,
        "spec.resources.gpuCount": 0,
        "spec.resources.timeoutSeconds": 600,
        "spec.pool": "default",
        "spec.retries": 0,
        "status.phase": "PENDING",
        "status.observedGeneration": -1,
    },
    TEAM: {
        "status.observedGeneration": -1,
        "status.pending": 0,
        "status.running": 0,
    },
    POOL: {
        "status.observedGeneration": -1,
        "status.pending": 0,
        "status.running": 0,
        "spec.priorityWeights.critical": 0,
        "spec.priorityWeights.high": 10,
        "spec.priorityWeights.default": 50,
        "spec.priorityWeights.low": 100,
        "spec.sharePercent": 25,
        "spec.headroomPercent": 10,
        "spec.shareWindowSeconds": 3600,
        "spec.maxPendingPerTeam": 50,
        "spec.retryAfterSeconds": 30,
        "spec.startTimeoutSeconds": 300,
        "spec.infraRetries": 1,
        "spec.requireTeams": True,
        "spec.idempotency.required": False,
        "spec.idempotency.strict": False,
        "spec.idempotency.beforeBackpressure": False,
        "spec.hold": False,
        "spec.sandbox.egress": "none",
        "spec.sandbox.imagePullPolicy": "Always",
        "spec.sandbox.ephemeralStorageMb": 1024,
        "spec.retention.ttlSecondsAfterFinished": 604_800,
        "spec.retention.podSecondsAfterFinished": 3600,
        "spec.retention.maxFinishedPerTeam": 1000,
    },
}
"""What a minimal manifest is stored with, and nothing else."""

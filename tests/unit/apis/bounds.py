"""Every bound of every field, written out: the contract that models and API server are held to.

Nothing here is derived from the models. Paths are those of manifests; a number is an index of a list,
``p`` stands for the key of a map. ``None`` means that there is no bound.
"""

from collections.abc import Callable

JOB, TEAM, POOL = "AgentJob", "AgentTeam", "AgentPool"

# resource, path, least, most
Integer = tuple[str, str, int | None, int | None]


def _amounts(resource: str, *paths: str, slots: bool = True) -> list[Integer]:
    names = {"cpuMillicores": 10**9, "memoryMb": 10**9, "gpuCount": 10**6}
    if slots:
        names["slots"] = 10**6
    return [(resource, f"{path}.{name}", 0, most) for path in paths for name, most in names.items()]


INTEGERS: list[Integer] = [
    (JOB, "spec.resources.cpuMillicores", 100, 8000),
    (JOB, "spec.resources.memoryMb", 128, 32_768),
    (JOB, "spec.resources.gpuCount", 0, 4),
    (JOB, "spec.resources.timeoutSeconds", 30, 7200),
    (JOB, "spec.retries", 0, 5),
    (JOB, "spec.ttlSecondsAfterFinished", 0, 31_536_000),
    (JOB, "status.exitCode", -2_147_483_648, 2_147_483_647),
    (JOB, "status.observedGeneration", -1, None),
    (JOB, "status.attempts.0.number", 1, 2_147_483_647),
    (JOB, "status.attempts.0.exitCode", -2_147_483_648, 2_147_483_647),
    (JOB, "status.conditions.0.observedGeneration", 0, None),
    (TEAM, "spec.maxPending", 0, 100_000),
    (TEAM, "spec.pools.p.weight", 1, 1000),
    *_amounts(TEAM, "spec.pools.p.limit", "spec.pools.p.guaranteed", "spec.pools.p.criticalLimit"),
    (TEAM, "status.pending", 0, None),
    (TEAM, "status.running", 0, None),
    (TEAM, "status.observedGeneration", -1, None),
    (TEAM, "status.pools.p.pending", 0, None),
    (TEAM, "status.pools.p.running", 0, None),
    (TEAM, "status.pools.p.share", 0, None),
    *_amounts(TEAM, "status.pools.p.usage", "status.pools.p.entitlement"),
    (TEAM, "status.conditions.0.observedGeneration", 0, None),
    (POOL, "spec.maxConcurrency", 1, 1_000_000),
    *_amounts(POOL, "spec.capacity.fixed", slots=False),
    (POOL, "spec.priorityWeights.critical", 0, 1_000_000),
    (POOL, "spec.priorityWeights.high", 0, 1_000_000),
    (POOL, "spec.priorityWeights.default", 0, 1_000_000),
    (POOL, "spec.priorityWeights.low", 0, 1_000_000),
    (POOL, "spec.sharePercent", 1, 100),
    (POOL, "spec.headroomPercent", 0, 100),
    (POOL, "spec.shareWindowSeconds", 0, 604_800),
    (POOL, "spec.maxPendingPerTeam", 0, 100_000),
    (POOL, "spec.retryAfterSeconds", 1, 3600),
    (POOL, "spec.startTimeoutSeconds", 20, 7200),
    (POOL, "spec.infraRetries", 0, 4),
    (POOL, "spec.drain.timeoutSeconds", 0, 604_800),
    (POOL, "spec.sandbox.proxy.port", 1, 65_535),
    (POOL, "spec.sandbox.tolerations.0.tolerationSeconds", 0, 2_147_483_647),
    (POOL, "spec.sandbox.ephemeralStorageMb", 64, 1_048_576),
    (POOL, "spec.retention.ttlSecondsAfterFinished", 0, 31_536_000),
    (POOL, "spec.retention.podSecondsAfterFinished", 0, 604_800),
    (POOL, "spec.retention.maxFinishedPerTeam", 1, 100_000),
    (POOL, "status.pending", 0, None),
    (POOL, "status.running", 0, None),
    (POOL, "status.observedGeneration", -1, None),
    *_amounts(POOL, "status.capacity", "status.usage"),
    (POOL, "status.conditions.0.observedGeneration", 0, None),
]


def free(length: int) -> str:
    """Text of any characters: bounds count characters, not bytes."""
    return "é" * length


def name(length: int) -> str:
    """A name, or one CamelCase word."""
    return "a" * length


def image(length: int) -> str:
    """An image reference."""
    return "a" * (length - 2) + ":1"


def namespaced(length: int) -> str:
    """namespace/name."""
    return "a/" + "b" * (length - 2)


def label_key(length: int) -> str:
    """The key of a label: with a domain where it is longer than a name may be."""
    return "a" * length if length <= 63 else "a" * (length - 2) + "/b"


def ulid(length: int) -> str:
    """Characters of a ULID."""
    return "0" * length


# resource, path, least and most characters, a text of that form
Text = tuple[str, str, int, int, Callable[[int], str]]

TEXTS: list[Text] = [
    (JOB, "spec.agentImage", 3, 512, image),
    (JOB, "spec.teamId", 3, 64, free),
    (JOB, "spec.environment.p", 0, 16_384, free),
    (JOB, "spec.idempotencyKey", 0, 256, free),
    (JOB, "spec.command.0", 0, 16_384, free),
    (JOB, "spec.args.0", 0, 16_384, free),
    (JOB, "spec.secrets.0.name", 1, 253, name),
    (JOB, "spec.pool", 1, 63, name),
    (JOB, "status.jobId", 26, 26, ulid),
    (JOB, "status.reason", 1, 128, name),
    (JOB, "status.message", 0, 4096, free),
    (JOB, "status.k8sJobName", 0, 63, name),
    (JOB, "status.podName", 1, 253, name),
    (JOB, "status.nodeName", 1, 253, name),
    (JOB, "status.duration", 0, 32, free),
    (JOB, "status.artifactId", 0, 256, free),
    (JOB, "status.extra.p", 0, 1024, free),
    (JOB, "status.error", 0, 8192, free),
    (JOB, "status.errorTraceback", 0, 8192, free),
    (JOB, "status.attempts.0.reason", 1, 128, name),
    (JOB, "status.attempts.0.message", 0, 4096, free),
    (JOB, "status.attempts.0.k8sJobName", 0, 63, name),
    (JOB, "status.attempts.0.nodeName", 1, 253, name),
    *[
        (resource, f"status.conditions.0.{field}", least, most, form)
        for resource in (JOB, TEAM, POOL)
        for field, least, most, form in (
            ("type", 1, 316, name),
            ("reason", 1, 128, name),
            ("message", 0, 32_768, free),
        )
    ],
    (TEAM, "spec.teamId", 3, 64, free),
    (TEAM, "status.teamId", 3, 64, free),
    (TEAM, "spec.members.users.0", 1, 256, free),
    (TEAM, "spec.members.groups.0", 1, 256, free),
    (TEAM, "spec.members.serviceAccounts.0", 3, 317, namespaced),
    (TEAM, "spec.namespaces.0", 1, 63, name),
    (TEAM, "spec.secrets.0", 3, 317, namespaced),
    (POOL, "spec.namespaces.0", 1, 63, name),
    (POOL, "spec.capacity.nodes.matchLabels.p", 0, 63, name),
    (POOL, "spec.sandbox.runtimeClassName", 1, 253, name),
    (POOL, "spec.sandbox.registries.0", 1, 255, name),
    (POOL, "spec.sandbox.imagePullSecrets.0", 1, 253, name),
    (POOL, "spec.sandbox.nodeSelector.p", 0, 63, name),
    (POOL, "spec.sandbox.tolerations.0.key", 1, 317, label_key),
    (POOL, "spec.sandbox.tolerations.0.value", 0, 63, name),
]

TIMESTAMPS: list[tuple[str, str]] = [
    *[(JOB, f"status.{field}") for field in ("createdAt", "scheduledAt", "startedAt", "completedAt")],
    (JOB, "status.startsBefore"),
    *[(JOB, f"status.attempts.0.{field}") for field in ("scheduledAt", "startedAt", "completedAt")],
    (POOL, "status.drainingSince"),
    *[(resource, "status.conditions.0.lastTransitionTime") for resource in (JOB, TEAM, POOL)],
]

# resource, path, most items, whether an item may come twice, the n-th item
List = tuple[str, str, int, bool, Callable[[int], object]]


def _condition(index: int) -> dict[str, object]:
    return {
        "type": f"C{index}",
        "status": "True",
        "reason": "Because",
        "message": "",
        "lastTransitionTime": "2026-01-31T09:30:00Z",
    }


LISTS: list[List] = [
    (JOB, "spec.command", 64, True, lambda index: f"c{index}"),
    (JOB, "spec.args", 256, True, lambda index: f"a{index}"),
    (JOB, "spec.secrets", 16, False, lambda index: {"name": f"s{index}"}),
    (JOB, "status.attempts", 10, True, lambda index: {"number": index + 1, "reason": "AgentFailed"}),
    *[(resource, "status.conditions", 16, False, _condition) for resource in (JOB, TEAM, POOL)],
    (TEAM, "spec.members.users", 512, False, lambda index: f"u{index}"),
    (TEAM, "spec.members.groups", 128, False, lambda index: f"g{index}"),
    (TEAM, "spec.members.serviceAccounts", 128, False, lambda index: f"n/a{index}"),
    (TEAM, "spec.namespaces", 128, True, lambda index: f"n{index}"),
    (TEAM, "spec.secrets", 128, False, lambda index: f"n/s{index}"),
    (POOL, "spec.namespaces", 256, False, lambda index: f"n{index}"),
    (POOL, "spec.sandbox.registries", 64, False, lambda index: f"r{index}.example.com"),
    (POOL, "spec.sandbox.imagePullSecrets", 16, False, lambda index: f"s{index}"),
    (POOL, "spec.sandbox.tolerations", 16, True, lambda index: {"key": f"k{index}"}),
]

# resource, path, most entries, least and most characters of a key, a key of that length, a value
Map = tuple[str, str, int, int, int, Callable[[int], str], object]

MAPS: list[Map] = [
    (JOB, "spec.environment", 128, 1, 256, name, "v"),
    (JOB, "status.extra", 16, 1, 63, free, "v"),
    (TEAM, "spec.pools", 32, 1, 63, name, {}),
    (TEAM, "status.pools", 32, 1, 63, name, {}),
    (POOL, "spec.capacity.nodes.matchLabels", 32, 1, 317, label_key, "v"),
    (POOL, "spec.sandbox.nodeSelector", 32, 1, 317, label_key, "v"),
]

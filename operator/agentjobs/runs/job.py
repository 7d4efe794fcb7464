"""AgentJob to `batch/v1` Job: the whole contract with the agent and its sandbox, in one pure function."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentjobs.apis import names
from agentjobs.apis.agentjob import AgentJobSpec, ResourceRequirements, SecretExposure
from agentjobs.apis.agentpool import AgentPoolSpec
from agentjobs.errors import InvalidRunError
from agentjobs.runs import identity, sandbox
from agentjobs.runs.decision import Decision
from agentjobs.scheduling.model import GRACE_SECONDS

INPUT_FOLDER = "/agent/input"
INPUT_FILE = f"{INPUT_FOLDER}/payload.json"
RESULT_FILE = "/dev/termination-log"
SECRETS_FOLDER = "/agent/secrets"

# Where tools look for writable places when the root is read-only; an agent may set its own.
_FOLDERS = {
    "HOME": "/home/agent",
    "TMPDIR": "/tmp",  # noqa: S108 - a volume of the pod's own
    "XDG_CACHE_HOME": "/home/agent/.cache",
    "NPM_CONFIG_CACHE": "/home/agent/.npm",
}


def job_manifest(
    *,
    name: str,
    namespace: str,
    uid: str,
    created: int,
    spec: AgentJobSpec,
    pool: AgentPoolSpec,
    decision: Decision,
    allowed_secrets: frozenset[str] = frozenset(),
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the Job of one attempt.

    Args:
        name, namespace, uid: of the AgentJob.
        created: its creationTimestamp, microseconds since the epoch.
        allowed_secrets: what its team may use, as namespace/name.
        annotations: further ones for the pod (those of simulated nodes).

    Raises:
        InvalidRunError: when the pool's registries or the team's secrets do not allow it.
    """
    sandbox.check_registry(spec.agent_image, pool.sandbox.registries)
    _check_secrets(spec, namespace, allowed_secrets)
    job_name = identity.job_name(name, uid, decision.attempt)
    job_id = identity.job_id(created, uid)
    labels = {
        "app.kubernetes.io/managed-by": "agentjobs",
        names.LABEL_RUN_UID: uid,
        names.LABEL_ATTEMPT: str(decision.attempt),
        names.LABEL_TEAM: identity.team_label(spec.team_id),
        names.LABEL_POOL: decision.pool,
        names.LABEL_JOB_ID: job_id,
    }
    start, timeout = decision.start_seconds, spec.resources.timeout_seconds
    pod = {
        # Holds even when the operator does not: the run's own time is cut by lowering it.
        "activeDeadlineSeconds": start + timeout,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "restartPolicy": "Never",
        **sandbox.pod_fields(pool.sandbox),
        **_placement(pool, decision),
        "containers": [_container(spec, pool, job_id, decision)],
        "volumes": [*sandbox.volumes(pool.sandbox), _input_volume(), *_secret_volumes(spec)],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {names.ANNOTATION_RUN: decision.annotation()},
            "ownerReferences": [
                {
                    "apiVersion": names.API_VERSION,
                    "kind": "AgentJob",
                    "name": name,
                    "uid": uid,
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {
            # One pod, once: a second one would be a second run.
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "activeDeadlineSeconds": 2 * start + timeout + GRACE_SECONDS,
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {names.ANNOTATION_INPUT: _payload(spec), **(annotations or {})},
                },
                "spec": pod,
            },
        },
    }


def _placement(pool: AgentPoolSpec, decision: Decision) -> dict[str, Any]:
    """Return on which nodes the pod may be: those the pool counts, but for the one of a reservation."""
    of_pool = pool.capacity.nodes.match_labels if pool.capacity and pool.capacity.nodes else {}
    labels = {**of_pool, **pool.sandbox.node_selector}
    placement: dict[str, Any] = {"nodeSelector": labels} if labels else {}
    if not decision.avoid_node:
        return placement
    field = {"key": "metadata.name", "operator": "NotIn", "values": [decision.avoid_node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {**placement, "affinity": affinity}


def _container(spec: AgentJobSpec, pool: AgentPoolSpec, job_id: str, decision: Decision) -> dict[str, Any]:
    amounts = _amounts(spec.resources, pool.sandbox.ephemeral_storage_mb)
    container: dict[str, Any] = {
        "name": names.AGENT_CONTAINER,
        "image": spec.agent_image,
        "imagePullPolicy": pool.sandbox.image_pull_policy.value,
        "env": _environment(spec, job_id, decision),
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": sandbox.CONTAINER_SECURITY,
        "terminationMessagePath": RESULT_FILE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            *sandbox.mounts(),
            {"name": "input", "mountPath": INPUT_FOLDER, "readOnly": True},
            *(
                {"name": f"secret-{index}", "mountPath": f"{SECRETS_FOLDER}/{secret.name}", "readOnly": True}
                for index, secret in _mounted(spec)
            ),
        ],
    }
    if spec.command:
        container["command"] = [_literal(part) for part in spec.command]
    if spec.args:
        container["args"] = [_literal(part) for part in spec.args]
    exposed = [secret.name for secret in spec.secrets if secret.expose_as is SecretExposure.ENVIRONMENT]
    if exposed:
        container["envFrom"] = [{"secretRef": {"name": secret}} for secret in exposed]
    return container


def _environment(spec: AgentJobSpec, job_id: str, decision: Decision) -> list[dict[str, Any]]:
    ours = {
        "AGENT_JOB_ID": job_id,
        "AGENT_TEAM_ID": _literal(spec.team_id),
        "AGENT_ATTEMPT": str(decision.attempt),
        "AGENT_INPUT_FILE": INPUT_FILE,
        "AGENT_RESULT_FILE": RESULT_FILE,
    }
    theirs = {key: _literal(value) for key, value in spec.environment.items()}
    plain = {**_FOLDERS, **theirs, **ours}
    from_pod = {
        "K8S_NAMESPACE": "metadata.namespace",
        "POD_NAME": "metadata.name",
        "NODE_NAME": "spec.nodeName",
    }
    return [
        *({"name": name, "value": value} for name, value in plain.items()),
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in from_pod.items()),
    ]


def _literal(text: str) -> str:
    """Return text that a process gets as it is: the kubelet makes `$$` a `$` and `$(NAME)` NAME's value."""
    return text.replace("$", "$$")


def _amounts(resources: ResourceRequirements, storage_mb: int) -> dict[str, str]:
    amounts = {
        "cpu": f"{resources.cpu_millicores}m",
        "memory": f"{resources.memory_mb}Mi",
        "ephemeral-storage": f"{storage_mb}Mi",
    }
    if resources.gpu_count:
        amounts["nvidia.com/gpu"] = str(resources.gpu_count)
    return amounts


def _payload(spec: AgentJobSpec) -> str:
    return json.dumps(spec.input_payload, ensure_ascii=False, separators=(",", ":"))


def _input_volume() -> dict[str, Any]:
    path = f"metadata.annotations['{names.ANNOTATION_INPUT}']"
    item = {"path": INPUT_FILE.rsplit("/", 1)[-1], "fieldRef": {"fieldPath": path}}
    return {"name": "input", "downwardAPI": {"items": [item]}}


def _mounted(spec: AgentJobSpec) -> list[tuple[int, Any]]:
    return [
        (index, secret)
        for index, secret in enumerate(spec.secrets)
        if secret.expose_as is SecretExposure.FILES
    ]


def _secret_volumes(spec: AgentJobSpec) -> list[dict[str, Any]]:
    return [
        {"name": f"secret-{index}", "secret": {"secretName": secret.name}} for index, secret in _mounted(spec)
    ]


def _check_secrets(spec: AgentJobSpec, namespace: str, allowed: frozenset[str]) -> None:
    for secret in spec.secrets:
        if f"{namespace}/{secret.name}" not in allowed:
            raise InvalidRunError(
                "SecretNotAllowed",
                f"spec.secrets: team {spec.team_id!r} may not use Secret {namespace}/{secret.name}; "
                "an administrator can add it to the secrets of the AgentTeam",
            )

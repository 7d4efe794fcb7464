"""The sandbox of a run: every restriction in one place. Reasons and opt-outs: docs/security.md."""

from __future__ import annotations

from typing import Any

from agentjobs.apis.sandbox import Sandbox
from agentjobs.errors import InvalidRunError

USER = 10001  # any number that is not root's and owns nothing in common images

# Writable places of a read-only root, and their part of the pool's ephemeralStorageMb in eighths.
# The last eighth is left for logs, which count against the same limit.
_FOLDERS = (("tmp", "/tmp", 2), ("home", "/home/agent", 2), ("workspace", "/workspace", 3))  # noqa: S108

_DOCKER_HUB = "docker.io"

CONTAINER_SECURITY: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}


def pod_fields(sandbox: Sandbox) -> dict[str, Any]:
    """Return the pod-level fields: identity and isolation."""
    fields: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "supplementalGroupsPolicy": "Strict",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    if sandbox.runtime_class_name:
        fields["runtimeClassName"] = sandbox.runtime_class_name
    if sandbox.image_pull_secrets:
        fields["imagePullSecrets"] = [{"name": name} for name in sandbox.image_pull_secrets]
    if sandbox.tolerations:
        fields["tolerations"] = [toleration.to_manifest() for toleration in sandbox.tolerations]
    return fields


def volumes(sandbox: Sandbox) -> list[dict[str, Any]]:
    """Return the sized emptyDirs; together they stay below the pod's ephemeral storage."""
    eighth = sandbox.ephemeral_storage_mb / 8
    return [
        {"name": name, "emptyDir": {"sizeLimit": f"{int(part * eighth)}Mi"}} for name, _, part in _FOLDERS
    ]


def mounts() -> list[dict[str, Any]]:
    """Return where the emptyDirs are mounted."""
    return [{"name": name, "mountPath": path} for name, path, _ in _FOLDERS]


def check_registry(image: str, registries: list[str]) -> None:
    """Refuse an image from a registry that the pool does not list; an empty list allows every one.

    Entries match by host and whole path segments: `registry.example.com/team` allows
    `registry.example.com/team/agent:1` and not `registry.example.com/team-x/agent:1`.

    Raises:
        InvalidRunError: naming the image and what is allowed.
    """
    if not registries:
        return
    path = image_path(image)
    for registry in registries:
        host, *folders = registry.split("/")
        allowed = [_host(host), *folders]
        if path[: len(allowed)] == allowed:
            return
    raise InvalidRunError(
        "RegistryNotAllowed",
        f"spec.agentImage: {image!r} is not from a registry of the pool; allowed: {', '.join(registries)}",
    )


def image_path(image: str) -> list[str]:
    """Return host and path segments of an image as a container runtime reads it, without tag and digest.

    A first segment without a dot, a colon and a capital, and not `localhost`, is no host: the runtime
    asks Docker Hub, where a single name means one of its own `library`. What no registry could serve
    gives an empty list: it must not be taken for a path below an allowed one.
    """
    *folders, last = image.split("@", 1)[0].split("/")
    segments = [*folders, last.split(":", 1)[0]]
    first = segments[0] if len(segments) > 1 else ""
    if not ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        segments = [_DOCKER_HUB, *segments]
    segments[0] = _host(segments[0])
    if segments[0] == _DOCKER_HUB and len(segments) == 2:
        segments.insert(1, "library")
    return [] if any(part in ("", ".", "..") for part in segments) else segments


def _host(host: str) -> str:
    return _DOCKER_HUB if host == f"index.{_DOCKER_HUB}" else host

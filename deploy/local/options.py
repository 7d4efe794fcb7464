"""What the user asks for through the environment: CLUSTER, NODE, NODES, SLOTS, PORT."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace

from deploy.local import node
from deploy.local.errors import LocalError

CLUSTERS = ("auto", "kind", "local", "current")
NODES = ("auto", "real", "simulated")


@dataclass(frozen=True)
class Options:
    """The variables, read and checked."""

    cluster: str = "auto"
    node: str = "auto"
    nodes: int = 3
    slots: int = 4
    port: int | None = None
    """None: a free one is taken."""

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> "Options":
        """Read the variables; an empty one counts as not given.

        Raises:
            LocalError: a value is not allowed; the message names it and the rule.
        """
        return cls(
            cluster=_word(environment, "CLUSTER", CLUSTERS),
            node=_word(environment, "NODE", NODES),
            nodes=_number(environment, "NODES", 3, 1, 1000) or 3,
            slots=_number(environment, "SLOTS", 4, 1, 100_000) or 4,
            port=_number(environment, "PORT", None, 1024, 65535),
        )

    def with_node(self, node: str) -> "Options":
        """The same, with the kind of node that was chosen."""
        return replace(self, node=node)


def _word(environment: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = environment.get(name) or allowed[0]
    if value not in allowed:
        raise LocalError(f"{name}={value}: not known; one of {', '.join(allowed)}")
    return value


def _number(
    environment: Mapping[str, str], name: str, default: int | None, least: int, most: int
) -> int | None:
    value = environment.get(name)
    if not value:
        return default
    if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
        raise LocalError(f"{name}={value}: must be a whole number from {least} to {most}")
    return int(value)


@dataclass(frozen=True)
class Choice:
    """What was decided, and the reason, for the user to read."""

    value: str
    reason: str


def choose_cluster(wanted: str, node: str = "auto", present: str | None = None) -> Choice:
    """kind where Docker answers, else local; `current` only when it was asked for.

    Args:
        wanted: One of CLUSTERS.
        node: One of NODES; only the local cluster lets choose.
        present: What is up; `auto` keeps it.

    Raises:
        LocalError: kind was asked for and cannot run here, or a node that the cluster does not have.
    """
    if wanted in ("kind", "current") and node != "auto":
        raise LocalError(
            f"NODE={node}: CLUSTER={wanted} has its own nodes; leave NODE out, or take CLUSTER=local"
        )
    if wanted == "auto" and present:
        return Choice(present, "it is up")
    if wanted == "auto" and node != "auto":
        return Choice("local", f"NODE={node}")
    if wanted in ("local", "current"):
        return Choice(wanted, f"CLUSTER={wanted}")
    obstacle = _kind_obstacle()
    if wanted == "kind":
        if obstacle:
            raise LocalError(
                f"CLUSTER=kind: {obstacle}; or leave CLUSTER out and the cluster runs without Docker"
            )
        return Choice("kind", "CLUSTER=kind")
    return Choice("local", obstacle) if obstacle else Choice("kind", "Docker answers")


def _kind_obstacle() -> str | None:
    if not shutil.which("docker"):
        return "kind needs Docker, and there is no `docker` on PATH"
    try:
        answer = subprocess.run(["docker", "info"], capture_output=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return "kind needs Docker, and its daemon does not answer"
    if answer.returncode:
        return "kind needs Docker, and no daemon answers"
    if not shutil.which("kind"):
        return "there is no `kind` on PATH (https://kind.sigs.k8s.io/docs/user/quick-start/#installation)"
    return None


def choose_node(wanted: str, present: str | None = None) -> Choice:
    """A real node where one is possible, else simulated ones.

    Args:
        wanted: One of NODES.
        present: What is up; `auto` keeps it.

    Raises:
        LocalError: a real node was asked for and is not possible here.
    """
    if wanted == "auto" and present:
        return Choice(present, "it is up")
    if wanted == "simulated":
        return Choice("simulated", "NODE=simulated")
    obstacle = node.missing()
    if wanted == "real":
        if obstacle:
            raise LocalError(f"NODE=real: {obstacle}; or take NODE=simulated")
        return Choice("real", "NODE=real")
    return Choice("simulated", f"no real node: {obstacle}") if obstacle else Choice("real", "possible here")

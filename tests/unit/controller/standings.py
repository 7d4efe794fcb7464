"""What the operator has written to the status of pools and teams."""

from __future__ import annotations

from agentjobs.apis.agentpool import AgentPoolStatus
from agentjobs.apis.agentteam import AgentTeamStatus
from tests.unit.cluster.fake_api import JSON
from tests.unit.controller.harness import Cluster

POOL = "patch agentpools/status"
TEAM = "patch agentteams/status"


def pool_status(cluster: Cluster, name: str = "default") -> JSON:
    status: JSON = cluster.api.get("agentpools", name).get("status", {})
    AgentPoolStatus.model_validate(status)
    return status


def team_status(cluster: Cluster, name: str = "blue") -> JSON:
    status: JSON = cluster.api.get("agentteams", name).get("status", {})
    AgentTeamStatus.model_validate(status)
    return status


def ready(status: JSON) -> str:
    """Status, reason and the other conditions, such as `True Accepted`."""
    first, *others = status["conditions"]
    assert first["type"] == "Ready"
    return " ".join([first["status"], first["reason"], *(each["type"] for each in others)])

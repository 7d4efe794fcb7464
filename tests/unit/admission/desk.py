"""Admission without a cluster: what is asked, what becomes of it in the store, and what is answered."""

import itertools
import json
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agentjobs.admission.admission import Admission, pending_limit
from agentjobs.admission.ledger import Ledger
from agentjobs.admission.review import Answer, Request, UserInfo
from agentjobs.apis.agentpool import AgentPoolSpec
from agentjobs.apis.agentteam import AgentTeamSpec
from agentjobs.apis.records import AgentJobRecord

_versions = itertools.count(1)


def manifest(
    name: str = "run", team: str = "blue", namespace: str = "default", **spec: Any
) -> dict[str, Any]:
    """An AgentJob as the API server sends it, defaults filled in."""
    return {
        "apiVersion": "agentjobs.dev/v1alpha1",
        "kind": "AgentJob",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}-{next(_versions)}"},
        "spec": {
            "agentImage": "agent:1",
            "teamId": team,
            "priority": "default",
            "pool": "default",
            "retries": 0,
            "resources": {"cpuMillicores": 1000, "memoryMb": 2048, "gpuCount": 0, "timeoutSeconds": 600},
            **spec,
        },
        "status": {"observedGeneration": -1, "phase": "PENDING"},
    }


def record(job: dict[str, Any], phase: str = "PENDING") -> AgentJobRecord:
    """The object as a watch would show it."""
    metadata = {
        "creationTimestamp": "2026-11-29T12:00:00Z",
        **job["metadata"],
        "resourceVersion": str(next(_versions)),
    }
    return AgentJobRecord(json.dumps({**job, "metadata": metadata, "status": {"phase": phase}}).encode())


@dataclass
class Desk:
    """An Admission with what it reads, and the store behind it."""

    pools: dict[str, AgentPoolSpec] = field(default_factory=lambda: {"default": pool()})
    teams: dict[str, AgentTeamSpec] = field(default_factory=dict)
    now: float = 0.0
    over: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = Ledger(partial(pending_limit, self.pools, self.teams), self.over.append)
        self.ledger.live = True
        self.admission = Admission(
            self.pools, self.teams, self.ledger, lambda *_: "starts now", lambda: self.now
        )
        self.records: dict[str, AgentJobRecord] = {}

    def create(
        self, job: dict[str, Any], *, user: str = "jane", groups: tuple[str, ...] = (), dry_run: bool = False
    ) -> Answer:
        """Ask for a create."""
        metadata = job["metadata"]
        return self.admission.review(
            Request(
                uid=metadata["uid"],
                operation="CREATE",
                name=metadata["name"],
                namespace=metadata["namespace"],
                user_info=UserInfo(user, list(groups)),
                object=job,
                dry_run=dry_run,
            )
        )

    def update(
        self, old: dict[str, Any], new: dict[str, Any], *, user: str = "jane", groups: tuple[str, ...] = ()
    ) -> Answer:
        """Ask for an edit."""
        metadata = new["metadata"]
        return self.admission.review(
            Request(
                uid="review",
                operation="UPDATE",
                name=metadata["name"],
                namespace=metadata["namespace"],
                user_info=UserInfo(user, list(groups)),
                object=new,
                old_object=old,
            )
        )

    def seen(self, job: dict[str, Any], phase: str = "PENDING") -> None:
        """A watch shows the object."""
        new = record(job, phase)
        self.ledger.changed(self.records.get(new.uid), new)
        self.records[new.uid] = new

    def gone(self, job: dict[str, Any]) -> None:
        """A watch shows that it was deleted."""
        self.ledger.changed(self.records.pop(job["metadata"]["uid"]), None)

    def submit(self, name: str, team: str = "blue", **spec: Any) -> Answer:
        """Ask for a create, and show it where it was allowed."""
        job = manifest(name, team, **spec)
        answer = self.create(job)
        if answer.allowed:
            self.seen(job)
        return answer


def pool(**spec: Any) -> AgentPoolSpec:
    """A pool that requires no teams."""
    return AgentPoolSpec.model_validate({"requireTeams": False, **spec})


def team(**spec: Any) -> AgentTeamSpec:
    return AgentTeamSpec.model_validate(spec)

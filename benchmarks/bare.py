"""The bare rate: what the same writes cost without an operator, sent by a loop that thinks of nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from agentjobs.cluster.session import MERGE_PATCH
from benchmarks.client import AGENTJOBS, JOBS, STORED, Client, Stored, agentjob, each
from deploy.local.local import LocalCluster

# Set by the API server; a manifest that is posted has none of it.
_SERVERS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
_SERVERS_LABELS = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)


class Templates(NamedTuple):
    """A Job and a status as the operator wrote them, JSON; the model's name and uid stand in for others."""

    name: str
    uid: str
    job: str
    status: str

    def fill(self, text: str, name: str, uid: str) -> str:
        """Return a template's text for another run."""
        return (
            text.replace(self.uid, uid)
            .replace(f"{self.name}-", f"{name}-")
            .replace(f'"{self.name}"', f'"{name}"')
        )


async def templates(client: Client, name: str) -> Templates:
    """Return what the operator wrote for a run that it has scheduled."""
    run = msgspec.json.decode(await client.send("GET", f"{AGENTJOBS}/{name}"))
    job = msgspec.json.decode(await client.send("GET", f"{JOBS}/{run['status']['k8sJobName']}"))
    return Templates(
        name, run["metadata"]["uid"], _text(_as_posted(job)), _text({"status": run["status"]})[1:]
    )


async def work(cluster: LocalCluster, names: list[str], model: Templates) -> None:
    """Create each AgentJob and its Job, and patch its status, each by the account that does so in truth."""
    async with Client(cluster.cluster) as user, Client(cluster.cluster, as_operator=True) as operator:

        async def one(name: str) -> None:
            stored = STORED.decode(await user.send("POST", AGENTJOBS, agentjob(name)))
            uid = stored.metadata.uid
            await operator.send("POST", JOBS, model.fill(model.job, name, uid).encode())
            body = f'{{"metadata":{_identity(stored)},{model.fill(model.status, name, uid)}'
            await operator.send("PATCH", f"{AGENTJOBS}/{name}/status", body.encode(), MERGE_PATCH)

        await each(names, one)


def _identity(stored: Stored) -> str:
    return f'{{"uid":"{stored.metadata.uid}","resourceVersion":"{stored.metadata.resource_version}"}}'


def _as_posted(job: dict[str, Any]) -> dict[str, Any]:
    """Return a stored Job as it can be posted: without what the API server has added that it refuses."""
    del job["status"], job["spec"]["selector"]
    for part in (job["metadata"], job["spec"]["template"]["metadata"]):
        for field in _SERVERS:
            part.pop(field, None)
        for label in _SERVERS_LABELS:
            part["labels"].pop(label, None)
    return job


def _text(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()

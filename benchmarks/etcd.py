"""Many stored AgentJobs in seconds: copies of one that really lived, put into etcd as the API server had it.

The API server, its watch cache and every reader take them for their own; only writing them one by one
is left out, which would take the API server many minutes.
"""

from __future__ import annotations

import base64
import json
import random
import urllib.request
import uuid
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from agentjobs.apis.names import GROUP
from benchmarks.client import NAMESPACE
from deploy.local import controlplane
from deploy.local.cluster import Cluster

_BATCH = 100  # etcd takes at most 128 operations in a transaction
_TEAMS = 40


class Etcd:
    """The cluster's etcd, through its JSON gateway."""

    def __init__(self, cluster: Cluster) -> None:
        arguments = controlplane.commands(cluster)["etcd"]["args"]
        self._url = next(
            value.split("=", 1)[1] for value in arguments if value.startswith("--listen-client-urls=")
        )

    def get(self, name: str) -> str:
        """Return a stored AgentJob's JSON."""
        found = self._call("range", {"key": _key(name)})
        return base64.b64decode(found["kvs"][0]["value"]).decode()

    def put(self, objects: Iterable[tuple[str, str]]) -> None:
        """Store objects, each a name and its JSON."""
        queue = iter(objects)
        while batch := list(islice(queue, _BATCH)):
            puts = [{"requestPut": {"key": _key(name), "value": _base64(text)}} for name, text in batch]
            self._call("txn", {"success": puts})

    def _call(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310  (our own http address)
            f"{self._url}/v3/kv/{method}", json.dumps(body).encode()
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            found: dict[str, Any] = json.loads(answer.read())
            return found


def copies(model: str, prefix: str, count: int) -> Iterator[tuple[str, str]]:
    """Yield names and JSON of AgentJobs like `model` that differ in everything that differs in truth."""
    chance = random.Random(count)  # noqa: S311
    known = json.loads(model)
    status = known.get("status", {})
    for number in range(count):
        name, uid = f"{prefix}-{number:05}", str(uuid.UUID(int=chance.getrandbits(128)))
        text = model.replace(known["metadata"]["uid"], uid).replace(known["metadata"]["name"], name)
        text = text.replace(f'"teamId":"{known["spec"]["teamId"]}"', f'"teamId":"team-{number % _TEAMS:03}"')
        if "jobId" in status:
            job_id = status["jobId"][:16] + f"{chance.getrandbits(50):010X}"[-10:]
            pod = f"{name}-{uid[-10:]}-1-{chance.getrandbits(24):05x}"[:63]
            text = text.replace(status["jobId"], job_id).replace(
                _as_renamed(status["podName"], known, name), pod
            )
        yield name, text


def _as_renamed(text: str, known: dict[str, Any], name: str) -> str:
    renamed: str = text.replace(known["metadata"]["name"], name)
    return renamed


def _key(name: str) -> str:
    return _base64(f"/registry/{GROUP}/agentjobs/{NAMESPACE}/{name}")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()

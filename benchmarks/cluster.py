"""A benchmark's own cluster, gone when it is over, however it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deploy.local.cluster import DEFAULT_STATE
from deploy.local.local import LocalCluster

FOLDER = DEFAULT_STATE / "bench"


@contextmanager
def running(name: str, *, operator: bool = True, job_controller: bool = True) -> Iterator[LocalCluster]:
    """Bring up a cluster with simulated nodes; take it down also when that was interrupted."""
    cluster = LocalCluster(FOLDER / name, operator=operator, job_controller=job_controller)
    try:
        cluster.up()
        set_pool(cluster, maxPendingPerTeam=100_000)  # one team floods: that it may not is measured apart
        yield cluster
    finally:
        cluster.down()


def set_pool(cluster: LocalCluster, **spec: Any) -> None:
    """Edit the default pool; None takes a field away."""
    patch = json.dumps({"spec": spec})
    cluster.kubectl("patch", "agentpool", "default", "--type=merge", "-p", patch)

"""CLUSTER=current: the user's own cluster is entered, and left as it was."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local import status
from deploy.local.errors import LocalError
from deploy.local.hosted import CurrentCluster
from deploy.local.local import LocalCluster

OURS = ("agentjobs.agentjobs.dev", "agentpools.agentjobs.dev")


@pytest.fixture(scope="module")
def somebodys(clusters_folder: Path) -> Iterator[LocalCluster]:
    """A cluster that has one of our CRDs from before, and nothing else of ours."""
    with LocalCluster(clusters_folder / "somebodys", nodes=1, operator=False) as cluster:
        cluster.kubectl("delete", "crd", *OURS)
        cluster.kubectl("delete", "namespace", "agentjobs-system")
        cluster.kubectl("delete", "clusterrole,clusterrolebinding", "agentjobs-operator")
        yield cluster


def test_up_and_down_leave_it_as_it_was(somebodys: LocalCluster, clusters_folder: Path) -> None:
    before = _everything(somebodys)
    environment = {**os.environ, "KUBECONFIG": str(somebodys.kubeconfig)}
    current = CurrentCluster(clusters_folder / "current", environment=environment)
    assert current.up() is False
    assert current.well
    assert current.record.context == somebodys.kubectl("config", "current-context").strip()
    assert all(row.well for row in status.rows(current))
    assert "CustomResourceDefinition/agentteams.agentjobs.dev" not in current.record.created
    assert "AgentPool/default" in current.record.created
    assert current.up() is True
    assert current.down() is True
    assert _everything(somebodys) == before
    assert not (current.state / "kubeconfig").exists()


def test_no_current_context_is_said(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("apiVersion: v1\nkind: Config\n")
    current = CurrentCluster(
        tmp_path / "state", environment={**os.environ, "KUBECONFIG": str(tmp_path / "config")}
    )
    with pytest.raises(
        LocalError, match="CLUSTER=current: your kubeconfig has no current context; choose one"
    ):
        current.up()
    assert current.down() is True


def _everything(cluster: LocalCluster) -> str:
    return cluster.kubectl("get", "crd,namespace,clusterrole,clusterrolebinding", "-o", "name")

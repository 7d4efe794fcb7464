"""CLUSTER=current and CLUSTER=kind: the user's own cluster is entered, and left as it was.

There is no Docker where these tests must run, so programs that only look like
`kind` and `docker` stand for them; the API server behind is a real one.
"""

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local import admission, install, status
from deploy.local.console import Console
from deploy.local.errors import LocalError
from deploy.local.hosted import CurrentCluster, KindCluster
from deploy.local.local import LocalCluster

OURS = ("agentjobs.agentjobs.dev", "agentpools.agentjobs.dev")
CLUSTER_WIDE = (
    *("crd", "namespace", "clusterrole", "clusterrolebinding", "flowschema", "prioritylevelconfiguration"),
    *("validatingadmissionpolicy", "validatingadmissionpolicybinding", "validatingwebhookconfiguration"),
)
KIND = """#!/bin/sh -e
# A kind with at most one cluster, which is the one of $SOMEBODYS_KUBECONFIG.
for argument; do [ "$last" = --kubeconfig ] && kubeconfig=$argument; last=$argument; done
cluster=$(dirname "$0")/cluster
case "$1 $2" in
    "get clusters") cat "$cluster" 2>/dev/null || true ;;
    "create cluster") cp "$SOMEBODYS_KUBECONFIG" "$kubeconfig"; echo agentjobs > "$cluster" ;;
    "export kubeconfig") cp "$SOMEBODYS_KUBECONFIG" "$kubeconfig" ;;
    "delete cluster") rm -f "$cluster" ;;
    "load docker-image") ;;
    *) echo "unknown command $1 $2" >&2; exit 1 ;;
esac
"""
# Says where a container reaches the host: here the API server is a process of the host itself.
DOCKER = """#!/bin/sh
[ "$1 $2" = "network inspect" ] && echo "$GATEWAY"
exit 0
"""


@pytest.fixture(scope="module")
def somebodys(clusters_folder: Path) -> Iterator[LocalCluster]:
    """A cluster that has one of our CRDs from before, and nothing else of ours."""
    with LocalCluster(clusters_folder / "somebodys", nodes=1, operator=False) as cluster:
        cluster.kubectl("delete", "crd", *OURS)
        cluster.kubectl("delete", "namespace", "agentjobs-system")
        cluster.kubectl(
            "delete",
            "--ignore-not-found",
            *(argument for path in install.SYSTEM for argument in ("-f", str(path))),
        )
        yield cluster


def test_current_context_is_left_as_it_was(somebodys: LocalCluster, clusters_folder: Path) -> None:
    before = _everything(somebodys)
    environment = {**os.environ, "KUBECONFIG": str(somebodys.kubeconfig)}
    said = io.StringIO()
    current = CurrentCluster(clusters_folder / "current", environment=environment, console=Console(said))
    assert current.up() is False
    assert "left out: the API server cannot call a program on this machine" in said.getvalue()
    assert not somebodys.kubectl.exists(admission.KIND, admission.NAME)
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
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "config")}
    current = CurrentCluster(tmp_path / "state", environment=environment)
    with pytest.raises(
        LocalError, match="CLUSTER=current: your kubeconfig has no current context; choose one"
    ):
        current.up()
    assert current.down() is True


@pytest.mark.parametrize(("gateway", "reached"), [("192.0.2.1", False), ("127.0.0.1", True)])
def test_kind_cluster_is_made_used_and_removed(
    somebodys: LocalCluster,
    clusters_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gateway: str,
    reached: bool,
) -> None:
    for name, text in (("kind", KIND), ("docker", DOCKER)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), os.environ["PATH"]]))
    monkeypatch.setenv("SOMEBODYS_KUBECONFIG", str(somebodys.kubeconfig))
    monkeypatch.setenv("GATEWAY", gateway)
    said = io.StringIO()
    kind = KindCluster(clusters_folder / "kind", console=Console(said))
    assert kind.up() is False
    assert kind.well
    assert kind.kubectl.exists(admission.KIND, admission.NAME) is reached
    assert ("left out: " in said.getvalue()) is not reached
    assert all(row.well for row in status.rows(kind))
    assert kind.up() is True
    assert kind.down() is True
    assert not (tmp_path / "cluster").exists()
    # A cluster of that name that is not ours is neither used nor removed.
    (tmp_path / "cluster").write_text("agentjobs\n")
    with pytest.raises(LocalError, match="a kind cluster `agentjobs` that was not made here"):
        kind.up()
    assert kind.down() is True
    assert (tmp_path / "cluster").exists()


def _everything(cluster: LocalCluster) -> str:
    return cluster.kubectl("get", ",".join(CLUSTER_WIDE), "-o", "name")

"""The local cluster itself: `up` and `down` from any point, and nothing outside loopback."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.local import controlplane, processes, status
from deploy.local.cluster import ROOT
from deploy.local.errors import LocalError
from deploy.local.local import LocalCluster
from tests.live.support import eventually

DOWN = """
import sys
from pathlib import Path
from deploy.local.local import LocalCluster
LocalCluster(Path(sys.argv[1])).down()
"""
UP = """
import sys
from pathlib import Path
from deploy.local.local import LocalCluster
LocalCluster(Path(sys.argv[1]), nodes=1, operator=False, job_controller=False).up()
"""


def test_up_again_changes_nothing(cluster: LocalCluster) -> None:
    before = {name: cluster.pid(name) for name in cluster.components}
    again = LocalCluster(cluster.state, operator=False)
    assert again.up() is True
    assert {name: again.pid(name) for name in again.components} == before


def test_up_again_applies_slots_and_nodes(cluster: LocalCluster) -> None:
    LocalCluster(cluster.state, operator=False, slots=9, nodes=2).up()
    assert _slots(cluster) == "9"
    assert len(cluster.kubectl("get", "nodes", "-o", "name").split()) == 2
    LocalCluster(cluster.state, operator=False).up()
    assert _slots(cluster) == "4"
    assert len(cluster.kubectl("get", "nodes", "-o", "name").split()) == 3


def test_up_refuses_another_node_kind(cluster: LocalCluster) -> None:
    with pytest.raises(LocalError, match="NODE=simulated is up, real is wanted; first run: make down"):
        LocalCluster(cluster.state, node="real", operator=False).up()


def test_nothing_listens_outside_loopback(cluster: LocalCluster) -> None:
    ours = {process.pid for process in processes.leftovers(cluster.state)}
    listening = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout
    addresses = [
        line.split()[3] for line in listening.splitlines() if any(f"pid={pid}," in line for pid in ours)
    ]
    assert len(addresses) >= 6
    assert [address for address in addresses if not address.startswith("127.0.0.1:")] == []


def test_namespace_is_held_to_the_restricted_standard(cluster: LocalCluster) -> None:
    labels = json.loads(cluster.kubectl("get", "namespace", "default", "-o", "json"))["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    with pytest.raises(LocalError, match="violates PodSecurity"):
        cluster.kubectl("run", "loose", "--image=busybox", "--restart=Never")


def test_audit_log_counts_writes(cluster: LocalCluster) -> None:
    cluster.kubectl("create", "configmap", "counted")
    cluster.kubectl("delete", "configmap", "counted")

    def verbs() -> list[str]:
        events = [json.loads(line) for line in cluster.audit_log.read_text().splitlines()]
        return [
            event["verb"]
            for event in events
            if event.get("objectRef", {}).get("name") == "counted"
            and event["objectRef"]["resource"] == "configmaps"
        ]

    eventually(lambda: verbs() == ["create", "delete"])


def test_status_names_what_is_down(cluster: LocalCluster) -> None:
    assert all(row.well for row in status.rows(cluster))
    cluster.kill("kube-scheduler")
    assert [row.name for row in status.rows(cluster) if not row.well] == ["kube-scheduler"]
    # `up` mends it, and touches nothing else.
    before = cluster.pid("kube-apiserver")
    assert LocalCluster(cluster.state, operator=False).up() is False
    assert cluster.pid("kube-apiserver") == before
    assert all(row.well for row in status.rows(cluster))


def test_api_server_is_killed_paused_and_restarted(cluster: LocalCluster) -> None:
    cluster.kubectl("create", "configmap", "kept")
    cluster.pause("kube-apiserver")
    assert not controlplane.healthy(cluster.cluster)
    cluster.resume("kube-apiserver")
    eventually(lambda: controlplane.healthy(cluster.cluster))
    killed = cluster.kill("kube-apiserver")
    with pytest.raises(LocalError, match="kube-apiserver does not run"):
        cluster.pid("kube-apiserver")
    cluster.restart("kube-apiserver")
    controlplane.wait_ready(cluster.cluster)
    assert cluster.pid("kube-apiserver") != killed
    cluster.kubectl("delete", "configmap", "kept")


def test_up_after_everything_was_killed_keeps_what_was_stored(cluster: LocalCluster) -> None:
    cluster.kubectl("create", "configmap", "survivor")
    for component in reversed(cluster.components):
        cluster.kill(component)
    assert LocalCluster(cluster.state, operator=False).up() is False
    assert cluster.well
    cluster.kubectl("delete", "configmap", "survivor")


def test_interrupted_down_is_followed_by_up(clusters_folder: Path) -> None:
    state = clusters_folder / "half-down"
    instance = LocalCluster(state, nodes=1, operator=False)
    instance.up()
    with _in_another_process(DOWN, state) as command:
        eventually(lambda: not instance.process("kube-apiserver"), every=0.005)
        command.kill()
    again = LocalCluster(state, nodes=1, operator=False)
    assert again.up() is False
    assert again.well
    assert again.down() is True


@pytest.mark.parametrize("reached", ["logs/kwokctl.log", "logs/kube-apiserver.log", "kubeconfig"])
def test_killed_up_is_followed_by_up_or_down(clusters_folder: Path, reached: str) -> None:
    state = clusters_folder / f"killed-{Path(reached).name}"
    with _in_another_process(UP, state) as command:
        eventually((state / reached).exists, every=0.005)
        command.kill()
    instance = LocalCluster(state, nodes=1, operator=False, job_controller=False)
    assert not instance.record.complete
    if reached == "kubeconfig":
        instance.up()
        assert instance.well
        assert '"job-controller"' in (instance.cluster.logs / "kube-controller-manager.log").read_text()
    assert instance.down() is True
    assert list(processes.leftovers(state)) == []
    assert [path.name for path in state.iterdir()] == ["lock"]
    assert instance.down() is False


def test_second_up_at_the_same_time_is_refused(clusters_folder: Path) -> None:
    state = clusters_folder / "twice"
    with _in_another_process(UP, state) as command:
        eventually((state / "cluster.json").exists, every=0.005)
        with pytest.raises(LocalError, match="another up or down is at work"):
            LocalCluster(state, operator=False).down()
        command.send_signal(signal.SIGINT)
        command.wait()
    assert LocalCluster(state, operator=False).down() is True


@contextmanager
def _in_another_process(program: str, state: Path) -> "Iterator[subprocess.Popen[bytes]]":
    command = subprocess.Popen([sys.executable, "-c", program, state], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        yield command
    finally:
        command.kill()
        command.wait()


def _slots(cluster: LocalCluster) -> str:
    return cluster.kubectl("get", "agentpool", "default", "-o", "jsonpath={.spec.maxConcurrency}")

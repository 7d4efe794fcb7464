"""What the user may ask for, and how a wrong value is answered."""

import shutil
import subprocess
from typing import Any

import pytest

from deploy.local import node
from deploy.local.errors import LocalError
from deploy.local.options import Choice, Options, choose_cluster, choose_node


def test_nothing_given() -> None:
    assert Options.read({}) == Options("auto", "auto", 3, 4, None)


def test_empty_values_count_as_not_given() -> None:
    assert Options.read(dict.fromkeys(["CLUSTER", "NODE", "NODES", "SLOTS", "PORT"], "")) == Options()


def test_everything_given() -> None:
    given = {"CLUSTER": "local", "NODE": "simulated", "NODES": "10", "SLOTS": "7", "PORT": "6443"}
    assert Options.read(given) == Options("local", "simulated", 10, 7, 6443)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("CLUSTER", "minikube", "not known; one of auto, kind, local, current"),
        ("NODE", "fake", "not known; one of auto, real, simulated"),
        ("NODES", "0", "must be a whole number from 1 to 1000"),
        ("NODES", "1001", "must be a whole number from 1 to 1000"),
        ("NODES", "-1", "must be a whole number from 1 to 1000"),
        ("NODES", "٣", "must be a whole number from 1 to 1000"),
        ("SLOTS", "many", "must be a whole number from 1 to 100000"),
        ("SLOTS", "2.5", "must be a whole number from 1 to 100000"),
        ("PORT", "80", "must be a whole number from 1024 to 65535"),
        ("PORT", "65536", "must be a whole number from 1024 to 65535"),
    ],
)
def test_wrong_values_are_named_with_the_rule(name: str, value: str, rule: str) -> None:
    with pytest.raises(LocalError) as error:
        Options.read({name: value})
    assert str(error.value) == f"{name}={value}: {rule}"


@pytest.mark.parametrize(
    ("programs", "daemon", "wanted", "choice"),
    [
        ((), False, "auto", Choice("local", "kind needs Docker, and there is no `docker` on PATH")),
        (("docker", "kind"), False, "auto", Choice("local", "kind needs Docker, and no daemon answers")),
        (("docker", "kind"), True, "auto", Choice("kind", "Docker answers")),
        (("docker", "kind"), True, "local", Choice("local", "CLUSTER=local")),
        (("docker", "kind"), True, "current", Choice("current", "CLUSTER=current")),
    ],
)
def test_choice_of_the_cluster(
    monkeypatch: pytest.MonkeyPatch, programs: tuple[str, ...], daemon: bool, wanted: str, choice: Choice
) -> None:
    _machine(monkeypatch, programs, daemon=daemon)
    assert choose_cluster(wanted) == choice


def test_auto_keeps_what_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, ("docker", "kind"), daemon=True)
    assert choose_cluster("auto", present="local").value == "local"
    assert choose_node("auto", "simulated").value == "simulated"


def test_kind_without_docker_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, ("docker",), daemon=True)
    with pytest.raises(
        LocalError, match=r"CLUSTER=kind: there is no `kind` on PATH .*; or leave CLUSTER out"
    ):
        choose_cluster("kind")


def test_only_the_local_cluster_lets_choose_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, ("docker", "kind"), daemon=True)
    assert choose_cluster("auto", "simulated") == Choice("local", "NODE=simulated")
    for cluster in ("kind", "current"):
        with pytest.raises(
            LocalError, match=f"NODE=real: CLUSTER={cluster} has its own nodes; leave NODE out"
        ):
            choose_cluster(cluster, "real")


def test_real_node_where_it_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "missing", lambda: None)
    assert choose_node("auto").value == "real"
    assert choose_node("simulated").value == "simulated"


def test_simulated_nodes_where_a_real_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "missing", lambda: "it needs root")
    assert choose_node("auto") == Choice("simulated", "no real node: it needs root")
    with pytest.raises(LocalError, match="NODE=real: it needs root; or take NODE=simulated"):
        choose_node("real")


def _machine(monkeypatch: pytest.MonkeyPatch, programs: tuple[str, ...], *, daemon: bool) -> None:
    def run(command: list[str], **_: Any) -> "subprocess.CompletedProcess[bytes]":
        assert command == ["docker", "info"]
        return subprocess.CompletedProcess(command, 0 if daemon else 1)

    monkeypatch.setattr(shutil, "which", lambda name: name if name in programs else None)
    monkeypatch.setattr(subprocess, "run", run)

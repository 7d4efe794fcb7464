"""The parts of the real node that can be judged without one: its names, its files, its control groups."""

from pathlib import Path

import pytest

from deploy.local import node, node_cgroup, node_config, node_host
from deploy.local.errors import LocalError
from deploy.local.node_config import Identity

IDENTITY = Identity("0123abcd")


def test_names_follow_from_the_state_folder_and_fit_the_kernels_limits(tmp_path: Path) -> None:
    first, second = node.identify(tmp_path / "a"), node.identify(tmp_path / "b")
    assert first == node.identify(tmp_path / "a")
    assert first != second
    assert len(first.bridge) <= 15
    assert len(first.address_label) <= 15


def test_nothing_to_stop_is_no_error(tmp_path: Path) -> None:
    node.stop(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_kubelet_listens_on_the_nodes_address_alone() -> None:
    configuration = node_config.kubelet(IDENTITY, "10.77.0.9")
    assert configuration["address"] == "10.77.0.9"
    assert (configuration["readOnlyPort"], configuration["healthzPort"]) == (0, 0)
    assert configuration["authentication"]["anonymous"] == {"enabled": False}


def test_pods_have_no_way_out() -> None:
    (bridge,) = node_config.network(IDENTITY, "10.88.9.0/24")["plugins"]
    assert (bridge["isGateway"], bridge["ipMasq"]) == (False, False)
    assert "routes" not in bridge["ipam"]


def held_addresses(monkeypatch: pytest.MonkeyPatch, *held: str) -> None:
    """A loopback device on which others hold these addresses."""

    def ip(*arguments: str) -> str:
        if "add" in arguments and arguments[2] in {f"{address}/32" for address in held}:
            raise LocalError("RTNETLINK answers: File exists")
        return ""

    monkeypatch.setattr(node_host, "_ip", ip)


def test_the_wanted_address_is_taken_when_free(monkeypatch: pytest.MonkeyPatch) -> None:
    held_addresses(monkeypatch, "10.77.0.2")
    assert node_host.take_address(IDENTITY, "10.77.0.1") == "10.77.0.1"


def test_the_next_free_address_is_taken_else(monkeypatch: pytest.MonkeyPatch) -> None:
    held_addresses(monkeypatch, "10.77.0.253", "10.77.0.1")
    assert node_host.take_address(IDENTITY, "10.77.0.253") == "10.77.0.2"


def test_no_address_left_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    held_addresses(monkeypatch, *(f"10.77.0.{last}" for last in range(1, 254)))
    with pytest.raises(LocalError, match=r"every address from 10\.77\.0\.1 to 10\.77\.0\.253 is taken"):
        node_host.take_address(IDENTITY, "10.77.0.7")


def test_control_groups_version_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for controller in ("cpuset", "memory"):
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "cgroup.procs").touch()
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-1")
    (tmp_path / "cpuset" / "cpuset.mems").write_text("0")
    monkeypatch.setattr(node_cgroup, "MOUNT", tmp_path)
    monkeypatch.setattr(
        node_cgroup, "_mounts", lambda: [(tmp_path / "cpuset", {"cpuset"}), (tmp_path / "memory", {"memory"})]
    )
    node_cgroup.create("n")
    assert (tmp_path / "cpuset/n/cpuset.cpus").read_text() == "0-1"
    assert (tmp_path / "cpuset/n/cpuset.mems").read_text() == "0"
    assert (tmp_path / "memory/n").is_dir()
    assert node_cgroup.procs_of_daemons("n").parent.is_dir()
    assert node_cgroup.problem() == f"the kernel offers no control group for cpu, pids below {tmp_path}"


def test_control_groups_version_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (tmp_path, tmp_path / "n"):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.controllers").write_text("cpuset cpu io memory pids misc\n")
    monkeypatch.setattr(node_cgroup, "MOUNT", tmp_path)
    assert node_cgroup.hierarchies() == [tmp_path]
    node_cgroup.create("n")
    # Each is written by itself: the kernel refuses all of them when it refuses one.
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+pids"
    assert (tmp_path / "n/cgroup.subtree_control").read_text() == "+pids"
    assert node_cgroup.procs_of_daemons("n") == tmp_path / "n/daemons/cgroup.procs"
    assert node_cgroup.exists("n")
    assert node_cgroup.problem() is None

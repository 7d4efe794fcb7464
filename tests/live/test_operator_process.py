"""The operator's process: kept running by its supervisor, whatever happens to it."""

import os
import signal

import pytest

from agentjobs.errors import SettingsError
from deploy.local import processes, status
from deploy.local.cluster import ROOT
from deploy.local.errors import LocalError
from deploy.local.local import LocalCluster
from tests.live.support import eventually


def test_killed_operator_is_back_within_seconds(operator: LocalCluster) -> None:
    killed = operator.kill("operator")
    eventually(lambda: (process := operator.process("operator")) and process.pid != killed, seconds=2)
    operator.operator.wait_ready()
    assert operator.cluster.operator_pid.read_text().strip() == str(operator.pid("operator"))


def test_operator_that_ends_by_itself_is_started_again(operator: LocalCluster) -> None:
    ended = operator.pid("operator")
    os.kill(ended, signal.SIGTERM)
    eventually(lambda: (process := operator.process("operator")) and process.pid != ended)
    operator.operator.wait_ready()


def test_killed_supervisor_leaves_one_operator_after_up(operator: LocalCluster) -> None:
    supervisor = operator.operator.supervisor()
    assert supervisor is not None
    orphan = operator.process("operator")
    assert orphan is not None
    supervisor.signal(signal.SIGKILL)
    eventually(lambda: not supervisor.alive)
    assert [row.name for row in status.rows(operator) if not row.well] == ["supervisor"]
    LocalCluster(operator.state).up()
    assert not orphan.alive
    assert all(row.well for row in status.rows(operator))


def test_up_with_other_settings_starts_another_operator(
    operator: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = operator.pid("operator")
    for name, value in operator.exports.items():
        monkeypatch.setenv(name, value)  # as in a shell after `source .local/env`
    LocalCluster(operator.state).up()
    assert operator.pid("operator") == former
    monkeypatch.setenv("AGENTJOBS_LOG_LEVEL", "LOUD")
    with pytest.raises(SettingsError, match="AGENTJOBS_LOG_LEVEL='LOUD': must be DEBUG"):
        LocalCluster(operator.state).up()
    assert operator.pid("operator") == former
    monkeypatch.delenv("AGENTJOBS_LOG_LEVEL")
    monkeypatch.setenv("AGENTJOBS_POLICY", "fifo")
    LocalCluster(operator.state).up()
    process = operator.process("operator")
    assert process is not None
    assert process.pid != former
    assert processes.environment(process)["AGENTJOBS_POLICY"] == "fifo"
    monkeypatch.delenv("AGENTJOBS_POLICY")
    LocalCluster(operator.state).up()
    assert operator.pid("operator") != process.pid


def test_up_returns_when_runs_are_taken(operator: LocalCluster) -> None:
    LocalCluster(operator.state, slots=7).up()
    assert operator.kubectl("get", "agentpool", "default", "-o", "jsonpath={.status.capacity.slots}") == "7"
    operator.kubectl("delete", "agentpool", "default")
    LocalCluster(operator.state).up()
    example = ROOT / "examples" / "compute" / "agentjob.yaml"
    operator.kubectl("create", "--dry-run=server", "-f", str(example))


def test_paused_operator_does_not_answer_and_comes_back(operator: LocalCluster) -> None:
    operator.pause("operator")
    assert not operator.operator.ready()
    operator.resume("operator")
    eventually(operator.operator.ready)


def test_stopped_operator_stays_stopped(operator: LocalCluster) -> None:
    process = operator.process("operator")
    assert process is not None
    operator.stop_operator()
    assert not process.alive
    assert "operator" not in operator.components
    with pytest.raises(LocalError, match="operator does not run"):
        operator.pid("operator")
    assert not operator.cluster.operator_pid.exists()
    assert processes.load(operator.cluster.pids, "operator-supervisor") is not None
    operator.start_operator()
    assert operator.operator.ready()


def test_operator_is_not_an_administrator(operator: LocalCluster) -> None:
    path = str(operator.cluster.operator_kubeconfig)
    who = operator.kubectl(
        "--kubeconfig", path, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"
    )
    assert who == "system:serviceaccount:agentjobs-system:agentjobs-operator"
    assert operator.cluster.operator_kubeconfig.stat().st_mode & 0o077 == 0
    with pytest.raises(LocalError, match="Forbidden"):
        operator.kubectl("--kubeconfig", path, "get", "secrets", "-A")

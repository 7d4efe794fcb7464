"""The real node: sandbox, exit codes, results, logs, memory limits and deadlines of real containers.

Plain pods and Jobs, without the operator: what is proved here is the ground
that the operator stands on.
"""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from deploy.local import node, node_cgroup, node_host, processes
from deploy.local.errors import LocalError
from deploy.local.install import workload_namespace
from deploy.local.local import LocalCluster
from deploy.local.node_config import NODE_NAME
from tests.live.support import eventually

NAMESPACE = "sandbox"
INPUT = "agentjobs.dev/input"
ENDED = "jsonpath={.status.containerStatuses[0].state.terminated}"
# Prints what a process can know of its own cage, and what it is refused.
INSPECTION = """
import json, os, socket
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
def refused(action):
    try:
        action()
    except OSError as error:
        return error.strerror
facts = {name: status[name] for name in ("CapEff", "CapBnd", "Seccomp", "NoNewPrivs")}
facts["ids"] = [os.getuid(), os.getgid()]
facts["name"] = __import__("pwd").getpwuid(os.getuid()).pw_name
facts["root"] = refused(lambda: open("/file", "w"))
facts["tmp"] = refused(lambda: open("/tmp/file", "w"))
facts["network"] = refused(lambda: socket.create_connection(("192.0.2.1", 80), 5))
facts["token"] = os.path.exists("/var/run/secrets/kubernetes.io")
facts["processes"] = len([name for name in os.listdir("/proc") if name.isdigit()])
print(json.dumps(facts))
"""


class Sandboxes:
    """Starts pods that are built like those of AgentJobs, and tells what became of them."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster

    def run(self, name: str, example: str = "compute", payload: object = None, **spec: Any) -> str:
        """Create a pod from an example's image; keyword arguments replace parts of its spec."""
        self.kubectl("create", "-f", "-", stdin=json.dumps(pod(name, example, payload, **spec)))
        return name

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """kubectl in the pods' namespace."""
        return self.cluster.kubectl("--namespace", NAMESPACE, *arguments, stdin=stdin)

    def logs(self, name: str) -> str:
        return self.kubectl("logs", name)

    def wait_log(self, name: str, text: str) -> None:
        """Wait until the container has printed that text: then its agent runs."""
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
        eventually(lambda: text in self.logs(name))

    def stop(self, name: str) -> None:
        """What the operator does to cancel: the evidence stays."""
        self.kubectl("patch", "pod", name, "--patch", '{"spec":{"activeDeadlineSeconds":1}}')

    def outcome(self, name: str) -> tuple[str, str | None, dict[str, Any]]:
        """The pod's phase and reason, and how its container ended, once both are known."""
        self.kubectl("wait", f"--for={ENDED}", f"pod/{name}", "--timeout=60s")
        status = eventually(lambda: self._final_status(name))
        return status["phase"], status.get("reason"), status["containerStatuses"][0]["state"]["terminated"]

    def _final_status(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.kubectl("get", "pod", name, "-o", "json"))["status"]
        assert status["phase"] in ("Succeeded", "Failed"), status
        return status


@pytest.fixture(scope="module")
def sandboxes(real_cluster: LocalCluster) -> Sandboxes:
    workload_namespace(real_cluster.kubectl, NAMESPACE)
    real_cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--namespace", NAMESPACE)
    return Sandboxes(real_cluster)


def pod(
    name: str, example: str, payload: object, overrides: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod as an AgentJob's; `overrides` replace parts of its container, the rest parts of its spec."""
    container: dict[str, Any] = {
        "name": "agent",
        "image": f"agentjobs.local/{example}:dev",
        "imagePullPolicy": "IfNotPresent",
        "env": [
            {"name": "AGENT_JOB_ID", "value": "01JQRS7X00000000000000000A"},
            {"name": "AGENT_TEAM_ID", "value": "blue"},
            {"name": "AGENT_ATTEMPT", "value": "1"},
            {"name": "AGENT_INPUT_FILE", "value": "/agent-input/payload.json"},
            {"name": "AGENT_RESULT_FILE", "value": "/dev/termination-log"},
        ],
        "resources": {"limits": {"cpu": "500m", "memory": "128Mi", "ephemeral-storage": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "input", "mountPath": "/agent-input"},
        ],
    }
    field = {"path": "payload.json", "fieldRef": {"fieldPath": f"metadata.annotations['{INPUT}']"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {INPUT: json.dumps(payload or {})}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 5,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "runAsGroup": 10001,
                "fsGroup": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumes": [
                {"name": "tmp", "emptyDir": {"sizeLimit": "16Mi"}},
                {"name": "input", "downwardAPI": {"items": [field]}},
            ],
            **spec,
            "containers": [{**container, **(overrides or {})}],
        },
    }


def test_a_process_is_caged(sandboxes: Sandboxes) -> None:
    name = sandboxes.run("caged", overrides={"command": ["python3", "-c", INSPECTION]})
    phase, _, _ = sandboxes.outcome(name)
    assert phase == "Succeeded", sandboxes.logs(name)
    assert json.loads(sandboxes.logs(name)) == {
        "CapEff": "0000000000000000",
        "CapBnd": "0000000000000000",
        "Seccomp": "2",
        "NoNewPrivs": "1",
        "ids": [10001, 10001],
        "name": "agent",
        "root": "Read-only file system",
        "tmp": None,
        "network": "Network is unreachable",
        "token": False,
        "processes": 1,
    }


def test_a_pod_that_asks_for_more_is_refused(sandboxes: Sandboxes) -> None:
    with pytest.raises(LocalError, match='violates PodSecurity "restricted'):
        sandboxes.run("privileged", overrides={"securityContext": {"privileged": True}})


def test_compute_returns_its_result(sandboxes: Sandboxes) -> None:
    name = sandboxes.run("compute", payload={"duration": 0.2})
    phase, reason, container = sandboxes.outcome(name)
    assert (phase, reason, container["exitCode"]) == ("Succeeded", None, 0)
    assert json.loads(container["message"]) == {"result": 42}
    assert sandboxes.logs(name).splitlines() == [
        "job 01JQRS7X00000000000000000A, attempt 1: computing for 0.2 s",
        "the answer is 42",
    ]


def test_compute_says_what_is_wrong_with_its_input(sandboxes: Sandboxes) -> None:
    phase, _, container = sandboxes.outcome(sandboxes.run("misfit", payload={"duration": "long"}))
    assert (phase, container["exitCode"]) == ("Failed", 1)
    assert "inputPayload.duration is 'long'" in json.loads(container["message"])["error"]


def test_traceback_reports_its_failure(sandboxes: Sandboxes) -> None:
    payload = {"orders": [{"price": 10, "pieces": 4}, {"price": 9, "pieces": 0}]}
    name = sandboxes.run("traceback", "traceback", payload)
    phase, _, container = sandboxes.outcome(name)
    assert (phase, container["exitCode"], container["reason"]) == ("Failed", 1, "Error")
    report = json.loads(container["message"])
    assert report["error"] == "ZeroDivisionError: division by zero"
    assert 'File "/agent/agent.py"' in report["traceback"]
    assert "in price_per_piece" in report["traceback"]
    assert "ZeroDivisionError" in sandboxes.logs(name)


def test_memory_hog_is_killed_at_its_limit(sandboxes: Sandboxes) -> None:
    name = sandboxes.run("memory-hog", "memory-hog")
    phase, _, container = sandboxes.outcome(name)
    assert (phase, container["exitCode"], container["reason"]) == ("Failed", 137, "OOMKilled")
    assert "holding 96 MB" in sandboxes.logs(name)
    assert "holding 128 MB" not in sandboxes.logs(name)


def test_the_pods_own_deadline_stops_it_and_keeps_the_evidence(sandboxes: Sandboxes) -> None:
    name = sandboxes.run("deadline", payload={"duration": 600}, activeDeadlineSeconds=4)
    phase, reason, container = sandboxes.outcome(name)
    assert (phase, reason, container["exitCode"]) == ("Failed", "DeadlineExceeded", 143)
    assert "SIGTERM: stopping" in sandboxes.logs(name)


def test_lowering_the_deadline_stops_a_running_pod(sandboxes: Sandboxes) -> None:
    name = sandboxes.run("cancelled", payload={"duration": 600}, activeDeadlineSeconds=900)
    sandboxes.wait_log(name, "computing")
    sandboxes.stop(name)
    phase, reason, container = sandboxes.outcome(name)
    assert (phase, reason, container["exitCode"]) == ("Failed", "DeadlineExceeded", 143)
    assert "message" not in container
    assert "SIGTERM: stopping" in sandboxes.logs(name)


def test_stubborn_is_killed_after_its_grace_period(sandboxes: Sandboxes) -> None:
    name = sandboxes.run("stubborn", "stubborn", terminationGracePeriodSeconds=2)
    sandboxes.wait_log(name, "come what may")
    sandboxes.stop(name)
    phase, reason, container = sandboxes.outcome(name)
    assert (phase, reason, container["exitCode"]) == ("Failed", "DeadlineExceeded", 137)
    assert "SIGTERM: not today" in sandboxes.logs(name)


def test_a_job_completes(sandboxes: Sandboxes) -> None:
    spec = pod("unused", "compute", {})
    template = {"metadata": {"annotations": spec["metadata"]["annotations"]}, "spec": spec["spec"]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "whole"},
        "spec": {"backoffLimit": 0, "podReplacementPolicy": "Failed", "template": template},
    }
    sandboxes.kubectl("create", "-f", "-", stdin=json.dumps(job))
    sandboxes.kubectl("wait", "--for=condition=Complete", "job/whole", "--timeout=60s")
    assert "the answer is 42" in sandboxes.kubectl("logs", "job/whole")


def test_a_command_can_be_run_inside(sandboxes: Sandboxes) -> None:
    name = sandboxes.run("entered", payload={"duration": 600})
    sandboxes.wait_log(name, "computing")
    assert sandboxes.kubectl("exec", name, "--", "cat", "/agent-input/payload.json") == '{"duration": 600}'
    sandboxes.kubectl("delete", "pod", name, "--wait=false")


def traces(state: Path) -> list[str]:
    """What the node of a state folder has left on this machine."""
    identity = node.identify(state)
    found = [
        str(tree / identity.cgroup) for tree in node_cgroup.hierarchies() if (tree / identity.cgroup).exists()
    ]
    found += [identity.bridge] if Path("/sys/class/net", identity.bridge).exists() else []
    found += [address] if (address := node_host.address(identity)) else []
    found += [str(state / "node")] if (state / "node").exists() else []
    return found


def test_a_second_node_lives_beside_it_and_leaves_nothing_after_a_crash(
    real_cluster: LocalCluster, clusters_folder: Path
) -> None:
    second = LocalCluster(clusters_folder / "second", node="real", operator=False)
    second.up()
    addresses = {node_host.address(node.identify(each.state)) for each in (real_cluster, second)}
    assert len(addresses) == 2
    assert None not in addresses
    # Its first pod makes the network link; then its programs are killed in the middle of their work.
    second.kubectl("wait", "--for=create", "serviceaccount/default")
    second.kubectl("create", "-f", "-", stdin=json.dumps(pod("lost", "stubborn", {})))
    second.kubectl("wait", "--for=condition=Ready", "pod/lost", "--timeout=60s")
    assert len(traces(second.state)) >= 4
    for name in (node.KUBELET, node.CONTAINERD):
        process = processes.load(second.cluster.pids, name)
        assert process is not None
        process.signal(signal.SIGKILL)
    second.down()
    assert traces(second.state) == []
    real_cluster.kubectl("wait", "--for=condition=Ready", f"node/{NODE_NAME}", "--timeout=10s")

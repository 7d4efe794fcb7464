"""What an instance remembers, and what it puts into a cluster."""

import io
import socket
from pathlib import Path

import pytest

from deploy.local import admission, hosted, install, ports
from deploy.local.cluster import DEFAULT_STATE, ROOT, Cluster
from deploy.local.console import Console
from deploy.local.errors import LocalError
from deploy.local.install import Object
from deploy.local.local import LocalCluster
from deploy.local.record import Record

RECORD = Record(
    "local", "simulated", 3, 4, 6443, 8080, 9443, operator=True, job_controller=True, complete=True
)


def test_instances_keep_apart() -> None:
    mine, test = Cluster(DEFAULT_STATE, 1), Cluster(DEFAULT_STATE / "test", 2)
    assert mine.node_address == "10.77.0.1"
    assert test.node_address != mine.node_address
    assert test.environment()["KUBECONFIG"] == str(DEFAULT_STATE / "test" / "kubeconfig")


def test_record_is_read_back(tmp_path: Path) -> None:
    RECORD.save(tmp_path)
    assert Record.load(tmp_path) == RECORD


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"kind": "local", "created": []}'])
def test_a_record_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    assert Record.load(tmp_path) is None


def test_env_can_be_sourced_whatever_the_folder_is_called(tmp_path: Path) -> None:
    RECORD.save(tmp_path)
    instance = LocalCluster(tmp_path / "it's mine")
    instance.state.mkdir()
    instance._write_env()
    text = (instance.state / "env").read_text()
    assert f"export KUBECONFIG='{tmp_path}/it'\\''s mine/kubeconfig'\n" in text
    assert text.endswith(':"$PATH"\n')


def test_taken_port_is_named_with_the_way_out() -> None:
    with socket.socket() as server:
        server.bind((ports.LOOPBACK, 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(
            LocalError, match=rf"PORT={port}: address already in use; .*ss -ltnp.*leave PORT out"
        ):
            ports.require_free(port)
    ports.require_free(port)


def test_free_ports_are_distinct() -> None:
    assert len(set(ports.free_ports(20))) == 20


def test_workload_namespace_pins_the_restricted_standard() -> None:
    labels = install.namespace("default", restricted=True)["metadata"]["labels"]
    assert labels == {
        f"pod-security.kubernetes.io/{mode}{suffix}": value
        for mode in ("enforce", "audit", "warn")
        for suffix, value in (("", "restricted"), ("-version", "v1.37"))
    }


def test_objects_that_are_installed() -> None:
    names = [str(item) for item in install.objects()]
    assert names[0] == "Namespace/agentjobs-system"
    assert "CustomResourceDefinition/agentjobs.agentjobs.dev" in names
    assert "agentjobs-system/ServiceAccount/agentjobs-operator" in names
    assert names[-1] == "AgentPool/default"
    assert [Object.parse(name) for name in names] == install.objects()


def test_the_gateway_is_an_address_of_this_machine() -> None:
    assert hosted.gateway("fc00:f853:ccd:e793::1\n127.0.0.1\n\n") == "127.0.0.1"
    assert hosted.gateway("192.0.2.1\n") is None
    assert hosted.gateway("\n") is None


def test_where_the_api_server_cannot_call_us_it_does_not_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A firewall between the containers and the host, say."""
    done: list[str] = []

    def pool(*_: object) -> None:
        done.append("pool")
        if len(done) == 1:
            raise LocalError('failed calling webhook "agentpools.agentjobs.dev": … i/o timeout')

    monkeypatch.setattr(install, "pool", pool)
    monkeypatch.setattr(admission, "remove", lambda _: done.append("admission removed"))
    said = io.StringIO()
    hosted.KindCluster(tmp_path, console=Console(said))._pool()
    assert done == ["pool", "admission removed", "pool"]
    assert "left out: the API server cannot call" in said.getvalue()


def test_hooks_are_called_by_url_unless_they_have_a_way_already() -> None:
    fresh = admission.configuration("127.0.0.1:9443")
    assert {hook["clientConfig"]["url"] for hook in fresh["webhooks"]} == {"https://127.0.0.1:9443/closed"}
    written = {"url": "https://127.0.0.1:9443/secret/7/agentjobs", "caBundle": "Q0E="}
    hooks = [{"name": "agentjobs.agentjobs.dev", "clientConfig": written}]
    again = admission.configuration(
        "127.0.0.1:9443", {"metadata": {"resourceVersion": "5"}, "webhooks": hooks}
    )
    ways = [hook["clientConfig"] for hook in again["webhooks"]]
    assert ways == [written, *({"url": "https://127.0.0.1:9443/closed"},) * 2]
    assert again["metadata"] == {"name": "agentjobs", "resourceVersion": "5"}


def test_kind_commands() -> None:
    kubeconfig = Path("/state/kubeconfig")
    assert hosted.create_command(kubeconfig) == [
        *("kind", "create", "cluster", "--name", "agentjobs"),
        *("--config", str(ROOT / "deploy/kind/config.yaml"), "--kubeconfig", "/state/kubeconfig"),
        *("--wait", "120s"),
    ]
    folder = Path("/examples/compute")
    assert hosted.image_commands([folder]) == [
        ["docker", "build", "--quiet", "--tag", "agentjobs.local/compute:dev", "/examples/compute"],
        ["kind", "load", "docker-image", "--name", "agentjobs", "agentjobs.local/compute:dev"],
    ]
    assert hosted.image_commands([]) == []

"""The operator's settings: what the environment may say, and what is said of what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentjobs.errors import SettingsError
from agentjobs.settings import Settings


def test_an_empty_environment_gives_the_defaults() -> None:
    read = Settings.from_environment({})
    assert read == Settings(identity=read.identity)
    assert read.identity != Settings.from_environment({"AGENTJOBS_IDENTITY": ""}).identity


def test_everything_can_be_set() -> None:
    read = Settings.from_environment(
        {
            "AGENTJOBS_METRICS_ADDRESS": "[::1]:9090",
            "AGENTJOBS_LOG_LEVEL": "debug",
            "AGENTJOBS_SHUTDOWN_SECONDS": "0",
            "AGENTJOBS_POLICY": "fifo",
            "AGENTJOBS_ADMISSION_ADDRESS": "[::]:8443",
            "AGENTJOBS_POD_IP": "FD00::7",
            "AGENTJOBS_IDENTITY": "me",
            "AGENTJOBS_TLS_DIR": "/tls",
        }
    )
    assert read == Settings("::1", 9090, "DEBUG", 0, "fifo", "::", 8443, "fd00::7", "me", Path("/tls"))


@pytest.mark.parametrize(
    ("listens", "pod", "dialled"),
    [
        ("0.0.0.0:9443", "10.0.0.7", "10.0.0.7"),
        ("0.0.0.0:9443", "", "127.0.0.1"),
        ("[::]:9443", "", "::1"),
        ("172.18.0.1:9443", "", "172.18.0.1"),
    ],
)
def test_api_servers_dial_the_pod_or_the_address_that_is_listened_on(
    listens: str, pod: str, dialled: str
) -> None:
    read = Settings.from_environment({"AGENTJOBS_ADMISSION_ADDRESS": listens, "AGENTJOBS_POD_IP": pod})
    assert read.dialled_host == dialled


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("AGENTJOBS_METRICS_ADDRESS", "8080", "must be host:port, such as 127.0.0.1:8080"),
        ("AGENTJOBS_METRICS_ADDRESS", ":8080", "must be host:port, such as 127.0.0.1:8080"),
        ("AGENTJOBS_METRICS_ADDRESS", "localhost:", "must be host:port, such as 127.0.0.1:8080"),
        ("AGENTJOBS_METRICS_ADDRESS", "localhost:65536", "must be host:port, such as 127.0.0.1:8080"),
        ("AGENTJOBS_METRICS_ADDRESS", "localhost:-1", "must be host:port, such as 127.0.0.1:8080"),
        ("AGENTJOBS_METRICS_ADDRESS", "localhost:²", "must be host:port, such as 127.0.0.1:8080"),
        ("AGENTJOBS_ADMISSION_ADDRESS", "9443", "must be host:port, such as 0.0.0.0:9443"),
        ("AGENTJOBS_POD_IP", "localhost", "must be an IP address, such as 10.0.0.7"),
        ("AGENTJOBS_LOG_LEVEL", "LOUD", "must be DEBUG, INFO, WARNING or ERROR"),
        ("AGENTJOBS_SHUTDOWN_SECONDS", "601", "must be a whole number from 0 to 600"),
        ("AGENTJOBS_SHUTDOWN_SECONDS", "1.5", "must be a whole number from 0 to 600"),
        ("AGENTJOBS_SHUTDOWN_SECONDS", "²", "must be a whole number from 0 to 600"),
        ("AGENTJOBS_SHUTDOWN_SECONDS", "", "must be a whole number from 0 to 600"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_rule(name: str, value: str, rule: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({name: value})
    assert str(caught.value) == f"{name}={value!r}: {rule}"
    assert caught.value.name == name

"""The operator's settings: what the environment may say, and what is said of what it may not."""

from __future__ import annotations

import pytest

from agentjobs.errors import SettingsError
from agentjobs.settings import Settings


def test_an_empty_environment_gives_the_defaults() -> None:
    assert Settings.from_environment({}) == Settings()


def test_everything_can_be_set() -> None:
    read = Settings.from_environment(
        {
            "AGENTJOBS_METRICS_ADDRESS": "[::1]:9090",
            "AGENTJOBS_LOG_LEVEL": "debug",
            "AGENTJOBS_SHUTDOWN_SECONDS": "0",
        }
    )
    assert read == Settings("::1", 9090, "DEBUG", 0)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("AGENTJOBS_METRICS_ADDRESS", "8080", "must be host:port, such as 127.0.0.1:8080"),
        ("AGENTJOBS_METRICS_ADDRESS", ":8080", "must be host:port, such as 127.0.0.1:8080"),
        ("AGENTJOBS_METRICS_ADDRESS", "localhost:", "must be host:port, such as 127.0.0.1:8080"),
        ("AGENTJOBS_METRICS_ADDRESS", "localhost:65536", "must be host:port, such as 127.0.0.1:8080"),
        ("AGENTJOBS_METRICS_ADDRESS", "localhost:-1", "must be host:port, such as 127.0.0.1:8080"),
        ("AGENTJOBS_METRICS_ADDRESS", "localhost:²", "must be host:port, such as 127.0.0.1:8080"),
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

"""The operator's settings: environment variables, read once, frozen."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from agentjobs.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Settings:
    """What differs between installations.

    Attributes:
        metrics_host, metrics_port: where /metrics, /healthz and /readyz are served
            (AGENTJOBS_METRICS_ADDRESS, default 127.0.0.1:8080).
        log_level: of the operator's own logger (AGENTJOBS_LOG_LEVEL, default INFO).
        policy: name of the entry point in the group agentjobs.policies that decides
            (AGENTJOBS_POLICY, default fair-share).
        shutdown_seconds: how long status writes may take after SIGTERM
            (AGENTJOBS_SHUTDOWN_SECONDS, default 10).
    """

    metrics_host: str = "127.0.0.1"
    metrics_port: int = 8080
    log_level: str = "INFO"
    shutdown_seconds: int = 10
    policy: str = "fair-share"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read the settings.

        Raises:
            SettingsError: naming the variable, its value and the rule.
        """
        address = environment.get("AGENTJOBS_METRICS_ADDRESS", "127.0.0.1:8080")
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise SettingsError(
                "AGENTJOBS_METRICS_ADDRESS", address, "must be host:port, such as 127.0.0.1:8080"
            )
        level = environment.get("AGENTJOBS_LOG_LEVEL", "INFO").upper()
        if level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
            raise SettingsError("AGENTJOBS_LOG_LEVEL", level, "must be DEBUG, INFO, WARNING or ERROR")
        seconds = environment.get("AGENTJOBS_SHUTDOWN_SECONDS", "10")
        if not seconds.isdecimal() or int(seconds) > 600:
            raise SettingsError("AGENTJOBS_SHUTDOWN_SECONDS", seconds, "must be a whole number from 0 to 600")
        policy = environment.get("AGENTJOBS_POLICY") or "fair-share"
        return cls(host.strip("[]"), int(port), level, int(seconds), policy)

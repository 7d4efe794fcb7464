"""The operator's settings: environment variables, read once, frozen."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

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
        admission_host, admission_port: where admission reviews are answered
            (AGENTJOBS_ADMISSION_ADDRESS, default 0.0.0.0:9443).
        pod_ip: this pod's address, which API servers are led to through a Service; "" outside of a cluster,
            where they are led to the admission address by URL (AGENTJOBS_POD_IP).
        identity: who holds the Lease: a process takes over at once what one of the same identity held, which
            must have ended (AGENTJOBS_IDENTITY, such as the pod's uid; one of its own by default).
        tls_dir: folder with tls.crt, tls.key and ca.crt of the admission server; None makes a certificate
            (AGENTJOBS_TLS_DIR).
    """

    metrics_host: str = "127.0.0.1"
    metrics_port: int = 8080
    log_level: str = "INFO"
    shutdown_seconds: int = 10
    policy: str = "fair-share"
    admission_host: str = "0.0.0.0"  # noqa: S104  (whoever knows the secret path may ask)
    admission_port: int = 9443
    pod_ip: str = ""
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}-{secrets.token_hex(8)}")
    tls_dir: Path | None = None

    @property
    def dialled_host(self) -> str:
        """Where API servers reach this process."""
        if self.pod_ip:
            return self.pod_ip
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
        return everywhere.get(self.admission_host, self.admission_host)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read the settings.

        Raises:
            SettingsError: naming the variable, its value and the rule.
        """
        host, port = _address(environment, "AGENTJOBS_METRICS_ADDRESS", "127.0.0.1:8080")
        admission_host, admission_port = _address(environment, "AGENTJOBS_ADMISSION_ADDRESS", "0.0.0.0:9443")
        level = environment.get("AGENTJOBS_LOG_LEVEL", "INFO").upper()
        if level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
            raise SettingsError("AGENTJOBS_LOG_LEVEL", level, "must be DEBUG, INFO, WARNING or ERROR")
        seconds = environment.get("AGENTJOBS_SHUTDOWN_SECONDS", "10")
        if not seconds.isdecimal() or int(seconds) > 600:
            raise SettingsError("AGENTJOBS_SHUTDOWN_SECONDS", seconds, "must be a whole number from 0 to 600")
        identity, folder = environment.get("AGENTJOBS_IDENTITY"), environment.get("AGENTJOBS_TLS_DIR")
        return cls(
            metrics_host=host,
            metrics_port=port,
            log_level=level,
            shutdown_seconds=int(seconds),
            policy=environment.get("AGENTJOBS_POLICY") or "fair-share",
            admission_host=admission_host,
            admission_port=admission_port,
            pod_ip=_ip(environment, "AGENTJOBS_POD_IP"),
            tls_dir=Path(folder) if folder else None,
            **({"identity": identity} if identity else {}),
        )


def _address(environment: Mapping[str, str], name: str, default: str) -> tuple[str, int]:
    """Return host and port of a variable such as `127.0.0.1:8080` or `[::1]:8080`."""
    address = environment.get(name, default)
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(name, address, f"must be host:port, such as {default}")
    return host.strip("[]"), int(port)


def _ip(environment: Mapping[str, str], name: str) -> str:
    """Return an IP address, "" where the variable is not set or empty."""
    text = environment.get(name, "")
    try:
        return str(ipaddress.ip_address(text)) if text else ""
    except ValueError as error:
        raise SettingsError(name, text, "must be an IP address, such as 10.0.0.7") from error

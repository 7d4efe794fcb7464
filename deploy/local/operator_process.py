"""The operator's process on this machine, under a supervisor of its own."""

import secrets
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, replace

from agentjobs.settings import Settings
from deploy.local import processes
from deploy.local.cluster import ROOT, Cluster
from deploy.local.controlplane import tail
from deploy.local.errors import LocalError
from deploy.local.processes import Process

SUPERVISOR = "operator-supervisor"
READY_SECONDS = 30
# So many processes that ended before they were ready are enough to give up.
ATTEMPTS = 3


@dataclass(frozen=True)
class Operator:
    """The supervised operator of one instance."""

    cluster: Cluster
    metrics_port: int
    admission_address: str
    """Where it answers admission reviews, `host:port`."""

    @property
    def url(self) -> str:
        """Where /metrics, /healthz and /readyz are served."""
        return f"http://127.0.0.1:{self.metrics_port}"

    def process(self) -> Process | None:
        """The operator's present process, None between two of them."""
        try:
            pid = int(self.cluster.operator_pid.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return processes.observe("operator", pid)

    def supervisor(self) -> Process | None:
        """The recorded supervisor, if it still runs."""
        process = processes.load(self.cluster.pids, SUPERVISOR)
        return process if process and process.alive else None

    def start(self) -> None:
        """Start the supervisor, and with it the operator, unless it runs already with the same settings.

        Raises:
            LocalError: not ready in time; the message carries the last log lines.
            SettingsError: an environment variable cannot be used.
        """
        supervisor, environment = self.supervisor(), self._environment()
        wanted = _settings(environment)
        if supervisor and _settings(processes.environment(supervisor)) != wanted:
            self.stop()
            supervisor = None
        if not supervisor:
            # An operator whose supervisor was killed runs on, and two must not.
            processes.stop(self.process())
            log = self.cluster.logs / "operator.log"
            supervise = [sys.executable, "-m", "deploy.local.supervisor"]
            program = [sys.executable, "-m", "agentjobs"]
            processes.spawn(
                SUPERVISOR,
                [*supervise, str(self.cluster.operator_pid), str(log), *program],
                folder=self.cluster.pids,
                log=self.cluster.logs / f"{SUPERVISOR}.log",
                # Each process of this supervisor follows one that has ended, and takes over at once.
                env={**environment, "AGENTJOBS_IDENTITY": f"supervised-{secrets.token_hex(8)}"},
                cwd=ROOT,
            )
        self.wait_ready()

    def _environment(self) -> dict[str, str]:
        return {
            **self.cluster.environment(),
            "KUBECONFIG": str(self.cluster.operator_kubeconfig),
            "AGENTJOBS_METRICS_ADDRESS": f"127.0.0.1:{self.metrics_port}",
            "AGENTJOBS_ADMISSION_ADDRESS": self.admission_address,
        }

    def stop(self) -> None:
        """End the operator, then its supervisor."""
        process = self.process()
        # The supervisor ends its child by itself, in 10 s at the latest.
        processes.stop(processes.load(self.cluster.pids, SUPERVISOR), seconds=15)
        processes.stop(process)
        self.cluster.operator_pid.unlink(missing_ok=True)

    def ready(self) -> bool:
        """Whether it is well, leads, and answers admission reviews."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2) as answer:  # noqa: S310  (our own)
                return b"role: leader\n" in answer.read()
        except (OSError, urllib.error.URLError):
            return False

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait for readiness; raise LocalError with the log's last lines when it does not come."""
        until = time.monotonic() + seconds
        seen: set[int] = set()
        while not self.ready():
            process = self.process()
            seen |= {process.pid} if process else set()
            log = self.cluster.logs / "operator.log"
            if len(seen) > ATTEMPTS:
                raise LocalError(f"the operator ends as soon as it starts; the end of {log}:\n{tail(log)}")
            if time.monotonic() > until:
                raise LocalError(
                    f"the operator is not ready after {seconds:.0f} s; the end of {log}:\n{tail(log)}"
                )
            time.sleep(0.05)


def _settings(environment: dict[str, str]) -> Settings:
    """What an operator does differently by, of all that it is started with."""
    return replace(Settings.from_environment(environment), identity="")

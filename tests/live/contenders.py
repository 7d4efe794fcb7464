"""Several operators for one cluster: processes without a supervisor, with ports and networks of their own."""

import contextlib
import itertools
import re
import signal
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.local import admission, install, processes
from deploy.local.cluster import ROOT
from deploy.local.controlplane import tail
from deploy.local.local import LocalCluster
from deploy.local.ports import LOOPBACK, free_ports
from deploy.local.processes import Process, write_atomically
from tests.live.lab import Lab
from tests.live.proxy import Proxy
from tests.live.support import eventually

_numbers = itertools.count(1)


class Contender:
    """One operator process.

    Args:
        api_port: where it reaches the API server; the server's own port, or a proxy's.
        identity: whose Lease it takes over at once; its own when empty.
    """

    def __init__(self, cluster: LocalCluster, api_port: int, identity: str = "") -> None:
        self._name = f"operator-{next(_numbers)}"
        self._metrics, self.admission_port = free_ports(2)
        state = cluster.cluster
        self.log = state.logs / f"{self._name}.log"
        kubeconfig = state.state / f"{self._name}.kubeconfig"
        text = state.operator_kubeconfig.read_text()
        write_atomically(kubeconfig, text.replace(f":{state.port}", f":{api_port}"), mode=0o600)
        self.process: Process = processes.spawn(
            self._name,
            [sys.executable, "-m", "agentjobs"],
            folder=state.pids,
            log=self.log,
            env={
                **state.environment(),
                "KUBECONFIG": str(kubeconfig),
                "AGENTJOBS_METRICS_ADDRESS": f"{LOOPBACK}:{self._metrics}",
                "AGENTJOBS_ADMISSION_ADDRESS": f"{LOOPBACK}:{self.admission_port}",
                "AGENTJOBS_IDENTITY": identity or self._name,
            },
            cwd=ROOT,
        )

    def __repr__(self) -> str:
        return f"{self._name}: {self.role or 'does not answer'}, its log:\n{tail(self.log)}"

    @property
    def role(self) -> str:
        """`standby`, `opening` or `leader` when it is ready, "" while it is not."""
        with contextlib.suppress(OSError):
            ok, _, rest = self._get("readyz").partition("\n")
            if ok == "ok":
                return rest.removeprefix("role: ").strip()
        return ""

    @property
    def leads(self) -> bool:
        return self.role == "leader"

    def metric(self, name: str, **labels: str) -> float | None:
        """The value of one of its metrics; None when it has none with these labels."""
        for line in self._get("metrics").splitlines():
            found = re.fullmatch(rf"{name}(?:{{(.*)}})? (\S+)", line)
            if found and labels.items() <= dict(re.findall(r'(\w+)="([^"]*)"', found[1] or "")).items():
                return float(found[2])
        return None

    def freeze(self) -> None:
        self.process.signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.process.signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.process.signal(signal.SIGTERM)

    @property
    def ended(self) -> bool:
        return not self.process.alive

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self._metrics}/{path}", timeout=2) as answer:
            text: str = answer.read().decode()
        return text


class Contest(Lab):
    """A lab in which operators contend; they end with it."""

    def __init__(self, cluster: LocalCluster) -> None:
        super().__init__(cluster)
        self.contenders: list[Contender] = []

    def start(self, api_port: int = 0, identity: str = "") -> Contender:
        """Start one more operator."""
        contender = Contender(self.cluster, api_port or self.cluster.record.port, identity)
        self.contenders.append(contender)
        return contender

    def pair(self, api_port: int = 0) -> tuple[Contender, Contender]:
        """Start a leader, which reaches the API server at that port, and then a standby, and return both."""
        leader = self.start(api_port)
        eventually(lambda: leader.leads, seconds=60)
        standby = self.start()
        eventually(lambda: standby.role == "standby", seconds=60)
        return leader, standby

    @property
    def leader(self) -> Contender:
        """The one that leads; an AssertionError while nobody does."""
        leaders = [contender for contender in self.contenders if contender.leads]
        assert len(leaders) == 1, self.contenders
        return leaders[0]

    def metric(self, name: str, **labels: str) -> float | None:
        """The leader's."""
        return self.leader.metric(name, **labels)

    def end(self) -> None:
        """End every operator, so that the next test finds a Lease that was given back."""
        for contender in self.contenders:
            processes.stop(contender.process)
        self.contenders.clear()


@contextmanager
def contest(cluster: LocalCluster) -> Iterator[Contest]:
    """A cluster in which nobody leads yet, and creates are reviewed by who does."""
    if not cluster.cluster.operator_kubeconfig.exists():
        install.operator_kubeconfig(cluster.kubectl, cluster.cluster.operator_kubeconfig)
    admission.install(cluster.kubectl, f"{LOOPBACK}:{free_ports(1)[0]}")
    with Contest(cluster) as lab:
        try:
            yield lab
        finally:
            lab.end()
            admission.remove(cluster.kubectl)


@contextmanager
def proxied(cluster: LocalCluster) -> Iterator[Proxy]:
    """A way to the API server that can be cut."""
    with Proxy(cluster.record.port) as proxy:
        yield proxy

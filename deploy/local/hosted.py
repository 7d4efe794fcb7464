"""Clusters that others run: one that kind makes in Docker, and the one of the user's own context."""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from deploy.local import admission, binaries, install
from deploy.local.cluster import DEFAULT_STATE, ROOT
from deploy.local.console import Console
from deploy.local.errors import LocalError
from deploy.local.instance import Instance
from deploy.local.kubectl import Kubectl
from deploy.local.processes import write_atomically
from deploy.local.record import Record

NAME = "agentjobs"
KIND_CONFIG = ROOT / "deploy" / "kind" / "config.yaml"
EXAMPLES = ROOT / "examples"
# kind's own network; one address a line, IPv4 and IPv6.
GATEWAY_COMMAND = [
    *("docker", "network", "inspect", "kind"),
    *("--format", "{{range .IPAM.Config}}{{println .Gateway}}{{end}}"),
]


class HostedCluster(Instance):
    """What both have in common: no process of the cluster is ours, only the operator's."""

    def __init__(
        self, state: Path = DEFAULT_STATE, *, slots: int = 4, console: Console | None = None
    ) -> None:
        """Describe it; `up` makes or enters it. `slots` is the default pool's maxConcurrency."""
        wanted = Record(
            kind=self.KIND,
            node="real",
            nodes=0,
            slots=slots,
            port=0,
            metrics_port=0,
            admission_port=0,
            operator=True,
            job_controller=True,
        )
        super().__init__(state, wanted, console)

    @property
    def answers(self) -> bool:
        """Whether the API server says that it is ready."""
        try:
            return self.kubectl("get", "--raw", "/readyz", timeout=5) == "ok"
        except LocalError:
            return False

    @property
    def well(self) -> bool:
        """Whether the API server and the operator answer."""
        return self.answers and self.operator.ready()

    def _admission_host(self) -> str | None:
        """None: how the API server reaches this machine, if at all, is not known."""
        return None

    def _pool(self) -> None:
        try:
            super()._pool()
        except LocalError as error:
            if admission.UNANSWERED not in str(error):
                raise
            # A firewall, say: better without than with a cluster that takes nothing.
            admission.remove(self.kubectl)
            self._without_admission(f"the API server cannot call {self.record.admission_host}")
            super()._pool()

    def _link_kubectl(self) -> None:
        """The user's own kubectl, whatever its version; ours where there is none."""
        own = shutil.which("kubectl")
        found = {"kubectl": Path(own)} if own else binaries.ensure(self.console, ["kubernetes"])
        binaries.link(found, self.cluster.bin)


class KindCluster(HostedCluster):
    """A cluster of its own in Docker, removed by `down`."""

    KIND: ClassVar[str] = "kind"

    def _cluster(self) -> None:
        self._link_kubectl()
        with self.console.phase("kind cluster") as phase:
            exists = NAME in run(["kind", "get", "clusters"]).split()
            if exists and not self.record.created:
                raise LocalError(
                    f"there is a kind cluster `{NAME}` that was not made here; remove it with: "
                    f"kind delete cluster --name {NAME}"
                )
            # Noted before it is made, so that `down` removes it whatever happens now.
            self.record = replace(self.record, created=(f"kind/{NAME}",))
            self.record.save(self.state)
            run(export_command(self.kubeconfig) if exists else create_command(self.kubeconfig))
            phase.result = f"`{NAME}` in Docker"
        with self.console.phase("images") as phase:
            folders = sorted(path.parent for path in EXAMPLES.glob("*/Dockerfile"))
            for command in image_commands(folders):
                run(command)
            phase.result = f"{len(folders)} example agents"
        with self.console.phase("contents"):
            install.custom_resources(self.kubectl)
            install.system(self.kubectl)
            install.workload_namespace(self.kubectl)
            if not exists:
                install.free_lease(self.kubectl)

    def _admission_host(self) -> str | None:
        """The host as containers reach it, where that is an address of this machine."""
        try:
            return gateway(run(GATEWAY_COMMAND))
        except LocalError:  # kind runs on something else than Docker
            return None

    def _stop_cluster(self) -> None:
        self.operator.stop()
        if self.record.created:
            run(["kind", "delete", "cluster", "--name", NAME, "--kubeconfig", str(self.kubeconfig)])


def create_command(kubeconfig: Path) -> list[str]:
    """Make the cluster; its credentials go into our own kubeconfig, never into the user's."""
    return [
        *("kind", "create", "cluster", "--name", NAME, "--config", str(KIND_CONFIG)),
        *("--kubeconfig", str(kubeconfig), "--wait", "120s"),
    ]


def export_command(kubeconfig: Path) -> list[str]:
    """Write the credentials of the cluster that is there."""
    return ["kind", "export", "kubeconfig", "--name", NAME, "--kubeconfig", str(kubeconfig)]


def gateway(addresses: str) -> str | None:
    """The first IPv4 address of the output that this machine has; with rootless Docker, say, it has none."""
    for address in addresses.split():
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind((address, 0))
            return address
    return None


def image_commands(folders: Sequence[Path]) -> list[list[str]]:
    """Build each example's image with Docker, then load all of them into the node."""
    images = {folder: f"agentjobs.local/{folder.name}:dev" for folder in folders}
    builds = [["docker", "build", "--quiet", "--tag", image, str(folder)] for folder, image in images.items()]
    return [*builds, ["kind", "load", "docker-image", "--name", NAME, *images.values()]] if images else []


def run(command: Sequence[str]) -> str:
    """Run a tool to its end and return what it printed; LocalError with its words when it fails."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise LocalError(f"{' '.join(command)}: {result.stderr.strip() or result.stdout.strip()}")
    return result.stdout


class CurrentCluster(HostedCluster):
    """The cluster of the user's current context: nothing is changed there but what `down` removes again.

    What exists already (CRDs of an earlier installation, say) is brought up to
    date, and stays at the end.
    """

    KIND: ClassVar[str] = "current"

    def __init__(
        self,
        state: Path = DEFAULT_STATE,
        *,
        slots: int = 4,
        console: Console | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """As for every hosted cluster; `environment` is where the user's KUBECONFIG is looked up."""
        super().__init__(state, slots=slots, console=console)
        self._environment = dict(environment)

    def _cluster(self) -> None:
        self._link_kubectl()
        with self.console.phase("your cluster") as phase:
            if not self.kubeconfig.exists():
                self._enter()
            if not self.answers:
                raise LocalError(f"CLUSTER=current: the API server of {self.record.context} does not answer")
            phase.result = f"context {self.record.context}"
        with self.console.phase("contents") as phase:
            self._remember(install.objects())
            install.custom_resources(self.kubectl)
            install.system(self.kubectl)
            phase.result = f"{len(self.record.created)} objects that `down` removes"

    def _enter(self) -> None:
        """Copy the credentials of the user's current context, so that a later switch does not move us."""
        user = Kubectl(str(self.cluster.bin / "kubectl"), self._environment)
        try:
            context = user("config", "current-context").strip()
        except LocalError as error:
            raise LocalError(
                "CLUSTER=current: your kubeconfig has no current context; choose one with: "
                "kubectl config use-context NAME"
            ) from error
        text = user("config", "view", "--raw", "--minify", "--flatten")
        self.record = replace(self.record, context=context)
        self.record.save(self.state)
        write_atomically(self.kubeconfig, text, mode=0o600)

    def _remember(self, objects: Sequence[install.Object]) -> None:
        """Note what is not there yet, before it is made: only that is removed by `down`."""
        made = [str(item) for item in objects if not item.exists(self.kubectl)]
        self.record = replace(self.record, created=tuple(dict.fromkeys([*self.record.created, *made])))
        self.record.save(self.state)

    def _stop_cluster(self) -> None:
        self.operator.stop()
        if self.record.created and not self.kubeconfig.exists():
            raise LocalError(
                f"{self.kubeconfig} is gone; these objects were made in {self.record.context}, remove them "
                f"yourself: {', '.join(self.record.created)}; then: rm {self.state}/cluster.json"
            )
        for text in reversed(self.record.created):
            install.Object.parse(text).delete(self.kubectl)

"""The cluster that runs as plain processes on this machine: what `make up` and the tests use.

with LocalCluster(state, nodes=3, slots=4) as cluster:
    cluster.kubectl("get", "nodes")
"""

import signal
from pathlib import Path
from typing import ClassVar

from deploy.local import binaries, controlplane, install, node, processes
from deploy.local.cluster import DEFAULT_STATE
from deploy.local.console import Console
from deploy.local.controlplane import Plan
from deploy.local.errors import LocalError
from deploy.local.instance import Instance
from deploy.local.ports import LOOPBACK, require_free
from deploy.local.processes import Process
from deploy.local.record import Record
from deploy.local.versions import GROUPS

# By kind of node, what runs it.
NODE_PROGRAMS = {"simulated": [controlplane.SIMULATOR], "real": [node.CONTAINERD, node.KUBELET]}


class LocalCluster(Instance):
    """An instance in `state`; several run side by side, each in its own folder and on its own ports."""

    KIND: ClassVar[str] = "local"

    def __init__(
        self,
        state: Path = DEFAULT_STATE,
        *,
        node: str = "simulated",
        nodes: int = 3,
        slots: int = 4,
        operator: bool = True,
        job_controller: bool = True,
        port: int | None = None,
        console: Console | None = None,
    ) -> None:
        """Describe the instance; `up` makes it.

        Args:
            state: Its folder, below `.local`.
            node: `real` (needs root on Linux) or `simulated`.
            nodes: How many simulated nodes.
            slots: The default pool's maxConcurrency.
            operator: Whether the operator runs.
            job_controller: False leaves Jobs without pods, for measuring.
            port: The API server's; a free one when None.
            console: Where progress goes; nowhere when None.
        """
        wanted = Record(
            kind=self.KIND,
            node=node,
            nodes=nodes,
            slots=slots,
            port=port or 0,
            metrics_port=0,
            admission_port=0,
            operator=operator,
            job_controller=job_controller,
        )
        super().__init__(state, wanted, console)

    @property
    def audit_log(self) -> Path:
        """One JSON object a line for every write."""
        return self.cluster.audit_log

    @property
    def components(self) -> tuple[str, ...]:
        """The names that `pid`, `kill`, `restart`, `pause` and `resume` take."""
        names = [name for name in controlplane.COMPONENTS if name != controlplane.SIMULATOR]
        names += NODE_PROGRAMS[self.record.node]
        return (*names, *(["operator"] if self.record.operator else []))

    def process(self, component: str) -> Process | None:
        """The component's present process, None when it does not run."""
        if component == "operator":
            return self.operator.process()
        process = processes.load(self.cluster.pids, component)
        return process if process and process.alive else None

    def pid(self, component: str) -> int:
        """The component's process id; LocalError when it does not run."""
        return self._running(component).pid

    def kill(self, component: str) -> int:
        """SIGKILL a component, wait until it is gone, return its id. The operator comes back by itself."""
        process = self._running(component)
        process.signal(signal.SIGKILL)
        processes.wait_gone(process, 10)
        return process.pid

    def restart(self, component: str) -> None:
        """Kill a component, if it runs, and start it with the same command line."""
        if self.process(component):
            self.kill(component)
        if component == "operator":
            self.operator.start()
        elif component in NODE_PROGRAMS["real"]:
            node.start(self.cluster)
        else:
            if component == controlplane.SIMULATOR:
                # A new process is another holder: it would wait 200 s for the former one's to run out.
                self.kubectl("delete", "leases", "--all", "--namespace", "kube-node-lease")
            controlplane.restart(self.cluster, component)

    def pause(self, component: str) -> None:
        """SIGSTOP: the process exists and answers nothing."""
        self._running(component).signal(signal.SIGSTOP)

    def resume(self, component: str) -> None:
        """SIGCONT after `pause`."""
        self._running(component).signal(signal.SIGCONT)

    @property
    def well(self) -> bool:
        """Whether everything of it runs and answers."""
        if not all(self.process(name) for name in self.components):
            return False
        return controlplane.healthy(self.cluster) and (not self.record.operator or self.operator.ready())

    def _cluster(self) -> None:
        groups = GROUPS if self.record.node == "real" else GROUPS[:2]
        binaries.link(binaries.ensure(self.console, groups), self.cluster.bin)
        new = not self.kubeconfig.exists()
        with self.console.phase("control plane") as phase:
            self._control_plane()
            phase.result = self.cluster.server
        with self.console.phase("contents") as phase:
            phase.result = self._contents()
            if new:
                install.free_lease(self.kubectl)
        with self.console.phase("node") as phase:
            phase.result = self._nodes()

    def _control_plane(self) -> None:
        if not self.kubeconfig.exists():
            require_free(self.record.port)
            plan = Plan(self.record.node == "simulated", self.record.job_controller)
            controlplane.start(self.cluster, plan)
        for name in controlplane.commands(self.cluster):
            if not self.process(name):
                controlplane.restart(self.cluster, name)
        controlplane.wait_ready(self.cluster)

    def _contents(self) -> str:
        count = install.custom_resources(self.kubectl)
        install.system(self.kubectl)
        install.workload_namespace(self.kubectl)
        return f"{count} CRDs, rights, guard rails"

    def _nodes(self) -> str:
        if self.record.node == "simulated":
            install.simulated_nodes(self.kubectl, self.record.nodes)
            return f"{self.record.nodes} simulated"
        node.start(self.cluster)
        return "real: kubelet, containerd and runc, with the example images"

    def _admission_host(self) -> str:
        return LOOPBACK

    def _stop_cluster(self) -> None:
        node.stop(self.state)
        self.operator.stop()
        controlplane.stop(self.cluster)

    def _running(self, component: str) -> Process:
        process = self.process(component)
        if process is None:
            known = ", ".join(self.components)
            raise LocalError(f"{component} does not run; the components are {known}; see make status")
        return process

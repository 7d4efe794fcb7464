"""One local cluster, from nothing to ready and back: what `make up` and the tests use.

    with LocalCluster(state, nodes=3, slots=4) as cluster:
        cluster.kubectl("get", "nodes")

Every step of `up` finds out what is there already, so it may be repeated after
any interruption. What a killed `up` left is removed first: nothing of an
incomplete cluster is trusted.
"""

import contextlib
import fcntl
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from deploy.local import binaries, controlplane, install, node, processes
from deploy.local.cluster import DEFAULT_STATE, Cluster
from deploy.local.console import Console
from deploy.local.controlplane import Plan
from deploy.local.errors import LocalError
from deploy.local.kubectl import Kubectl
from deploy.local.operator_process import Operator
from deploy.local.ports import free_ports, require_free
from deploy.local.processes import Process
from deploy.local.record import FILE, Record
from deploy.local.versions import GROUPS

# What a state folder holds and `down` removes. The user's own, `.local`, also
# holds the virtual environment and caches, which stay.
OWNED = ("bin", "pids", "kwok", "node", "kubeconfig", "operator.kubeconfig", "operator.pid", "env", "logs")


class LocalCluster:
    """An instance in `state`; several run side by side, each in its own folder and on its own ports."""

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
        self.state = state.absolute()
        self.console = console or Console(None)
        self._wanted = Record("local", node, nodes, slots, port or 0, 0, operator, job_controller)
        self.record = self._wanted

    # --- up and down

    def up(self) -> bool:
        """Make it run, all of it; True when it already did.

        Raises:
            LocalError: a step failed. Repeating `up`, or `down`, works from any point.
        """
        with self._lock():
            previous = Record.load(self.state)
            if previous and previous.complete:
                self._require_same(previous)
                known = self.well
            else:
                known = False
                self._sweep()
            self.record = self._merged(previous)
            self.record.save(self.state)
            self._control_plane()
            self._contents()
            self._node()
            # From here on it is worth keeping, also when the operator does not come up.
            self._write_env()
            self.record = self.record.completed()
            self.record.save(self.state)
            self._operator()
            return known

    def down(self) -> bool:
        """Stop all of it and remove what it left; False when there was nothing."""
        if not self.state.exists():
            return False
        with self._lock():
            return self._sweep()

    def __enter__(self) -> "LocalCluster":
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    # --- what it offers

    @property
    def cluster(self) -> Cluster:
        """Its folders and addresses."""
        return Cluster(self.state, self.record.port)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.cluster.kubeconfig

    @property
    def audit_log(self) -> Path:
        """One JSON object a line for every write."""
        return self.cluster.audit_log

    @property
    def operator(self) -> Operator:
        """The operator's process."""
        return Operator(self.cluster, self.record.metrics_port)

    @property
    def env(self) -> dict[str, str]:
        """The environment for programs that use this cluster, as `.local/env` gives it to a shell."""
        return {**os.environ, **self.exports}

    @property
    def exports(self) -> dict[str, str]:
        """The variables of `.local/env`."""
        path = [
            str(self.cluster.bin),
            str(DEFAULT_STATE / "venv" / "bin"),
            os.environ.get("PATH", os.defpath),
        ]
        exports = {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": self.cluster.environment()["KUBECACHEDIR"],
            "PATH": os.pathsep.join(path),
        }
        if self.record.operator:
            exports["AGENTJOBS_METRICS_URL"] = self.operator.url
        return exports

    @property
    def kubectl(self) -> Kubectl:
        """kubectl as the administrator."""
        return Kubectl(str(self.cluster.bin / "kubectl"), self.cluster.environment())

    @property
    def components(self) -> tuple[str, ...]:
        """The names that `pid`, `kill`, `restart`, `pause` and `resume` take."""
        names = [name for name in controlplane.COMPONENTS if name != controlplane.SIMULATOR]
        names += [controlplane.SIMULATOR] if self.record.node == "simulated" else []
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
        process = self.process(component)
        if process:
            self.kill(component)
        if component == "operator":
            self.operator.start()
        else:
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
        running = all(self.process(name) for name in self.components)
        return (
            running
            and controlplane.healthy(self.cluster)
            and (not self.record.operator or self.operator.ready())
        )

    # --- steps of up, each of which may find its work done

    def _control_plane(self) -> None:
        groups = GROUPS if self.record.node == "real" else GROUPS[:2]
        binaries.link(binaries.ensure(self.console, groups), self.cluster.bin)
        with self.console.phase("control plane") as phase:
            if not self.kubeconfig.exists():
                require_free(self.record.port)
                plan = Plan(self.record.node == "simulated", self.record.job_controller)
                controlplane.start(self.cluster, plan)
            for name in controlplane.commands(self.cluster):
                if not self.process(name):
                    controlplane.restart(self.cluster, name)
            controlplane.wait_ready(self.cluster)
            phase.result = self.cluster.server

    def _contents(self) -> None:
        with self.console.phase("contents") as phase:
            count = install.custom_resources(self.kubectl)
            install.system(self.kubectl)
            install.workload_namespace(self.kubectl)
            if count:
                install.pool(self.kubectl, self.record.slots)
            phase.result = f"{count} CRDs, rights, pool `default` with {self.record.slots} slots"

    def _node(self) -> None:
        with self.console.phase("node") as phase:
            if self.record.node == "simulated":
                install.simulated_nodes(self.kubectl, self.record.nodes)
                phase.result = f"{self.record.nodes} simulated"
            else:
                node.start(self.cluster)
                phase.result = "real: kubelet, containerd and runc; example images imported"

    def _operator(self) -> None:
        if not self.record.operator:
            return
        with self.console.phase("operator") as phase:
            if not self.cluster.operator_kubeconfig.exists():
                install.operator_kubeconfig(self.kubectl, self.cluster.operator_kubeconfig)
            self.operator.start()
            phase.result = self.operator.url

    def _write_env(self) -> None:
        lines = [f"export {name}={_quoted(value)}" for name, value in self.exports.items() if name != "PATH"]
        path = f"{self.cluster.bin}:{DEFAULT_STATE / 'venv' / 'bin'}"
        lines.append(f'export PATH={_quoted(path)}:"$PATH"')
        processes.write_atomically(self.state / "env", "\n".join(lines) + "\n")

    # --- helpers

    def _require_same(self, previous: Record) -> None:
        if self._wanted.port and previous.port != self._wanted.port:
            raise LocalError(
                f"the cluster runs on port {previous.port}; to change that: make down, then make up"
            )
        if previous.node != self._wanted.node:
            raise LocalError(
                f"the cluster runs with NODE={previous.node}; to change that: make down, then make up"
            )

    def _merged(self, previous: Record | None) -> Record:
        """What is wanted, with the ports that an earlier `up` chose."""
        wanted = vars(self._wanted)
        if previous and previous.complete:
            ports = {"port": previous.port, "metrics_port": previous.metrics_port}
        else:
            port, metrics = free_ports(2)
            ports = {"port": self._wanted.port or port, "metrics_port": metrics}
        return Record(**{**wanted, **ports})

    def _sweep(self) -> bool:
        """End every process and remove the files, after any crash; False when there was nothing."""
        existed = Record.load(self.state) is not None or any(processes.leftovers(self.state))
        if existed:
            with self.console.phase("stop") as phase:
                self._stop_all()
                phase.result = "every process ended"
        for name in OWNED:
            path = self.state / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        # Last: as long as it is there, the next command knows that there is something to remove.
        (self.state / FILE).unlink(missing_ok=True)
        return existed

    def _stop_all(self) -> None:
        node.stop(self.state)
        self.operator.stop()
        controlplane.stop(self.cluster)
        processes.stop_leftovers(self.state)

    def _running(self, component: str) -> Process:
        process = self.process(component)
        if process is None:
            raise LocalError(
                f"{component} does not run; one of {', '.join(self.components)}; see make status"
            )
        return process

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """One `up` or `down` of an instance at a time."""
        self.state.mkdir(parents=True, exist_ok=True)
        with (self.state / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise LocalError(f"another up or down is at work in {self.state}; wait for it") from error
            yield


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"

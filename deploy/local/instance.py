"""One cluster with the operator beside it, from nothing to ready and back: what every kind has in common.

Every step of `up` finds out what is there already, so it may be repeated after
any interruption. What a killed `up` left is removed first: nothing of an
incomplete cluster is trusted.
"""

import contextlib
import fcntl
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from deploy.local import admission, install, processes
from deploy.local.cluster import DEFAULT_STATE, Cluster
from deploy.local.console import Console
from deploy.local.errors import LocalError
from deploy.local.kubectl import Kubectl
from deploy.local.operator_process import Operator
from deploy.local.ports import free_ports
from deploy.local.record import FILE, Record

# What a state folder holds and `down` removes. The user's own, `.local`, also
# holds the virtual environment and caches, which stay.
OWNED = (
    *("bin", "pids", "kwok", "node", "logs", "kubectl-cache"),
    *("kubeconfig", "operator.kubeconfig", "operator.pid", "env"),
)


class Instance(ABC):
    """A cluster that was made, or is used, through a state folder; several work side by side."""

    KIND: ClassVar[str]

    def __init__(self, state: Path, wanted: Record, console: Console | None = None) -> None:
        """Describe it; `up` makes it. Progress goes to `console`, or nowhere."""
        self.state = state.absolute()
        self.console = console or Console(None)
        self.record = Record.load(self.state) or wanted
        self._wanted = wanted

    def up(self) -> bool:
        """Make it run, all of it; True when it already did.

        Raises:
            LocalError: a step failed. Repeating `up`, or `down`, works from any point.
        """
        with self._lock():
            previous = Record.load(self.state)
            already = False
            if previous:
                self._require_same(previous)
                self.record = previous
            if previous and previous.complete:
                already = self.well
            else:
                self._sweep()
            self.record = self._merged(previous)
            self.record.save(self.state)
            self._cluster()
            # From here on it is worth keeping, also when the operator does not come up.
            self._write_env()
            self.record = replace(self.record, complete=True)
            self.record.save(self.state)
            if self.record.operator:
                self._operator()
            self._pool()
            if self.record.operator:
                install.pool_in_force(self.kubectl)
            return already

    def down(self) -> bool:
        """Stop all of it and remove what it left; False when there was nothing."""
        if not self.state.exists():
            return False
        with self._lock():
            return self._sweep()

    def __enter__(self) -> Self:
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
    def kubectl(self) -> Kubectl:
        """kubectl as the administrator."""
        return Kubectl(str(self.cluster.bin / "kubectl"), self.cluster.environment())

    @property
    def operator(self) -> Operator:
        """The operator's process."""
        record = self.record
        return Operator(self.cluster, record.metrics_port, f"{record.admission_host}:{record.admission_port}")

    def start_operator(self) -> None:
        """Start the operator in a cluster that is up without it."""
        self._change(operator=True)
        self._operator()

    def stop_operator(self) -> None:
        """Stop the operator and its supervisor; the cluster stays, and nothing is reviewed."""
        admission.remove(self.kubectl)
        self.operator.stop()
        self._change(operator=False)

    @property
    def exports(self) -> dict[str, str]:
        """The variables of `.local/env`, but for PATH."""
        exports = {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": self.cluster.environment()["KUBECACHEDIR"],
        }
        if self.record.operator:
            exports["AGENTJOBS_METRICS_URL"] = self.operator.url
        return exports

    @property
    def env(self) -> dict[str, str]:
        """The environment for programs that use this cluster, as `.local/env` gives it to a shell."""
        path = os.pathsep.join([*self._path, os.environ.get("PATH", os.defpath)])
        return {**os.environ, **self.exports, "PATH": path}

    @property
    @abstractmethod
    def well(self) -> bool:
        """Whether everything of it runs and answers."""

    # --- steps of up, each of which may find its work done

    @abstractmethod
    def _admission_host(self) -> str | None:
        """This machine's address as the API server reaches it, None where there is none."""

    @abstractmethod
    def _cluster(self) -> None:
        """Bring up the cluster with its contents and nodes."""

    @abstractmethod
    def _stop_cluster(self) -> None:
        """Take down what `_cluster` brought up, however far it came."""

    def _operator(self) -> None:
        with self.console.phase("operator") as phase:
            path = self.cluster.operator_kubeconfig
            if not path.exists():
                install.operator_kubeconfig(self.kubectl, path)
            self._admission()
            self.operator.start()
            phase.result = self.operator.url

    def _admission(self) -> None:
        host = self._admission_host()
        if host is None:
            self._without_admission("the API server cannot call a program on this machine")
            return
        self.record = replace(self.record, admission_host=host)
        self.record.save(self.state)
        admission.install(self.kubectl, self.operator.admission_address)

    def _without_admission(self, why: str) -> None:
        self.console.fact("admission", f"left out: {why}; bad AgentJobs are stored, then fail")

    def _pool(self) -> None:
        """The default pool: after the operator, which has a say in it."""
        with self.console.phase("pool") as phase:
            install.pool(self.kubectl, self.record.slots)
            phase.result = f"`default` with {self.record.slots} slots"

    def _write_env(self) -> None:
        lines = [f"export {name}={_quoted(value)}" for name, value in self.exports.items()]
        lines.append(f'export PATH={_quoted(os.pathsep.join(self._path))}:"$PATH"')
        processes.write_atomically(self.state / "env", "\n".join(lines) + "\n")

    # --- helpers

    @property
    def _path(self) -> tuple[str, str]:
        return str(self.cluster.bin), str(DEFAULT_STATE / "venv" / "bin")

    def _require_same(self, previous: Record) -> None:
        """Raise LocalError when what is up differs in a way that `up` cannot change."""
        if previous.kind != self.KIND:
            raise LocalError(f"CLUSTER={previous.kind} is up, {self.KIND} is wanted; first run: make down")
        if not previous.complete:
            return  # it is removed, whatever it was to be
        if previous.node != self._wanted.node:
            wanted = self._wanted.node
            raise LocalError(f"NODE={previous.node} is up, {wanted} is wanted; first run: make down")
        if self._wanted.port not in (0, previous.port):
            wanted = str(self._wanted.port)
            raise LocalError(f"PORT={previous.port} is up, {wanted} is wanted; first run: make down")

    def _merged(self, previous: Record | None) -> Record:
        """What is wanted, with what an earlier, complete `up` chose and made."""
        if previous and previous.complete:
            return replace(
                self._wanted,
                port=previous.port,
                metrics_port=previous.metrics_port,
                admission_port=previous.admission_port,
                admission_host=previous.admission_host,
                created=previous.created,
                job_controller=previous.job_controller,
                context=previous.context,
                complete=True,
            )
        port, metrics, reviews = free_ports(3)
        return replace(
            self._wanted, port=self._wanted.port or port, metrics_port=metrics, admission_port=reviews
        )

    def _change(self, *, operator: bool) -> None:
        self.record = replace(self.record, operator=operator)
        self.record.save(self.state)
        self._write_env()

    def _sweep(self) -> bool:
        """End every process and remove the files, after any crash; False when there was nothing."""
        record = Record.load(self.state)
        existed = record is not None or any(processes.leftovers(self.state))
        if record:
            # From here on nothing of it is to be trusted, also when this is interrupted.
            self.record = replace(record, complete=False)
            self.record.save(self.state)
        if existed:
            with self.console.phase("stop") as phase:
                self._stop_cluster()
                processes.stop_leftovers(self.state)
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

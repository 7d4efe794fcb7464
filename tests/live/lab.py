"""A cluster to try runs in: pools and namespaces of a test's own, runs and all that became of them."""

import contextlib
import itertools
import re
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from agentjobs.apis.runstatus import TERMINAL_PHASES
from agentjobs.runs import identity
from deploy.local import admission
from deploy.local.local import LocalCluster
from tests.live.api import AGENTS, Api, Object, RefusedError
from tests.live.audit import Audit
from tests.live.support import eventually

POOLS = f"{AGENTS}/agentpools"
TEAMS = f"{AGENTS}/agentteams"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/agentjobs"
ENDED = tuple(phase.value for phase in TERMINAL_PHASES)
SECONDS = 30  # for what takes milliseconds on a machine that does nothing else

_numbers = itertools.count(1)


def unique(word: str) -> str:
    """Return a name that nothing else in this test run has."""
    return f"{word}-{next(_numbers)}"


@dataclass(frozen=True)
class Run:
    """An AgentJob that was created."""

    api: Api
    namespace: str
    name: str
    uid: str

    @property
    def path(self) -> str:
        return f"{AGENTS}/namespaces/{self.namespace}/agentjobs/{self.name}"

    @property
    def job_name(self) -> str:
        """The name of its Job, whether there is one or not."""
        return identity.job_name(self.name, self.uid, 1)

    @property
    def job_path(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{self.job_name}"

    def get(self) -> Object:
        return self.api.request("GET", self.path)

    @property
    def status(self) -> Object:
        """Its status as stored; a phase is always in it, as the schema's default has it."""
        status: Object = {"phase": "PENDING", **self.get().get("status", {})}
        return status

    def job(self) -> Object | None:
        return self.api.get(self.job_path)

    def pods(self) -> list[Object]:
        selector = f"labelSelector=agentjobs.dev/run-uid={self.uid}"
        return self.api.items(f"/api/v1/namespaces/{self.namespace}/pods?{selector}")

    def pod(self) -> Object:
        """Its pod, once there is one."""
        pods = eventually(self.pods)
        assert len(pods) == 1
        return pods[0]

    def reaches(self, phase: str, reason: str | None = None, *, seconds: float = SECONDS) -> Object:
        """Wait for a phase, and a reason where one is given, and return the status then.

        Another end than the one that is waited for is an error at once.
        """

        def look() -> Object | None:
            status = self.status
            if status["phase"] == phase and reason in (None, status.get("reason")):
                return status
            seen.update(status)
            return status if status["phase"] in ENDED else None

        seen: Object = {}
        try:
            status = eventually(look, seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"{self.name} is not {phase}/{reason}: {seen}") from error
        assert status is not None
        assert (status["phase"], reason or status.get("reason")) == (phase, status.get("reason")), status
        return status

    def delete(self, propagation: str = "Background") -> None:
        self.api.delete(self.path, propagation)


class Lab:
    """Everything made here is removed at the end."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.api = Api(cluster)
        self.audit = Audit(cluster.audit_log)
        self._made: list[str] = []
        self._namespaces: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.api, contextlib.suppress(AssertionError):
            for namespace in self._namespaces:
                self.api.delete(f"{AGENTS}/namespaces/{namespace}/agentjobs")
            for path in reversed(self._made):
                self.api.delete(path)

    def make(self, collection: str, body: Object) -> Object:
        """Create an object that is removed at the end."""
        created = self.api.create(collection, body)
        self._made.append(f"{collection}/{created['metadata']['name']}")
        return created

    def namespace(self) -> str:
        """A new namespace, in which pods can be created."""
        name = unique("team-space")
        self.make("/api/v1/namespaces", {"metadata": {"name": name}})
        eventually(lambda: self.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
        return name

    def pool(self, **spec: Any) -> str:
        """A new pool, which the operator knows when this returns; without limits unless `spec` says so."""
        name = unique("pool")
        self.make(POOLS, _pool(name, spec))
        eventually(lambda: self.metric("agentjobs_pending_runs", pool=name) is not None)
        return name

    def team(self, team: str, **spec: Any) -> str:
        """An AgentTeam with this id; returns its path."""
        name = unique("agentteam")
        self.make(TEAMS, {**_named("AgentTeam", name), "spec": {"teamId": team, **spec}})
        return f"{TEAMS}/{name}"

    def edit_pool(self, pool: str, **spec: Any) -> None:
        """Change fields of a pool; None removes one."""
        self.api.patch(f"{POOLS}/{pool}", {"spec": spec})

    def submit(
        self,
        pool: str,
        *,
        name: str | None = None,
        namespace: str = "default",
        duration: str = "100ms",
        message: str = "",
        exit_code: int = 0,
        **spec: Any,
    ) -> Run:
        """Create an AgentJob whose simulated agent lasts, ends and says what is given here."""
        manifest = agentjob(name or unique("run"), pool, duration, message, exit_code, spec)
        collection = f"{AGENTS}/namespaces/{namespace}/agentjobs"
        self._namespaces.add(namespace)
        created = self.api.create(collection, manifest)["metadata"]
        return Run(self.api, namespace, created["name"], created["uid"])

    @contextlib.contextmanager
    def without_admission(self) -> Iterator[None]:
        """Let everything through that the schema takes, while the block runs."""
        admission.remove(self.cluster.kubectl)
        eventually(lambda: self.api.get(HOOKS) is None)
        yield
        admission.install(self.cluster.kubectl, self.cluster.operator.admission_address)
        eventually(self._is_answered)

    def _is_answered(self) -> bool:
        """Whether the leader has led the API server to itself."""
        hooks = self.api.request("GET", HOOKS)["webhooks"]
        return all("caBundle" in hook["clientConfig"] for hook in hooks)

    def accepts(self, pool: str, *, namespace: str = "default", **spec: Any) -> bool:
        """Whether a run would be taken now; nothing is stored."""
        manifest = agentjob("probe", pool, "1s", "", 0, spec)
        try:
            self.api.create(f"{AGENTS}/namespaces/{namespace}/agentjobs?dryRun=All", manifest)
        except RefusedError:
            return False
        return True

    def statuses(self, runs: Iterable[Run]) -> list[Object]:
        """The statuses of many runs of one namespace, by one request."""
        runs = list(runs)
        path = f"{AGENTS}/namespaces/{runs[0].namespace}/agentjobs"
        stored = {item["metadata"]["uid"]: item["status"] for item in self.api.items(path)}
        return [stored[run.uid] for run in runs]

    def all_end(self, runs: Iterable[Run], *, seconds: float) -> list[Object]:
        """Wait until every run has ended and return the statuses."""
        runs = list(runs)

        def look() -> list[Object]:
            statuses = self.statuses(runs)
            going = [run for run, s in zip(runs, statuses, strict=True) if s["phase"] not in ENDED]
            assert not going, f"{len(going)} runs have not ended, such as {_told(going[0])}"
            return statuses

        return eventually(look, seconds=seconds, every=0.2)

    def metric(self, name: str, **labels: str) -> float | None:
        """The value of one of the operator's metrics; None when it has none with these labels."""
        with urllib.request.urlopen(f"{self.cluster.operator.url}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        for line in text.splitlines():
            found = re.fullmatch(rf"{name}(?:{{(.*)}})? (\S+)", line)
            if found and labels.items() <= dict(re.findall(r'(\w+)="([^"]*)"', found[1] or "")).items():
                return float(found[2])
        return None


def _told(run: Run) -> str:
    """What Kubernetes says of a run."""
    pods = [(pod["metadata"]["name"], pod["status"]) for pod in run.pods()]
    return f"{run.name}: {run.status}; pods: {pods}"


def agentjob(name: str, pool: str, duration: str, message: str, exit_code: int, spec: Object) -> Object:
    """The manifest of an AgentJob for a simulated node."""
    annotations = {"duration": duration, "message": message, "exit-code": str(exit_code)}
    return {
        "apiVersion": "agentjobs.dev/v1alpha1",
        "kind": "AgentJob",
        "metadata": {
            "name": name,
            "annotations": {f"sim.agentjobs.dev/{key}": value for key, value in annotations.items()},
        },
        "spec": {"agentImage": "agent:dev", "teamId": "blue", "pool": pool, **spec},
    }


def _named(kind: str, name: str) -> Object:
    return {"apiVersion": "agentjobs.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}


def _pool(name: str, spec: Object) -> Object:
    return {
        **_named("AgentPool", name),
        # Most tests have one team for everything.
        "spec": {"requireTeams": False, "maxPendingPerTeam": 1000, **spec},
    }

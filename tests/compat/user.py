"""A user as the compatibility tests have one: manifests, kubectl, and what they see."""

import json
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from tests.compat.flood import flood
from tests.live.api import AGENTS, Object
from tests.live.lab import Lab, Run, unique

AGENTJOBS = f"{AGENTS}/namespaces/default/agentjobs"


@dataclass(frozen=True)
class Said:
    """What kubectl did.

    Attributes:
        text: standard output and error, without the last line break.
        seconds: how long it took.
    """

    code: int
    text: str
    seconds: float

    @property
    def done(self) -> bool:
        return self.code == 0


class User:
    """Submits runs of a team of their own to a pool of their own, in which nothing starts."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.team = unique("team")
        self.held = self.pool(hold=True)

    def pool(self, **spec: Any) -> str:
        """A pool with the default limit of waiting runs."""
        return self.lab.pool(maxPendingPerTeam=None, **spec)

    def manifest(self, name: str | None = None, **spec: Any) -> Object:
        """An AgentJob; None as a value leaves a field out."""
        whole = {"agentImage": "agent:1", "teamId": self.team, "pool": self.held, **spec}
        return {
            "apiVersion": "agentjobs.dev/v1alpha1",
            "kind": "AgentJob",
            "metadata": {"name": name or unique("job")},
            "spec": {key: value for key, value in whole.items() if value is not None},
        }

    def kubectl(self, *arguments: str, manifest: Object | None = None) -> Said:
        """Run kubectl as an administrator would."""
        kubectl, began = self.lab.cluster.kubectl, time.monotonic()
        result = subprocess.run(
            [kubectl.program, *arguments],
            input=None if manifest is None else json.dumps(manifest),
            env=kubectl.env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Said(result.returncode, (result.stdout + result.stderr).strip(), time.monotonic() - began)

    def create(self, name: str | None = None, **spec: Any) -> Said:
        """`kubectl create` one AgentJob."""
        return self.kubectl("create", "-f", "-", manifest=self.manifest(name, **spec))

    def try_out(self, **spec: Any) -> Said:
        """The same with `--dry-run=server`: everything is checked and nothing stored."""
        return self.kubectl("create", "--dry-run=server", "-f", "-", manifest=self.manifest(**spec))

    def flood(self, manifests: list[Object]) -> list[tuple[int, Object]]:
        """Create many at once; return code and answer of each."""
        return flood(self.lab.cluster, AGENTJOBS, manifests)

    def stored(self) -> list[Object]:
        """The team's AgentJobs as the API server has them."""
        return [job for job in self.lab.api.items(AGENTJOBS) if job["spec"]["teamId"] == self.team]

    def run(self, name: str) -> Run:
        """A run that is stored."""
        metadata = self.lab.api.request("GET", f"{AGENTJOBS}/{name}")["metadata"]
        return Run(self.lab.api, "default", name, metadata["uid"])

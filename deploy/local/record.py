"""What is known of an instance between two commands: `<state>/cluster.json`."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from deploy.local.ports import LOOPBACK
from deploy.local.processes import write_atomically

FILE = "cluster.json"


@dataclass(frozen=True)
class Record:
    """How an instance was made. Written before anything is started, and again when all of it runs."""

    kind: str
    """local, kind or current."""
    node: str
    """real or simulated."""
    nodes: int
    slots: int
    port: int
    """Of the API server; 0 where it is not ours."""
    metrics_port: int
    admission_port: int
    operator: bool
    job_controller: bool
    admission_host: str = LOOPBACK
    """The operator's address, as the API server reaches it."""
    context: str = ""
    """The kubeconfig context, where the cluster is not ours."""
    created: tuple[str, ...] = ()
    """What `up` added to a cluster that is not ours, and `down` removes: `kind/name`."""
    complete: bool = False
    """False while `up` is at work, and for ever when it was killed."""

    def save(self, state: Path) -> None:
        """Write it below the state folder."""
        write_atomically(state / FILE, json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, state: Path) -> "Record | None":
        """The instance's record, None when there is none that can be read."""
        try:
            found = json.loads((state / FILE).read_text())
            found["created"] = tuple(found["created"])
            return cls(**{field.name: found[field.name] for field in fields(cls)})
        except (FileNotFoundError, ValueError, LookupError, TypeError):
            return None

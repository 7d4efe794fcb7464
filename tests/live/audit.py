"""What really happened, as the API server wrote it down: who changed what, in which order."""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

# What a leader writes to be found.
_LEADERSHIP = ("validatingwebhookconfigurations", "endpointslices")
OPERATOR = "system:serviceaccount:agentjobs-system:agentjobs-operator"


@dataclass(frozen=True)
class Write:
    """One request that changed something, or tried to.

    Attributes:
        user: who acted, also where the administrator lent the certificate.
        resource: with its subresource, such as `agentjobs/status`.
        code: HTTP status of the answer.
        phase: that a status patch of the operator stored, None in everything else.
    """

    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    code: int
    received: datetime
    answered: datetime
    phase: str | None

    @property
    def what(self) -> str:
        """The verb and the resource, `create jobs`."""
        return f"{self.verb} {self.resource}"

    @property
    def done(self) -> bool:
        """Whether it changed something."""
        return self.code < 300

    @property
    def uncertain(self) -> bool:
        """Whether it may have changed something: its client was killed, or storage answered too late."""
        return self.code >= 500 or self.code == 0

    @property
    def terminal(self) -> bool:
        """Whether it was to store the end of a run."""
        return self.phase not in (None, "PENDING", "SCHEDULED", "RUNNING", "CANCELING")


class Audit:
    """Reads the log as it grows."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read_up_to = 0
        self._writes: list[Write] = []
        self._by_operator: list[Write] = []

    def writes(self) -> list[Write]:
        """Every write so far, in the order of their answers."""
        self._read_on()
        return self._writes

    def by_operator(self, *names: str) -> list[Write]:
        """The operator's writes so far for the sake of runs, of all objects or of those with these names."""
        self._read_on()
        return [write for write in self._by_operator if not names or write.name in names]

    def _read_on(self) -> None:
        with self._log.open("rb") as file:
            file.seek(self._read_up_to)
            # The last line may be half written.
            complete, found, _ = file.read().rpartition(b"\n")
        self._read_up_to += len(complete) + len(found)
        new = [_write(json.loads(line)) for line in complete.splitlines() if line.startswith(b"{")]
        self._writes += new
        self._by_operator += [
            write for write in new if write.user == OPERATOR and write.resource not in _LEADERSHIP
        ]


def _write(event: dict[str, Any]) -> Write:
    target = event.get("objectRef", {})
    body = event.get("requestObject") or {}
    subresource = target.get("subresource")
    return Write(
        user=event.get("impersonatedUser", event["user"])["username"],
        verb=event["verb"],
        resource=target.get("resource", "") + (f"/{subresource}" if subresource else ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        received=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        answered=datetime.fromisoformat(event["stageTimestamp"]),
        phase=(body.get("status") or {}).get("phase"),
    )

"""The audit log: who wrote what, and when it was answered, by the API server's own clock."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from agentjobs.apis import times

OPERATOR = "system:serviceaccount:agentjobs-system:agentjobs-operator"


class _Reference(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _User(msgspec.Struct):
    username: str = ""


class Entry(msgspec.Struct, rename="camel"):
    """One answered request."""

    verb: str
    user: _User
    request_received_timestamp: str
    stage_timestamp: str
    object_ref: _Reference = msgspec.field(default_factory=_Reference)

    @property
    def resource(self) -> str:
        """The resource with its subresource, `agentjobs/status`."""
        parts = (self.object_ref.resource, self.object_ref.subresource)
        return "/".join(part for part in parts if part)

    @property
    def name(self) -> str:
        return self.object_ref.name

    @property
    def by_operator(self) -> bool:
        return self.user.username == OPERATOR

    @property
    def received(self) -> int:
        """Microseconds since the epoch."""
        return _micros(self.request_received_timestamp)

    @property
    def answered(self) -> int:
        """Microseconds since the epoch."""
        return _micros(self.stage_timestamp)


_ENTRY = msgspec.json.Decoder(Entry)


class AuditLog:
    """Reads what was added to the log since the last reading."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size

    def new_bytes(self) -> bytes:
        """Return the whole lines that were added."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            added = file.read()
        added = added[: added.rfind(b"\n") + 1]
        self._offset += len(added)
        return added

    def new_entries(self) -> list[Entry]:
        """Return the requests that were added."""
        return parse(self.new_bytes())


def parse(lines: bytes) -> list[Entry]:
    """Return the requests that whole lines of the log tell of."""
    return [_ENTRY.decode(line) for line in lines.splitlines()]


def of(entries: Iterable[Entry], verb: str, resource: str) -> list[Entry]:
    """Return the requests of one verb on one resource."""
    return [entry for entry in entries if entry.verb == verb and entry.resource == resource]


def run_of(job_name: str) -> str:
    """Return the name of the AgentJob that a Job was made for: the Job's name adds uid and attempt."""
    return job_name.rsplit("-", 2)[0]


def _micros(timestamp: str) -> int:
    micros = times.parse(timestamp)
    assert micros is not None
    return micros

"""The Lease as an object: what is written into it, what is read from it, and the requests for both."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import msgspec

from agentjobs.apis import names, times
from agentjobs.cluster import paths
from agentjobs.cluster.session import Session
from agentjobs.errors import ApiError

NAME = "agentjobs-operator"
LEASE_SECONDS = 8
ATTEMPT_SECONDS = 2.0  # of one request, so that another connection is tried before the time is over
_RELEASED_SECONDS = 1  # leaseDurationSeconds of a Lease that was given back, as client-go has it
_PATH = paths.lease(names.SYSTEM_NAMESPACE, NAME)

JSON = dict[str, Any]


@dataclass(frozen=True)
class StoredLease:
    """A Lease as the API server has it; in what a person wrote into it anything may be missing."""

    body: JSON

    @classmethod
    def decode(cls, content: bytes) -> StoredLease:
        """Read an answer.

        Raises:
            ApiError: it is no JSON object.
        """
        try:
            return cls(msgspec.json.decode(content, type=JSON))
        except msgspec.DecodeError as error:
            raise ApiError(0, "BadAnswer", f"{_PATH}: {error}") from error

    @property
    def spec(self) -> JSON:
        return self.body.get("spec") or {}

    @property
    def version(self) -> tuple[str, str]:
        """Its uid and resourceVersion: another one is another state of it."""
        metadata = self.body.get("metadata") or {}
        return metadata.get("uid", ""), metadata.get("resourceVersion", "")

    @property
    def holder(self) -> str:
        return self.spec.get("holderIdentity") or ""

    @property
    def transitions(self) -> int:
        return self.spec.get("leaseTransitions") or 0

    @property
    def seconds(self) -> int:
        return self.spec.get("leaseDurationSeconds") or 0

    @property
    def released(self) -> bool:
        """Whether its holder gave it back: more than an empty holder, which a hand may leave as well."""
        return not self.holder and self.seconds == _RELEASED_SECONDS and bool(self.spec.get("renewTime"))


def spec_of(identity: str, transitions: int, *, acquired: bool = False) -> JSON:
    """Return what a holder writes; `acquired` when it has only now become one."""
    now = times.text(time.time_ns() // 1000)
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": LEASE_SECONDS,
        "leaseTransitions": transitions,
        "renewTime": now,
        **({"acquireTime": now} if acquired else {}),
    }


def released_spec(transitions: int) -> JSON:
    """Return what a holder writes that gives it back."""
    return {**spec_of("", transitions), "leaseDurationSeconds": _RELEASED_SECONDS}


async def read(session: Session, seconds: float = ATTEMPT_SECONDS) -> StoredLease | None:
    """Return the Lease, None when there is none.

    Raises:
        ApiError: it cannot be read; so in the functions below.
    """
    try:
        return StoredLease.decode(await session.request("GET", _PATH, seconds=seconds))
    except ApiError as error:
        if error.absent:
            return None
        raise


async def create(session: Session, spec: JSON, seconds: float = ATTEMPT_SECONDS) -> StoredLease:
    """Store a Lease where there is none."""
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": NAME, "namespace": names.SYSTEM_NAMESPACE},
        "spec": spec,
    }
    collection = _PATH.rpartition("/")[0]
    return StoredLease.decode(await session.request("POST", collection, body=body, seconds=seconds))


async def update(
    session: Session, stored: StoredLease, spec: JSON, seconds: float = ATTEMPT_SECONDS
) -> StoredLease:
    """Change a Lease that has not changed since it was read."""
    body = {**stored.body, "spec": {**stored.spec, **spec}}
    return StoredLease.decode(await session.request("PUT", _PATH, body=body, seconds=seconds))

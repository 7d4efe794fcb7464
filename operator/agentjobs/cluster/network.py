"""Keeps the NetworkPolicies that must stand before a namespace's first Job."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from typing import Any

import msgspec

from agentjobs.cluster import paths
from agentjobs.cluster.session import Session
from agentjobs.errors import ApiError

_TRUST_SECONDS = 60.0  # how long a policy that was read is taken to be still there


class NetworkPolicies:
    """Reads each policy at most once a minute, and writes it only where it differs from what is wanted."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._standing: dict[tuple[str, str], tuple[dict[str, Any], float]] = {}

    async def ensure(self, wanted: dict[str, Any]) -> None:
        """Return when a policy stands in its namespace as it should.

        Raises:
            ApiError: when it cannot be read or written; then no Job may be created.
        """
        key = (wanted["metadata"]["namespace"], wanted["metadata"]["name"])
        async with self._locks[key]:
            known, until = self._standing.get(key, ({}, 0.0))
            if known == wanted and time.monotonic() < until:
                return
            await self._write(*key, wanted)
            self._standing[key] = (wanted, time.monotonic() + _TRUST_SECONDS)

    async def _write(self, namespace: str, name: str, wanted: dict[str, Any]) -> None:
        collection = paths.network_policies(namespace)
        path = f"{collection}/{name}"
        try:
            stored = msgspec.json.decode(await self._session.request("GET", path))
        except ApiError as error:
            if error.status != 404:
                raise
            await self._session.write("create", "networkpolicies", "POST", collection, body=wanted)
            return
        if _without_empty(stored.get("spec")) != _without_empty(wanted["spec"]):
            stored["spec"] = wanted["spec"]
            await self._session.write("update", "networkpolicies", "PUT", path, body=stored)


def _without_empty(value: Any) -> Any:
    """Return a spec as the API server stores it: empty lists are left out."""
    if isinstance(value, dict):
        return {key: _without_empty(part) for key, part in value.items() if part != []}
    return [_without_empty(part) for part in value] if isinstance(value, list) else value

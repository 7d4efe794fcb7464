"""Idempotency keys: the object name that follows from one, and whether two specs ask for the same run."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

RESERVED_NAME = re.compile(r"aj-[0-9a-f]{32}")
"""Names of this form belong to the run of one team and key: the API server's uniqueness backs ours."""

# May be changed after creation, so they do not tell one run from another; the key itself neither.
_NOT_COMPARED = frozenset({"idempotencyKey", "priority", "cancel", "ttlSecondsAfterFinished"})


def object_name(team: str, key: str) -> str:
    """Return the name of the AgentJob that a team's key names: the same everywhere and at any time."""
    text = json.dumps([team, key]).encode()
    return f"aj-{hashlib.sha256(text).hexdigest()[:32]}"


def fingerprint(spec: Mapping[str, Any]) -> int:
    """Return 64 bits that two specs share when the API server stored the same request for both."""
    compared = {name: value for name, value in spec.items() if name not in _NOT_COMPARED and value}
    text = json.dumps(compared, sort_keys=True, default=repr).encode(errors="replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")

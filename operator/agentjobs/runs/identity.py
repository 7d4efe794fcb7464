"""Names that follow from an AgentJob's uid: known to everyone at once, the same after every restart."""

from __future__ import annotations

import functools
import hashlib
import re

from agentjobs.apis.times import SECOND

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# A Job's name becomes a label value and, with a hyphen and five letters behind it, the pod's name and host
# name, which are cut at 63: the guard rails know our pods by the end of their names.
_NAME_LIMIT = 57


@functools.lru_cache(maxsize=4096)  # a run's is asked for at every look
def job_id(created: int, uid: str) -> str:
    """Return the run's ULID: time from the creation second, randomness the last 80 bits of the uid.

    Args:
        created: creationTimestamp, microseconds since the epoch.
        uid: metadata.uid, a UUID.

    Raises:
        ValueError: when uid is not hexadecimal.
    """
    milliseconds = created // SECOND * 1000
    number = (milliseconds << 80) | (int(uid.replace("-", ""), 16) & ((1 << 80) - 1))
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def job_name(name: str, uid: str, attempt: int) -> str:
    """Return the Job's name for one attempt: readable, at most 57 characters, a DNS label, unique by uid."""
    tail = f"-{uid.replace('-', '')[-10:]}-{attempt}"
    head = re.sub(r"[^a-z0-9]+", "-", name.lower())[: _NAME_LIMIT - len(tail)].strip("-")
    return (head or "run") + tail


def team_label(team: str) -> str:
    """Return the label value of a team: team ids may hold any character, label values may not."""
    return hashlib.sha256(team.encode()).hexdigest()[:32]

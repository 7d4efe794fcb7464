"""A decision: the moment a run got its slot, and what must be known of it after a restart.

It is written as one annotation on the Job, so that the Job's existence is the admission and nothing
else has to be stored first.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from agentjobs.scheduling.reservation import latest_end
from agentjobs.scheduling.resources import Amounts

# What is written is in these bounds; what is not must not be counted with, nor shown as a time.
_Moment = Annotated[int, Meta(ge=0, le=250_000_000_000_000_000)]  # until the year 9892
_Amount = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Decision(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Why and when an attempt of a run was started, and what it holds.

    Attributes:
        attempt: from 1.
        created: when the run was first seen, microseconds since the epoch.
        scheduled: when it was decided, microseconds since the epoch.
        pool: the AgentPool that it runs in.
        team: the team id.
        priority: the class at admission.
        cpu_millicores, memory_mb, gpu_count: the envelope, beside one execution slot.
        timeout_seconds: the run's own time, from the start of the container.
        start_seconds: how long the container may take to start; less than the pool's where it fills a hole.
        hole: whether it fills a hole before a reservation: it is given up when it has not started in time.
        avoid_node: a node that its pod must not be placed on; "" for none.
    """

    attempt: _Amount
    created: _Moment
    scheduled: _Moment
    pool: str
    team: str
    priority: str
    cpu_millicores: _Amount
    memory_mb: _Amount
    gpu_count: _Amount
    timeout_seconds: _Amount
    start_seconds: _Amount = 300
    hole: bool = False
    avoid_node: str = ""

    @property
    def request(self) -> Amounts:
        """What the run holds, as the policy counts it."""
        return Amounts(1, self.cpu_millicores, self.memory_mb, self.gpu_count)

    @property
    def until(self) -> int:
        """When it has surely ended if its container never starts, microseconds since the epoch."""
        return latest_end(self.scheduled, self.start_seconds, self.timeout_seconds)

    def annotation(self) -> str:
        """Return the annotation's value."""
        return msgspec.json.encode(self).decode()


def read(annotation: str) -> Decision | None:
    """Return the decision an annotation tells of; None when it cannot be read."""
    try:
        return msgspec.json.decode(annotation.encode(), type=Decision)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None

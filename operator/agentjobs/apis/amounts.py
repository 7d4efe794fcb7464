"""Amounts of resources: what a pool has, and what a team holds, is guaranteed or is limited to."""

from typing import Annotated

from pydantic import Field

from agentjobs.apis.base import Gpus, Mebibytes, Millicores, Model, Slots

MOST = {
    "slots": 1_000_000,
    "cpu_millicores": 1_000_000_000,
    "memory_mb": 1_000_000_000,
    "gpu_count": 1_000_000,
}
"""The most that can be said of each resource."""


class ComputeAmounts(Model):
    """Amounts of what nodes offer; a resource that is not named is left out of account."""

    cpu_millicores: Annotated[Millicores, Field(ge=0, le=MOST["cpu_millicores"])] | None = None
    """CPU in thousandths of a core."""

    memory_mb: Annotated[Mebibytes, Field(ge=0, le=MOST["memory_mb"])] | None = None
    """Memory in MiB."""

    gpu_count: Annotated[Gpus, Field(ge=0, le=MOST["gpu_count"])] | None = None
    """Whole GPUs."""


class Amounts(ComputeAmounts):
    """Amounts of every resource that is shared out; one that is not named is left out of account."""

    slots: Annotated[Slots, Field(ge=0, le=MOST["slots"])] | None = None
    """Execution slots: runs that hold capacity at the same time."""


RESOURCES = tuple(MOST)
"""The attributes of :class:`Amounts`, in the order in which they are told to people."""
